// decode.search = "t2t": as the DS paper's code (docs/spec/training.md §4.4). Of the 2 · beam best extensions by
// (Σ log p) / penalty, those that end in EOS join the finished hypotheses, of which the best `beam` remain; the first
// `beam` that do not end in EOS remain unfinished. End: the worst finished hypothesis has a better score than the best
// unfinished one would have as an output of `limit` tokens, or the limit is reached. Outputs are the finished
// hypotheses; if there are none, the unfinished ones; zero writes them up to PAD. Where a batch ends together
// (SearchStop::kBatch), a sentence continues past its limit; at the first position there, all are finished.
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

std::unique_ptr<SearchKind> t2t_search() {
  return std::make_unique<SearchKind>(SearchKind{
      .meaning = "they are set aside, and the search ends when its worst finished one is better than any that is "
                 "unfinished can become (T2T, the DS paper's code)",
      .make = beam_of<T2tBeam>,
      .compares_outputs_of_one = true,
      .ends_batches = true,
      .ends_at_pad = true});
}

}  // namespace tearless::engine
