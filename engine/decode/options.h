// The settings of search.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace tearless::engine {

struct SearchKind;

/// What ends together, of a search that ends batches.
enum class SearchStop {
  kSentence,  // each sentence by itself
  kBatch      // all sentences of a decoding batch, as in zero
};
inline constexpr std::array<std::string_view, 2> kSearchStops = {"sentence", "batch"};

/// What Σ log p of an output is divided by.
enum class LengthPenalty {
  kGnmt,   // ((5 + length) / 6)^α (Wu et al. 2016)
  kLength  // length^α, as fairseq's --lenpen
};
inline constexpr std::array<std::string_view, 2> kLengthPenalties = {"gnmt", "length"};

/// [decode]
struct DecodeOptions {
  std::string search = "twt";
  SearchStop stop = SearchStop::kSentence;
  int64_t beam = 4;  // hypotheses per sentence; 1: greedy search, but with t2t
  LengthPenalty length_penalty = LengthPenalty::kGnmt;
  double alpha = 0.6;      // of the length penalty; beam > 1 or t2t only
  int64_t max_extra = 50;  // an output has at most source length + this many tokens, EOS counted in both
  std::optional<int64_t> max_length = {};  // most tokens of an output, EOS counted, in place of max_extra
  int64_t n_best = 1;           // outputs of a sentence that are written to outputs/SET.nbest; 1: no such file
  int64_t batch_tokens = 4096;  // limit for a batch: sentences × 2 × longest source; part of the identity with kBatch

  /// The chosen kind.
  const SearchKind& kind() const;
  /// Most tokens of the output for a source of that many, EOS counted in both.
  int64_t limit(int64_t source_length) const { return max_length.value_or(source_length + max_extra); }
};
void describe(SettingsVisitor& visitor, DecodeOptions& options);
/// Throws UserError if there are to be more outputs than hypotheses, or the search has no such stop.
void check_consistent(const DecodeOptions& options);

}  // namespace tearless::engine
