#include "engine/decode/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace tearless::engine {
namespace {

struct TokenScore {
  float log_p;
  int32_t token;
};

constexpr size_t kBlock = 32;

/// Most of a search's own time. Eight maxima side by side, so that the compiler makes vectors of them.
float largest_of_block(const float* block) {
  constexpr size_t kLanes = 8;
  float lanes[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = block[lane];
  for (size_t i = kLanes; i < kBlock; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = std::max(lanes[lane], block[i + lane]);
  }
  return *std::max_element(lanes, lanes + kLanes);
}

/// The `count` best tokens of a row without `forbidden`, better first, ties to the smaller token. Blocks whose maximum
/// is too small are skipped.
std::vector<TokenScore> best_tokens(std::span<const float> row, size_t count, int32_t forbidden) {
  std::vector<TokenScore> best;
  float bound = -std::numeric_limits<float>::infinity();  // a token must exceed it
  for (size_t begin = 0; begin < row.size(); begin += kBlock) {
    const size_t end = std::min(row.size(), begin + kBlock);
    if (best.size() == count && end - begin == kBlock && !(largest_of_block(&row[begin]) > bound)) continue;
    for (size_t v = begin; v < end; ++v) {
      if (best.size() == count && !(row[v] > bound)) continue;
      const TokenScore token{row[v], static_cast<int32_t>(v)};
      if (token.token == forbidden) continue;
      if (best.size() == count) best.pop_back();
      best.insert(std::upper_bound(best.begin(), best.end(), token,
                                   [](const TokenScore& a, const TokenScore& b) { return a.log_p > b.log_p; }),
                  token);
      bound = best.back().log_p;
    }
  }
  return best;
}

}  // namespace

double length_penalty(const DecodeOptions& options, int64_t length) {
  const auto tokens = static_cast<double>(length);
  return std::pow(options.length_penalty == LengthPenalty::kGnmt ? (5.0 + tokens) / 6.0 : tokens, options.alpha);
}

std::unique_ptr<Beam> make_beam(const DecodeOptions& options, int64_t limit, int32_t eos) {
  switch (options.search) {
    case SearchKind::kTwt:
      return twt_beam(options, limit, eos);
    case SearchKind::kFairseq:
      return fairseq_beam(options, limit, eos);
    case SearchKind::kT2t:
      return t2t_beam(options, limit, eos);
    case SearchKind::kJoey:
      return joey_beam(options, limit, eos);
  }
  return nullptr;
}

Beam::Beam(const DecodeOptions& options, int64_t limit, int32_t eos)
    : options_(options), limit_(limit), eos_(eos), hypotheses_(1) {
  require(limit >= 1, "search: a limit of no tokens");
}

int64_t Beam::open() const {
  return done_ ? 0
               : std::count_if(hypotheses_.begin(), hypotheses_.end(), [](const Hypothesis& h) { return !h.finished; });
}

void Beam::extend(size_t h, std::span<const float> row, int64_t at, size_t count, double penalty,
                  std::vector<Candidate>& candidates) const {
  for (const auto& [log_p, v] : best_tokens(row, count, length_ == 1 && !may_be_empty_ ? eos_ : -1)) {
    const double sum = hypotheses_[h].log_probability + static_cast<double>(log_p);
    candidates.push_back({sum / penalty, sum, h, at, v});
  }
}

void Beam::keep_best(std::vector<Candidate>& candidates, size_t count) {
  const auto better = [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.hypothesis != b.hypothesis) return a.hypothesis < b.hypothesis;
    return a.token < b.token;
  };
  const size_t kept = std::min(count, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept), candidates.end(),
                    better);
  candidates.resize(kept);
}

Hypothesis Beam::extended(const Candidate& candidate) const {
  Hypothesis h = hypotheses_[candidate.hypothesis];
  if (candidate.token < 0) return h;
  h.tokens.push_back(candidate.token);
  h.log_probability = candidate.log_probability;
  h.score = candidate.score;
  h.finished = candidate.token == eos_;
  return h;
}

bool Beam::is_decided(double score) const {
  if (options_.n_best > 1) return false;
  const double largest_penalty = length_penalty(options_, limit_);
  return std::ranges::all_of(
      hypotheses_, [&](const Hypothesis& h) { return h.finished || score > h.log_probability / largest_penalty; });
}

void Beam::rank(std::vector<Hypothesis>& hypotheses) {
  std::stable_sort(hypotheses.begin(), hypotheses.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
}

std::vector<SearchOutput> Beam::best() const {
  std::vector<Hypothesis> ranked = outputs();
  rank(ranked);
  ranked.resize(std::clamp(ranked.size(), size_t{1}, static_cast<size_t>(options_.n_best)));
  std::vector<SearchOutput> best;
  for (Hypothesis& h : ranked) {
    if (h.finished) h.tokens.pop_back();
    best.push_back({std::move(h.tokens), h.score});
  }
  return best;
}

}  // namespace tearless::engine
