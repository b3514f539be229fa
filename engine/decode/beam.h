// The beam of one sentence, exactly as TwT's code searches (training.md §1.12). Pure: it sees numbers, no model.
//   step 0:  BOS in, EOS forbidden, the best `beam` tokens by log p.
//   step t:  hypotheses get t + 1 tokens, EOS counted. An unfinished one may be extended by any token and then scores
//            (Σ log p) / ((5 + t + 1) / 6)^α; a finished one only stays, with the score it had. The best `beam` of all
//            are kept, so finished and unfinished compete in the beam.
//   end:     all finished, or the length limit is reached. The best score wins, finished or not.
// Not the search of fairseq or T2T, which set finished hypotheses aside: those differ by some hundredths of BLEU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decode/options.h"

namespace tearless::engine {

struct Hypothesis {
  std::vector<int32_t> tokens;  // with EOS where finished
  double log_probability = 0;   // Σ log p
  double score = 0;             // normalised by length
  bool finished = false;
};

class Beam {
 public:
  /// `limit`: the most tokens of an output, EOS counted. `eos`: its number in the rows handed to advance().
  Beam(const DecodeOptions& options, int64_t limit, int32_t eos);

  /// How many rows advance() wants: one for each unfinished hypothesis, in the order of hypotheses().
  int64_t open() const;
  bool done() const { return done_; }

  /// rows: open() rows of log p over the vocabulary, [open, K]. Returns, for each hypothesis that is still open, the
  /// row it came from.
  std::vector<int64_t> advance(std::span<const float* const> rows, int64_t vocabulary);

  const std::vector<Hypothesis>& hypotheses() const { return hypotheses_; }
  /// The winner's tokens without EOS.
  std::vector<int32_t> best() const;

 private:
  DecodeOptions options_;
  int64_t limit_;
  int32_t eos_;
  int64_t length_ = 0;  // tokens of every unfinished hypothesis
  bool done_ = false;
  std::vector<Hypothesis> hypotheses_;
};

}  // namespace tearless::engine
