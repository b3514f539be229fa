#include "engine/decode/beam.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace tearless::engine {
namespace {

struct Candidate {
  double score;
  double log_probability;
  size_t hypothesis;
  int64_t row;    // -1: a finished hypothesis that stays
  int32_t token;  // -1: likewise
};

/// Better first; ties go to the earlier hypothesis, then to the smaller token, so that the result is unique.
bool better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.hypothesis != b.hypothesis) return a.hypothesis < b.hypothesis;
  return a.token < b.token;
}

struct TokenScore {
  float log_p;
  int32_t token;
};

/// The `count` best tokens of a row without `forbidden`, better first, ties to the smaller token. Blocks whose maximum
/// is too small are skipped.
std::vector<TokenScore> best_tokens(std::span<const float> row, size_t count, int32_t forbidden) {
  constexpr size_t kBlock = 32;
  std::vector<TokenScore> best;
  float bound = -std::numeric_limits<float>::infinity();  // a token must exceed it
  for (size_t begin = 0; begin < row.size(); begin += kBlock) {
    const size_t end = std::min(row.size(), begin + kBlock);
    float largest = row[begin];
#pragma omp simd reduction(max : largest)
    for (size_t v = begin; v < end; ++v) largest = std::max(largest, row[v]);
    if (best.size() == count && !(largest > bound)) continue;
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

Beam::Beam(const DecodeOptions& options, int64_t limit, int32_t eos)
    : options_(options), limit_(limit), eos_(eos), hypotheses_(1) {
  assert(limit >= 1);
}

int64_t Beam::open() const {
  return done_ ? 0
               : std::count_if(hypotheses_.begin(), hypotheses_.end(), [](const Hypothesis& h) { return !h.finished; });
}

std::vector<int64_t> Beam::advance(std::span<const float* const> rows, int64_t vocab_size) {
  const bool first = length_ == 0;
  ++length_;
  const auto beam = static_cast<size_t>(options_.beam);
  const double penalty = first ? 1.0 : std::pow((5.0 + static_cast<double>(length_)) / 6.0, options_.alpha);

  std::vector<Candidate> candidates;
  int64_t row = 0;
  for (size_t h = 0; h < hypotheses_.size(); ++h) {
    if (hypotheses_[h].finished) {
      candidates.push_back({hypotheses_[h].score, hypotheses_[h].log_probability, h, -1, -1});
      continue;
    }
    // Within one hypothesis the score is monotonic in log p, so only its `beam` best tokens can survive.
    for (const auto& [log_p, v] :
         best_tokens({rows[static_cast<size_t>(row)], static_cast<size_t>(vocab_size)}, beam, first ? eos_ : -1)) {
      const double sum = hypotheses_[h].log_probability + static_cast<double>(log_p);
      candidates.push_back({sum / penalty, sum, h, row, v});
    }
    ++row;
  }
  const size_t kept = std::min(beam, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept), candidates.end(),
                    better);
  candidates.resize(kept);

  std::vector<Hypothesis> next;
  std::vector<int64_t> parents;
  for (const Candidate& c : candidates) {
    Hypothesis h = hypotheses_[c.hypothesis];
    if (c.token >= 0) {
      h.tokens.push_back(c.token);
      h.log_probability = c.log_probability;
      h.score = c.score;
      h.finished = c.token == eos_;
      if (!h.finished) parents.push_back(c.row);
    }
    next.push_back(std::move(h));
  }
  hypotheses_ = std::move(next);
  done_ = parents.empty() || length_ >= limit_;
  if (done_) parents.clear();
  return parents;
}

std::vector<int32_t> Beam::best() const {
  const auto winner = std::max_element(hypotheses_.begin(), hypotheses_.end(),
                                       [](const Hypothesis& a, const Hypothesis& b) { return a.score < b.score; });
  std::vector<int32_t> tokens = winner->tokens;
  if (winner->finished) tokens.pop_back();
  return tokens;
}

}  // namespace tearless::engine
