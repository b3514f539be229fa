// decode.search = "t2t".
#include <algorithm>

#include "engine/decode/beam.h"

namespace tearless::engine {
namespace {

class T2tBeam final : public Beam {
 public:
  using Beam::Beam;

  std::vector<int64_t> advance(std::span<const LogitRow> rows, int64_t vocab_size) override {
    ++length_;
    const auto beam = static_cast<size_t>(options_.beam);
    const double penalty = length_penalty(options_, length_);
    std::vector<Candidate> candidates;
    for (size_t h = 0; h < hypotheses_.size(); ++h) {
      extend(h, rows[h], vocab_size, static_cast<int64_t>(h), 2 * beam, penalty, candidates);
    }
    keep_best(candidates, 2 * beam);

    std::vector<Hypothesis> next;
    std::vector<int64_t> parents;
    for (const Candidate& candidate : candidates) {
      Hypothesis h = extended(candidate);
      if (h.finished || length_ > limit_) {
        finished_.push_back(std::move(h));
      } else if (next.size() < beam) {
        next.push_back(std::move(h));
        parents.push_back(candidate.row);
      }
    }
    rank(finished_);
    finished_.resize(std::min(beam, finished_.size()));
    hypotheses_ = std::move(next);
    const bool by_itself = options_.stop == SearchStop::kSentence;
    done_ = parents.empty() || (by_itself && (may_end() || length_ >= limit_));
    if (done_) parents.clear();
    return parents;
  }

  bool may_end() const override { return !finished_.empty() && stays_best(finished_.back().score); }

 private:
  const std::vector<Hypothesis>& outputs() const override { return finished_.empty() ? hypotheses_ : finished_; }

  std::vector<Hypothesis> finished_;  // the best first
};

}  // namespace

std::unique_ptr<Beam> t2t_beam(const DecodeOptions& options, int64_t limit, int32_t eos) {
  return std::make_unique<T2tBeam>(options, limit, eos);
}

}  // namespace tearless::engine
