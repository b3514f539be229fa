// decode.search = "joey": as JoeyNMT's beam_search() (docs/spec/training.md §5). The best `beam` of all extensions by
// (Σ log p) / penalty take the `beam` places. A place whose hypothesis ends in EOS is flagged for good; hypotheses move
// to other places, flags do not. At each position the hypotheses on flagged places are recorded, unless they have EOS
// twice. They are extended further all the same. End: all places are flagged, which at the limit they are. Outputs are
// the recorded hypotheses, cut at EOS, with the scores that they were recorded with.
#include <algorithm>

#include "engine/decode/beam.h"

namespace tearless::engine {
namespace {

class JoeyBeam final : public Beam {
 public:
  JoeyBeam(const DecodeOptions& options, int64_t limit, int32_t eos)
      : Beam(options, limit, eos), flagged_(static_cast<size_t>(options.beam)) {
    may_be_empty_ = true;
  }

  std::vector<int64_t> advance(std::span<const LogitRow> rows, int64_t vocab_size) override {
    ++length_;
    const auto beam = static_cast<size_t>(options_.beam);
    std::vector<Candidate> candidates;
    for (size_t h = 0; h < hypotheses_.size(); ++h) {
      extend(h, rows[h], vocab_size, static_cast<int64_t>(h), beam, length_penalty(options_, length_), candidates);
    }
    keep_best(candidates, beam);

    std::vector<Hypothesis> next;
    std::vector<int64_t> parents;
    for (size_t place = 0; place < beam; ++place) {
      if (place >= candidates.size()) {  // fewer tokens than places
        flagged_[place] = true;
        continue;
      }
      Hypothesis h = extended(candidates[place]);
      if (h.finished || length_ >= limit_) flagged_[place] = true;
      h.finished = false;
      if (flagged_[place]) record(h);
      next.push_back(std::move(h));
      parents.push_back(candidates[place].row);
    }
    hypotheses_ = std::move(next);
    done_ = std::ranges::all_of(flagged_, [](bool flagged) { return flagged; });
    if (done_) parents.clear();
    return parents;
  }

 private:
  void record(Hypothesis h) {
    if (std::ranges::count(h.tokens, eos_) > 1) return;
    h.tokens.erase(std::ranges::find(h.tokens, eos_), h.tokens.end());
    recorded_.push_back(std::move(h));
  }
  const std::vector<Hypothesis>& outputs() const override { return recorded_; }

  std::vector<bool> flagged_;  // by place
  std::vector<Hypothesis> recorded_;
};

}  // namespace

std::unique_ptr<SearchKind> joey_search() {
  return std::make_unique<SearchKind>(SearchKind{
      .meaning =
          "they are recorded, keep their places and are extended further (JoeyNMT 1.5.1), and an output may be empty",
      .make = beam_of<JoeyBeam>});
}

}  // namespace tearless::engine
