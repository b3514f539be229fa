// Beam search for one sentence, position by position. Works on rows of logits; does not know the model.
//
// All kinds (decode.search): at position 0 the decoder's start is the input; an output has at most `limit` tokens. EOS
// is forbidden at position 0, but with joey. They differ in what becomes of hypotheses that end in EOS; between twt and
// fairseq BLEU then differs by some hundredths.
//
// twt and fairseq give the outputs of those codes, and end earlier where one output is asked for and an ended
// hypothesis is better than any other can become.
//
//   twt      exactly as TwT's code (docs/spec/training.md §1.12). At position t hypotheses get t + 1 tokens; an
//            unfinished one may be extended by any token, a finished one stays with its score. The best `beam` of all
//            by (Σ log p) / penalty remain. End: all are finished, or the limit is reached. The best outputs may be
//            unfinished.
//   fairseq  as fairseq's SequenceGenerator (docs/spec/training.md §6.8). Of the 2 · beam best extensions by Σ log p,
//            those that end in EOS and are among the first `beam` are outputs; the first `beam` that do not end in EOS
//            remain. At the limit all must end. End: there are `beam` outputs, or the limit is reached. Outputs are
//            ranked by (Σ log p) / penalty.
//   t2t      as the DS paper's code (docs/spec/training.md §4.4). Of the 2 · beam best extensions by (Σ log p) /
//            penalty, those that end in EOS join the finished hypotheses, of which the best `beam` remain; the first
//            `beam` that do not end in EOS remain unfinished. End: the worst finished hypothesis has a better score
//            than the best unfinished one would have as an output of `limit` tokens, or the limit is reached. Outputs
//            are the finished hypotheses; if there are none, the unfinished ones. Where a batch ends together
//            (SearchStop::kBatch), a sentence continues past its limit; at the first position there, all are finished.
//   joey     as JoeyNMT's beam_search() (docs/spec/training.md §5). The best `beam` of all extensions by (Σ log p) /
//            penalty take the `beam` places. A place whose hypothesis ends in EOS is flagged for good; hypotheses move
//            to other places, flags do not. At each position the hypotheses on flagged places are recorded, unless they
//            have EOS twice. They are extended further all the same. End: all places are flagged, which at the limit
//            they are. Outputs are the recorded hypotheses, cut at EOS, with the scores that they were recorded with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

/// `limit`: maximum output length in tokens, EOS included; at least 1 (std::logic_error). `eos`: the column of EOS in
/// the rows of advance().
std::unique_ptr<Beam> make_beam(const DecodeOptions& options, int64_t limit, int32_t eos);
std::unique_ptr<Beam> twt_beam(const DecodeOptions& options, int64_t limit, int32_t eos);
std::unique_ptr<Beam> fairseq_beam(const DecodeOptions& options, int64_t limit, int32_t eos);
std::unique_ptr<Beam> t2t_beam(const DecodeOptions& options, int64_t limit, int32_t eos);
std::unique_ptr<Beam> joey_beam(const DecodeOptions& options, int64_t limit, int32_t eos);

}  // namespace tearless::engine
