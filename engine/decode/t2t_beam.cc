// decode.search = "t2t".
#include <algorithm>

#include "engine/decode/beam.h"

namespace tearless::engine {
namespace {

class T2tBeam final : public Beam {
 public:
  T2tBeam(const DecodeOptions& options, int64_t limit, int32_t eos)
      : Beam(options, limit, eos), longest_penalty_(length_penalty(options, limit)) {}

  std::vector<int64_t> advance(std::span<const float* const> rows, int64_t vocab_size) override {
    ++length_;
    const auto beam = static_cast<size_t>(options_.beam);
    const double penalty = length_penalty(options_, length_);
    std::vector<Candidate> candidates;
    for (size_t h = 0; h < hypotheses_.size(); ++h) {
      extend(h, {rows[h], static_cast<size_t>(vocab_size)}, static_cast<int64_t>(h), 2 * beam, penalty, candidates);
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

  bool may_end() const override {
    if (finished_.empty()) return false;
    return hypotheses_.empty() || finished_.back().score > hypotheses_.front().log_probability / longest_penalty_;
  }

 private:
  const std::vector<Hypothesis>& outputs() const override { return finished_.empty() ? hypotheses_ : finished_; }

  const double longest_penalty_;      // of an output of `limit_` tokens
  std::vector<Hypothesis> finished_;  // the best first
};

}  // namespace

std::unique_ptr<Beam> t2t_beam(const DecodeOptions& options, int64_t limit, int32_t eos) {
  return std::make_unique<T2tBeam>(options, limit, eos);
}

}  // namespace tearless::engine
