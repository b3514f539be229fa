// decode.search = "twt": exactly as TwT's code (docs/spec/training.md §1.12). At position t hypotheses get t + 1
// tokens; an unfinished one may be extended by any token, a finished one stays with its score. The best `beam` of all
// by (Σ log p) / penalty remain. End: all are finished, or the limit is reached; or one output is asked for and a
// finished hypothesis is better than any other can become, which gives the same output. The best outputs may be
// unfinished.
#include <algorithm>
#include <limits>

#include "engine/decode/beam.h"

namespace tearless::engine {
namespace {

class TwtBeam final : public Beam {
 public:
  using Beam::Beam;

  std::vector<int64_t> advance(std::span<const LogitRow> rows, int64_t vocab_size) override {
    ++length_;
    const auto beam = static_cast<size_t>(options_.beam);
    const double penalty = length_ == 1 ? 1.0 : length_penalty(options_, length_);
    std::vector<Candidate> candidates;
    int64_t row = 0;
    for (size_t h = 0; h < hypotheses_.size(); ++h) {
      if (hypotheses_[h].finished) {
        candidates.push_back({hypotheses_[h].score, hypotheses_[h].log_probability, h, -1, -1});
        continue;
      }
      // Within one hypothesis the score is monotonic in log p, so only its `beam` best tokens can survive.
      extend(h, rows[static_cast<size_t>(row)], vocab_size, row, beam, penalty, candidates);
      ++row;
    }
    keep_best(candidates, beam);

    std::vector<Hypothesis> next;
    std::vector<int64_t> parents;
    for (const Candidate& candidate : candidates) {
      next.push_back(extended(candidate));
      if (!next.back().finished) parents.push_back(candidate.row);
    }
    hypotheses_ = std::move(next);
    done_ = parents.empty() || length_ >= limit_ || is_decided(best_finished());
    if (done_) parents.clear();
    return parents;
  }

 private:
  double best_finished() const {
    double best = -std::numeric_limits<double>::infinity();
    for (const Hypothesis& h : hypotheses_) {
      if (h.finished) best = std::max(best, h.score);
    }
    return best;
  }
  const std::vector<Hypothesis>& outputs() const override { return hypotheses_; }
};

}  // namespace

std::unique_ptr<SearchKind> twt_search() {
  return std::make_unique<SearchKind>(
      SearchKind{.meaning = "finished hypotheses stay in the beam and compete with the others (TwT's code)",
                 .make = beam_of<TwtBeam>,
                 .has_device_step = true});
}

}  // namespace tearless::engine
