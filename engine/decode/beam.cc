#include "engine/decode/beam.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

#define SEARCH(kind) std::unique_ptr<SearchKind> kind##_search();
#include "engine/decode/searches.def"
#undef SEARCH

namespace {

struct TokenLogit {
  float logit;
  int32_t token;
};

/// Adds x to the `count` best so far, better first. Of equal ones the first to come are kept, and stay first.
template <class T, class Better>
void add_if_better(const T& x, size_t count, std::vector<T>& best, Better&& better) {
  if (best.size() == count) {
    if (!better(x, best.back())) return;
    best.pop_back();
  }
  best.insert(std::upper_bound(best.begin(), best.end(), x, better), x);
}

/// The `count` best tokens of a row of `vocab_size` logits without `forbidden`, better first, ties to the smaller
/// token. They are in the `count` blocks with the largest maxima; in one more, if the best of one is forbidden.
std::vector<TokenLogit> best_tokens(const LogitRow& row, int64_t vocab_size, size_t count, int32_t forbidden) {
  std::vector<float> largest;
  for (const float maximum : row.maxima) {
    add_if_better(maximum, count + (forbidden >= 0 ? 1 : 0), largest, std::greater<>());
  }
  std::vector<TokenLogit> best;
  for (int64_t begin = 0; begin < vocab_size; begin += kLogitBlock) {
    if (!row.maxima.empty() && row.maxima[static_cast<size_t>(begin / kLogitBlock)] < largest.back()) continue;
    for (int64_t v = begin; v < std::min(vocab_size, begin + kLogitBlock); ++v) {
      if (v == forbidden) continue;
      add_if_better(TokenLogit{row.logits[v], static_cast<int32_t>(v)}, count, best,
                    [](const TokenLogit& a, const TokenLogit& b) { return a.logit > b.logit; });
    }
  }
  return best;
}

}  // namespace

double length_penalty(const DecodeOptions& options, int64_t length) {
  const auto tokens = static_cast<double>(length);
  return std::pow(options.length_penalty == LengthPenalty::kGnmt ? (5.0 + tokens) / 6.0 : tokens, options.alpha);
}

const Kinds<SearchKind>& search_kinds() {
#define SEARCH(kind) {#kind, kind##_search},
  static const Kinds<SearchKind> kinds{{
#include "engine/decode/searches.def"
  }};
#undef SEARCH
  return kinds;
}

std::unique_ptr<Beam> make_beam(const DecodeOptions& options, int64_t limit, int32_t eos) {
  return options.kind().make(options, limit, eos);
}

Beam::Beam(const DecodeOptions& options, int64_t limit, int32_t eos)
    : options_(options), limit_(limit), eos_(eos), hypotheses_(1) {
  require(limit >= 1, "search: a limit of no tokens");
}

int64_t Beam::open() const {
  return done_ ? 0
               : std::count_if(hypotheses_.begin(), hypotheses_.end(), [](const Hypothesis& h) { return !h.finished; });
}

void Beam::extend(size_t h, const LogitRow& row, int64_t vocab_size, int64_t at, size_t count, double penalty,
                  std::vector<Candidate>& candidates) const {
  const int32_t forbidden = length_ == 1 && !may_be_empty_ ? eos_ : -1;
  for (const auto& [logit, v] : best_tokens(row, vocab_size, count, forbidden)) {
    const double sum = hypotheses_[h].log_probability + row.log_p(v);
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

bool Beam::stays_best(double score) const {
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
