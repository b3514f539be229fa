// Beam search for one sentence, position by position: the kinds of search (decode.search). Works on rows of logits;
// does not know the model.
//
// All kinds: at position 0 the decoder's start is the input; an output has at most `limit` tokens. EOS is forbidden at
// position 0, but with joey. They differ in what becomes of hypotheses that end in EOS; between twt and fairseq BLEU
// then differs by some hundredths.
//
// To add a kind:
//   1. a file beside this one with a class derived from Beam, and a function `<name>_search()` that makes its
//      SearchKind;
//   2. a line SEARCH(<name>) in searches.def.
// It is then a legal decode.search and derived.search, listed on the generated settings page and covered by the tests
// that all kinds share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/kinds.h"
#include "engine/decode/options.h"

namespace tearless::engine {

/// A partial or finished output.
struct Hypothesis {
  std::vector<int32_t> tokens = {};  // columns of the logits
  double log_probability = 0;        // Σ log p
  double score = 0;                  // log_probability divided by the length penalty
  bool finished = false;             // it ends with EOS, and is not extended
};

/// What a search gives.
struct SearchOutput {
  std::vector<int32_t> tokens;  // without EOS
  double score = 0;             // Σ log p of the tokens and EOS, divided by the length penalty

  bool operator==(const SearchOutput&) const = default;
};

/// The logits of one position of one hypothesis, with their summary (engine/ops/logit_summaries.h).
struct LogitRow {
  const float* logits;                 // [K]
  float log_sum = 0;                   // 0 if these are log p
  std::span<const float> maxima = {};  // of the blocks; without them all tokens are looked at

  double log_p(int32_t token) const { return static_cast<double>(logits[token]) - static_cast<double>(log_sum); }
};

class Beam {
 public:
  /// make_beam().
  Beam(const DecodeOptions& options, int64_t limit, int32_t eos);
  virtual ~Beam() = default;

  /// The number of rows that advance() takes: one per unfinished hypothesis, in the order of hypotheses().
  int64_t open() const;
  bool done() const { return done_; }
  /// Of a batch that ends together: whether this sentence may end now.
  virtual bool may_end() const { return done_; }

  /// Extends the hypotheses by one position. `rows`: open() rows; `vocab_size`: K. Returns, for each hypothesis that is
  /// still open, the row that it came from; empty when the search is done.
  virtual std::vector<int64_t> advance(std::span<const LogitRow> rows, int64_t vocab_size) = 0;

  /// Those of the last position.
  const std::vector<Hypothesis>& hypotheses() const { return hypotheses_; }
  /// At most options.n_best outputs, and at least one; the best first.
  std::vector<SearchOutput> best() const;

 protected:
  /// An extension of a hypothesis by one token, or a finished hypothesis that stays.
  struct Candidate {
    double score;  // what candidates are compared by
    double log_probability;
    size_t hypothesis;
    int64_t row;    // -1: a finished hypothesis that stays
    int32_t token;  // -1: a finished hypothesis too
  };
  /// The `count` best tokens after hypothesis `h`, as candidates with the score Σ log p / `penalty`.
  void extend(size_t h, const LogitRow& row, int64_t vocab_size, int64_t at, size_t count, double penalty,
              std::vector<Candidate>& candidates) const;
  /// Retains the `count` best, the best first. Ties go to the earlier hypothesis, then to the smaller token, so that
  /// the result is unique.
  static void keep_best(std::vector<Candidate>& candidates, size_t count);
  Hypothesis extended(const Candidate& candidate) const;
  /// Whether that score is better than every unfinished hypothesis can become: Σ log p only falls, and the penalty is
  /// largest at the limit.
  bool stays_best(double score) const;
  /// The same, and the search is for one output.
  bool is_decided(double score) const { return options_.n_best == 1 && stays_best(score); }
  /// Sorts by score, the best first. Of equal ones the earlier stays first.
  static void rank(std::vector<Hypothesis>& hypotheses);
  /// All that may be an output.
  virtual const std::vector<Hypothesis>& outputs() const = 0;

  const DecodeOptions options_;
  const int64_t limit_;
  const int32_t eos_;
  int64_t length_ = 0;  // length of every unfinished hypothesis in tokens
  bool done_ = false;
  bool may_be_empty_ = false;  // EOS is not forbidden at position 0
  std::vector<Hypothesis> hypotheses_;
};

/// The divisor of Σ log p of an output of that many tokens, EOS counted.
double length_penalty(const DecodeOptions& options, int64_t length);

/// What a kind of search states of itself.
struct SearchKind {
  std::string_view meaning;  // for the settings page
  std::unique_ptr<Beam> (*make)(const DecodeOptions& options, int64_t limit, int32_t eos);
  bool compares_outputs_of_one = false;  // with a beam of 1 too, where others are greedy: the length penalty applies
  bool ends_batches = false;             // decode.stop = "batch" applies
  bool ends_at_pad = false;              // outputs are cut at PAD; other kinds leave PAD out
  bool has_device_step = false;          // BeamStep of engine/ops/kernels.h makes its outputs
  std::string_view name = {};            // set from searches.def
};
/// SearchKind::make of a class derived from Beam.
template <class Kind>
std::unique_ptr<Beam> beam_of(const DecodeOptions& options, int64_t limit, int32_t eos) {
  return std::make_unique<Kind>(options, limit, eos);
}

/// All kinds, in the order of searches.def.
const Kinds<SearchKind>& search_kinds();
/// A beam of the chosen kind. `limit`: maximum output length in tokens, EOS included; at least 1 (std::logic_error).
/// `eos`: the column of EOS in the rows of advance().
std::unique_ptr<Beam> make_beam(const DecodeOptions& options, int64_t limit, int32_t eos);

}  // namespace tearless::engine
