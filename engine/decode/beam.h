// Beam search for one sentence, exactly as TwT's code does it (docs/spec/training.md §1.12). Works on
// log-probabilities; does not know the model.
//   position 0:  the decoder's start in, EOS forbidden; the `beam` best tokens by log p.
//   position t:  hypotheses get t + 1 tokens, EOS counted. An unfinished one may be extended by any token; its score is
//                then (Σ log p) / ((5 + t + 1) / 6)^α. A finished one stays with its score. The best `beam` of all
//                remain, so finished and unfinished hypotheses compete.
//   end:         all are finished, or the length limit is reached. The best score wins, finished or not.
// fairseq and T2T search differently: they set finished hypotheses aside. BLEU then differs by some hundredths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decode/options.h"

namespace tearless::engine {

/// A partial or finished output.
struct Hypothesis {
  std::vector<int32_t> tokens;  // columns of the logits; ends with EOS if finished
  double log_probability = 0;   // Σ log p
  double score = 0;             // log_probability divided by the length penalty
  bool finished = false;
};

class Beam {
 public:
  /// `limit`: maximum output length in tokens, EOS included; at least 1. `eos`: the column of EOS in the rows of
  /// advance().
  Beam(const DecodeOptions& options, int64_t limit, int32_t eos);

  /// The number of rows that advance() takes: one per unfinished hypothesis, in the order of hypotheses().
  int64_t open() const;
  bool done() const { return done_; }

  /// Extends the hypotheses by one position. `rows`: open() rows of log p, [K] each; `vocab_size`: K. Returns, for each
  /// hypothesis that is still open, the row that it came from; empty when the search is done.
  std::vector<int64_t> advance(std::span<const float* const> rows, int64_t vocab_size);

  const std::vector<Hypothesis>& hypotheses() const { return hypotheses_; }
  /// The tokens of the best hypothesis, without EOS.
  std::vector<int32_t> best() const;

 private:
  DecodeOptions options_;
  int64_t limit_;
  int32_t eos_;
  int64_t length_ = 0;  // length of every unfinished hypothesis in tokens
  bool done_ = false;
  std::vector<Hypothesis> hypotheses_;
};

}  // namespace tearless::engine
