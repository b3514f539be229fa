#include "engine/decode/options.h"

#include "base/error.h"
#include "engine/decode/beam.h"

namespace tearless::engine {

const SearchKind& DecodeOptions::kind() const { return search_kinds().at(search); }

void describe(SettingsVisitor& v, DecodeOptions& o) {
  static const std::vector<std::string_view> searches = search_kinds().names();
  static const std::string search_meaning = "beam search: " + search_kinds().meanings();
  v.word({.key = "search", .meaning = search_meaning, .choices = searches, .neutral = "twt"}, o.search);
  v.choice({.key = "stop",
            .meaning = "with search `t2t`, what ends by that rule: `sentence` each sentence; `batch` the decoding "
                       "batch, when all of its sentences meet the rule (the DS paper's code). Batches are then cut in "
                       "the order of the file, and outputs depend on batch_tokens, which is part of the id; a derived "
                       "run that sets `batch` sets derived.batch_tokens, too",
            .neutral = "sentence"},
           o.stop, kSearchStops);
  v.integer(
      {.key = "beam",
       .meaning = "beam size, the hypotheses of one sentence; 1 is greedy search, but with `t2t`, which sets ended "
                  "hypotheses aside",
       .min = 1,
       .max = 64},
      o.beam);
  // Here, because a derived run puts its own beam in place of this one when it is visited.
  const char* const penalty_off_by = o.beam > 1 || o.kind().compares_outputs_of_one ? "" : "decode.beam";
  v.choice({.key = "length_penalty",
            .meaning = "divisor of the sum of log p: `gnmt` ((5 + length) / 6)^α (Wu et al. 2016); `length` length^α, "
                       "as in fairseq. EOS is counted",
            .neutral = "gnmt",
            .switched_off_by = penalty_off_by},
           o.length_penalty, kLengthPenalties);
  v.number(
      {.key = "alpha", .meaning = "α of the length penalty", .min = 0, .max = 10, .switched_off_by = penalty_off_by},
      o.alpha);
  v.integer({.key = "max_extra",
             .meaning = "an output has at most source length + this many tokens, EOS counted on both sides",
             .min = 1,
             .max = 10000,
             .switched_off_by = o.max_length ? "decode.max_length" : ""},
            o.max_extra);
  v.optional_integer({.key = "max_length",
                      .meaning = "most tokens of an output, EOS counted, whatever the source's length; fairseq's "
                                 "--max-len-b of 200 is 201. Unset: max_extra decides",
                      .min = 2,
                      .max = 100000},
                     o.max_length);
  v.integer({.key = "n_best",
             .meaning = "best outputs of each sentence that are written to outputs/SET.nbest with their scores; 1: no "
                        "such file",
             .min = 1,
             .max = 64,
             .neutral = 1},
            o.n_best);
  v.integer({.key = "batch_tokens",
             .meaning = "sentences decoded together: count × 2 × longest source stays within this",
             .min = 1,
             .max = 1e9,
             .identity = o.stop == SearchStop::kBatch ? Identity::kResult : Identity::kLocal},
            o.batch_tokens);
}

void check_consistent(const DecodeOptions& options) {
  if (options.n_best > options.beam) {
    fail("decode.n_best = {} is above decode.beam = {}: a search has no more outputs than hypotheses", options.n_best,
         options.beam);
  }
  if (options.stop == SearchStop::kBatch && !options.kind().ends_batches) {
    fail("decode.stop = \"batch\" needs decode.search = \"t2t\": the search \"{}\" ends each sentence by itself",
         options.search);
  }
}

}  // namespace tearless::engine
