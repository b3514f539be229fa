// decode.search = "fairseq".
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

std::unique_ptr<Beam> fairseq_beam(const DecodeOptions& options, int64_t limit, int32_t eos) {
  return std::make_unique<FairseqBeam>(options, limit, eos);
}

}  // namespace tearless::engine
