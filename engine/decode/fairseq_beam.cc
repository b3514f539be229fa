// decode.search = "fairseq": as fairseq's SequenceGenerator (docs/spec/training.md §6.8). Of the 2 · beam best
// extensions by Σ log p, those that end in EOS and are among the first `beam` are outputs; the first `beam` that do not
// end in EOS remain. At the limit all must end. End: there are `beam` outputs, or the limit is reached; or one output
// is asked for and one of these is better than any other can become, which gives the same output. Outputs are ranked by
// (Σ log p) / penalty.
#include <algorithm>

#include "engine/decode/beam.h"

namespace tearless::engine {
namespace {

class FairseqBeam final : public Beam {
 public:
  using Beam::Beam;

  std::vector<int64_t> advance(std::span<const LogitRow> rows, int64_t vocab_size) override {
    ++length_;
    const auto beam = static_cast<size_t>(options_.beam);
    std::vector<Candidate> candidates;
    for (size_t h = 0; h < hypotheses_.size(); ++h) {
      const auto row = static_cast<int64_t>(h);
      if (length_ >= limit_) {  // all must end
        const double sum = hypotheses_[h].log_probability + rows[h].log_p(eos_);
        candidates.push_back({sum, sum, h, row, eos_});
      } else {
        extend(h, rows[h], vocab_size, row, 2 * beam, /*penalty=*/1, candidates);
      }
    }
    keep_best(candidates, 2 * beam);

    std::vector<Hypothesis> next;
    std::vector<int64_t> parents;
    for (size_t rank = 0; rank < candidates.size(); ++rank) {
      Hypothesis h = extended(candidates[rank]);
      if (!h.finished) {
        if (next.size() == beam) continue;
        next.push_back(std::move(h));
        parents.push_back(candidates[rank].row);
      } else if (rank < beam && outputs_.size() < beam) {
        h.score = h.log_probability / length_penalty(options_, length_);
        outputs_.push_back(std::move(h));
      }
    }
    hypotheses_ = std::move(next);
    const auto by_score = [](const Hypothesis& a, const Hypothesis& b) { return a.score < b.score; };
    done_ = parents.empty() || outputs_.size() == beam ||
            (!outputs_.empty() && is_decided(std::ranges::max_element(outputs_, by_score)->score));
    if (done_) parents.clear();
    return parents;
  }

 private:
  const std::vector<Hypothesis>& outputs() const override { return outputs_; }

  std::vector<Hypothesis> outputs_;
};

}  // namespace

std::unique_ptr<SearchKind> fairseq_search() {
  return std::make_unique<SearchKind>(
      SearchKind{.meaning = "they are set aside, and the search ends with as many as the beam is wide",
                 .make = beam_of<FairseqBeam>});
}

}  // namespace tearless::engine
