// Beam search for one sentence, position by position. Works on log-probabilities; does not know the model.
//
// Both kinds (decode.search): at position 0 the decoder's start is the input and EOS is forbidden, so that no output is
// empty; an output has at most `limit` tokens. They differ in what becomes of hypotheses that end in EOS; BLEU then
// differs by some hundredths.
//
//   twt      exactly as TwT's code (docs/spec/training.md §1.12). At position t hypotheses get t + 1 tokens; an
//            unfinished one may be extended by any token, a finished one stays with its score. The best `beam` of all
//            by (Σ log p) / penalty remain. End: all are finished, or the limit is reached. The best outputs may be
//            unfinished.
//   fairseq  as fairseq's SequenceGenerator (docs/spec/training.md §6.8). Of the 2 · beam best extensions by Σ log p,
//            those that end in EOS and are among the first `beam` are outputs; the first `beam` that do not end in EOS
//            remain. At the limit all must end. End: there are `beam` outputs, or the limit is reached. Outputs are
//            ranked by (Σ log p) / penalty.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/decode/options.h"

namespace tearless::engine {

/// A partial or finished output.
struct Hypothesis {
  std::vector<int32_t> tokens = {};  // columns of the logits; ends with EOS if finished
  double log_probability = 0;        // Σ log p
  double score = 0;                  // log_probability divided by the length penalty
  bool finished = false;
};

/// What a search gives.
struct SearchOutput {
  std::vector<int32_t> tokens;  // without EOS
  double score = 0;             // Σ log p of the tokens and EOS, divided by the length penalty

  bool operator==(const SearchOutput&) const = default;
};

class Beam {
 public:
  /// make_beam().
  Beam(const DecodeOptions& options, int64_t limit, int32_t eos);
  virtual ~Beam() = default;

  /// The number of rows that advance() takes: one per unfinished hypothesis, in the order of hypotheses().
  int64_t open() const;
  bool done() const { return done_; }

  /// Extends the hypotheses by one position. `rows`: open() rows of log p, [K] each; `vocab_size`: K. Returns, for each
  /// hypothesis that is still open, the row that it came from; empty when the search is done.
  virtual std::vector<int64_t> advance(std::span<const float* const> rows, int64_t vocab_size) = 0;

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
  void extend(size_t h, std::span<const float> row, int64_t at, size_t count, double penalty,
              std::vector<Candidate>& candidates) const;
  /// Retains the `count` best, the best first. Ties go to the earlier hypothesis, then to the smaller token, so that
  /// the result is unique.
  static void keep_best(std::vector<Candidate>& candidates, size_t count);
  Hypothesis extended(const Candidate& candidate) const;
  /// All that may be an output.
  virtual const std::vector<Hypothesis>& outputs() const = 0;

  const DecodeOptions options_;
  const int64_t limit_;
  const int32_t eos_;
  int64_t length_ = 0;  // length of every unfinished hypothesis in tokens
  bool done_ = false;
  std::vector<Hypothesis> hypotheses_;
};

/// The divisor of Σ log p of an output of that many tokens, EOS counted.
double length_penalty(const DecodeOptions& options, int64_t length);

/// `limit`: maximum output length in tokens, EOS included; at least 1 (std::logic_error). `eos`: the column of EOS in
/// the rows of advance().
std::unique_ptr<Beam> make_beam(const DecodeOptions& options, int64_t limit, int32_t eos);
std::unique_ptr<Beam> twt_beam(const DecodeOptions& options, int64_t limit, int32_t eos);
std::unique_ptr<Beam> fairseq_beam(const DecodeOptions& options, int64_t limit, int32_t eos);

}  // namespace tearless::engine
