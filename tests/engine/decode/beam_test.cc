// The beams against slow searches that follow docs/spec/training.md §1.12 and §6.8 literally: over all possible
// outputs, and over all extensions of a narrow beam. The "model" is a table of log p by prefix, drawn from a seed.
#include "engine/decode/beam.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>

namespace tearless::engine::beam_test {
namespace {

constexpr int32_t kEosType = 1;
using Prefix = std::vector<int32_t>;

/// log p of every next token after a prefix; the same for the same prefix.
class PrefixModel {
 public:
  PrefixModel(uint64_t seed, int64_t vocabulary) : seed_(seed), vocabulary_(vocabulary) {}

  const std::vector<float>& after(const Prefix& prefix) {
    auto [it, made] = rows_.try_emplace(prefix);
    if (made) {
      std::seed_seq seeds(prefix.begin(), prefix.end());
      std::vector<uint32_t> mixed(2);
      seeds.generate(mixed.begin(), mixed.end());
      std::mt19937_64 bits(seed_ * 1'000'003 + mixed[0] + prefix.size());
      std::normal_distribution<double> normal(0, 1.5);
      std::vector<double> z(static_cast<size_t>(vocabulary_));
      double sum = 0;
      for (double& x : z) sum += std::exp(x = normal(bits));
      for (const double x : z) it->second.push_back(static_cast<float>(x - std::log(sum)));
    }
    return it->second;
  }
  int64_t vocabulary() const { return vocabulary_; }

 private:
  uint64_t seed_;
  int64_t vocabulary_;
  std::map<Prefix, std::vector<float>> rows_;
};

std::vector<SearchOutput> outputs_of(PrefixModel& model, const DecodeOptions& options, int64_t limit) {
  const std::unique_ptr<Beam> beam = make_beam(options, limit, kEosType);
  while (!beam->done()) {
    std::vector<const float*> rows;
    for (const Hypothesis& h : beam->hypotheses()) {
      if (!h.finished) rows.push_back(model.after(h.tokens).data());
    }
    EXPECT_EQ(static_cast<int64_t>(rows.size()), beam->open());
    beam->advance(rows, model.vocabulary());
  }
  return beam->best();
}
Prefix search(PrefixModel& model, const DecodeOptions& options, int64_t limit) {
  return outputs_of(model, options, limit).front().tokens;
}

double penalty(size_t tokens, double alpha) {
  // Step 0 ranks by log p alone; from the second token on ((5 + tokens) / 6)^α.
  return tokens == 1 ? 1.0 : std::pow((5.0 + static_cast<double>(tokens)) / 6.0, alpha);
}

Prefix without_eos(Prefix tokens) {
  if (!tokens.empty() && tokens.back() == kEosType) tokens.pop_back();
  return tokens;
}

struct Scored {
  double score;
  Prefix tokens;
};

/// Every output of the search: of kind fairseq it must end.
std::vector<Scored> all_outputs(PrefixModel& model, const DecodeOptions& options, int64_t limit) {
  const bool must_end = options.search == SearchKind::kFairseq;
  std::vector<Scored> all;
  const std::function<void(const Prefix&, double)> collect = [&](const Prefix& prefix, double sum) {
    const std::vector<float> row = model.after(prefix);
    for (int32_t v = 0; v < model.vocabulary(); ++v) {
      if (prefix.empty() && v == kEosType) continue;  // no empty output
      const size_t length = prefix.size() + 1;
      Prefix next = prefix;
      next.push_back(v);
      const double total = sum + static_cast<double>(row[static_cast<size_t>(v)]);
      const double divisor = options.length_penalty == LengthPenalty::kGnmt
                                 ? penalty(length, options.alpha)
                                 : std::pow(static_cast<double>(length), options.alpha);
      const bool at_limit = static_cast<int64_t>(length) == limit;
      if (v == kEosType || (at_limit && !must_end)) {
        all.push_back({total / divisor, next});
      } else if (!at_limit) {
        collect(next, total);
      }
    }
  };
  collect({}, 0);
  std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  return all;
}

std::vector<DecodeOptions> wide_searches() {
  std::vector<DecodeOptions> all;
  for (const SearchKind search : {SearchKind::kTwt, SearchKind::kFairseq}) {
    for (const LengthPenalty penalty : {LengthPenalty::kGnmt, LengthPenalty::kLength}) {
      for (const double alpha : {0.0, 0.6, 2.0}) {
        all.push_back({.search = search, .beam = 200, .length_penalty = penalty, .alpha = alpha, .n_best = 5});
      }
    }
  }
  return all;
}

TEST(Beam, WideEnoughFindsTheBestOfAllOutputsInTheirOrder) {
  int several = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const int64_t limit : {2, 5}) {
      std::set<Prefix> found;
      for (const DecodeOptions& options : wide_searches()) {
        PrefixModel model(seed, 3);
        const std::vector<Scored> all = all_outputs(model, options, limit);
        const std::vector<SearchOutput> best = outputs_of(model, options, limit);
        ASSERT_EQ(best.size(), std::min<size_t>(5, all.size()));
        for (size_t rank = 0; rank < best.size(); ++rank) {
          EXPECT_EQ(best[rank].tokens, without_eos(all[rank].tokens)) << fmt::format(
              "seed {}, search {}, alpha {}, limit {}", seed, static_cast<int>(options.search), options.alpha, limit);
          EXPECT_NEAR(best[rank].score, all[rank].score, 1e-12);
        }
        found.insert(best.front().tokens);
      }
      several += found.size() > 1;
    }
  }
  EXPECT_GT(several, 10) << "neither search nor penalty makes a difference";
}

/// A beam of `width`: every extension of every hypothesis is scored, and the best `width` of all stay.
Prefix literal_beam(PrefixModel& model, int64_t width, double alpha, int64_t limit) {
  struct Entry {
    Prefix tokens;
    double sum = 0, score = 0;
    bool finished = false;
  };
  std::vector<Entry> beam = {Entry{}};
  for (size_t t = 0; static_cast<int64_t>(t) < limit; ++t) {
    std::vector<Entry> candidates;
    for (const Entry& e : beam) {
      if (e.finished) {
        candidates.push_back(e);  // may only "extend" by EOS, at its frozen score
        continue;
      }
      const std::vector<float> row = model.after(e.tokens);
      for (int32_t v = 0; v < model.vocabulary(); ++v) {
        if (t == 0 && v == kEosType) continue;
        Entry next = e;
        next.tokens.push_back(v);
        next.sum += static_cast<double>(row[static_cast<size_t>(v)]);
        next.score = next.sum / penalty(t + 1, alpha);
        next.finished = v == kEosType;
        candidates.push_back(next);
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Entry& a, const Entry& b) { return a.score > b.score; });
    if (static_cast<int64_t>(candidates.size()) > width) candidates.resize(static_cast<size_t>(width));
    beam = candidates;
    if (std::all_of(beam.begin(), beam.end(), [](const Entry& e) { return e.finished; })) break;
  }
  return without_eos(beam.front().tokens);
}

TEST(Beam, KeepsExactlyTheBestExtensionsFinishedAndUnfinishedTogether) {
  int differs_from_greedy = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    PrefixModel model(seed, 6);
    for (const int64_t width : {1, 2, 4, 7}) {
      for (const double alpha : {0.0, 0.6, 1.0}) {
        const Prefix found = search(model, {.beam = width, .alpha = alpha}, 12);
        EXPECT_EQ(found, literal_beam(model, width, alpha, 12))
            << fmt::format("seed {}, beam {}, alpha {}", seed, width, alpha);
        differs_from_greedy += found != literal_beam(model, 1, 0, 12);
      }
    }
  }
  EXPECT_GT(differs_from_greedy, 100) << "the models are too easy: both searches find the same";
}

/// As training.md §6.8 has it, over all extensions. Outputs in the order of their scores.
std::vector<Scored> literal_fairseq(PrefixModel& model, size_t width, double alpha, size_t limit) {
  std::vector<Scored> open = {{0, {}}}, ended;
  for (size_t length = 1; length <= limit && ended.size() < width && !open.empty(); ++length) {
    std::vector<Scored> candidates;
    for (const Scored& h : open) {
      for (int32_t v = 0; v < model.vocabulary(); ++v) {
        if (v == kEosType ? length == 1 : length == limit) continue;
        candidates.push_back({h.score + static_cast<double>(model.after(h.tokens)[static_cast<size_t>(v)]), h.tokens});
        candidates.back().tokens.push_back(v);
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Scored& a, const Scored& b) { return a.score > b.score; });
    if (candidates.size() > 2 * width) candidates.resize(2 * width);
    open.clear();
    for (size_t rank = 0; rank < candidates.size(); ++rank) {
      const Scored& candidate = candidates[rank];
      const bool ends = candidate.tokens.back() == kEosType;
      if (ends && rank < width && ended.size() < width) {
        ended.push_back({candidate.score / std::pow(static_cast<double>(length), alpha), candidate.tokens});
      }
      if (!ends && open.size() < width) open.push_back(candidate);
    }
  }
  std::stable_sort(ended.begin(), ended.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  return ended;
}

TEST(Beam, OfFairseqSetsFinishedHypothesesAside) {
  int differs_from_twt = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    PrefixModel model(seed, 6);
    for (const int64_t width : {1, 2, 4, 7}) {
      for (const double alpha : {0.0, 0.6, 1.0}) {
        DecodeOptions options{.search = SearchKind::kFairseq,
                              .beam = width,
                              .length_penalty = LengthPenalty::kLength,
                              .alpha = alpha,
                              .n_best = width};
        const std::vector<SearchOutput> found = outputs_of(model, options, 12);
        const std::vector<Scored> expected = literal_fairseq(model, static_cast<size_t>(width), alpha, 12);
        const std::string what = fmt::format("seed {}, beam {}, alpha {}", seed, width, alpha);
        ASSERT_EQ(found.size(), expected.size()) << what;
        for (size_t rank = 0; rank < found.size(); ++rank) {
          EXPECT_EQ(found[rank].tokens, without_eos(expected[rank].tokens)) << what;
          EXPECT_NEAR(found[rank].score, expected[rank].score, 1e-12) << what;
        }
        options.search = SearchKind::kTwt;
        differs_from_twt += search(model, options, 12) != found.front().tokens;
      }
    }
  }
  EXPECT_GT(differs_from_twt, 20) << "the models are too easy: both searches find the same";
}

TEST(Beam, OfBothKindsIsGreedyWithOneHypothesis) {
  int ended = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    PrefixModel model(seed, 6);
    const Prefix greedy = search(model, {.beam = 1}, 12);
    if (greedy.size() >= 11) continue;  // at the limit fairseq's must end
    ++ended;
    EXPECT_EQ(search(model, {.search = SearchKind::kFairseq, .beam = 1}, 12), greedy) << "seed " << seed;
  }
  EXPECT_GT(ended, 30);
}

TEST(Beam, NeverGivesAnEmptyOutputNorOneBeyondItsLimit) {
  const std::vector<float> wants_eos = {-9, -0.001f, -9};
  const std::vector<float> never_eos = {-0.001f, -90, -9};
  for (const SearchKind search : {SearchKind::kTwt, SearchKind::kFairseq}) {
    const auto first = make_beam({.search = search, .beam = 4}, 10, kEosType);
    first->advance(std::vector<const float*>{wants_eos.data()}, 3);
    EXPECT_EQ(first->hypotheses().size(), 2u);  // two tokens besides EOS
    for (const Hypothesis& h : first->hypotheses()) EXPECT_FALSE(h.finished);

    const auto endless = make_beam({.search = search, .beam = 1}, 3, kEosType);
    while (!endless->done()) endless->advance(std::vector<const float*>{never_eos.data()}, 3);
    // Of fairseq's the third token is EOS.
    EXPECT_EQ(endless->best().front().tokens, search == SearchKind::kTwt ? (Prefix{0, 0, 0}) : (Prefix{0, 0}));
  }
}

TEST(Beam, WithALimitOfNoTokensIsRefused) {
  for (const SearchKind search : {SearchKind::kTwt, SearchKind::kFairseq}) {
    EXPECT_THROW(make_beam({.search = search, .beam = 2}, 0, kEosType), std::logic_error);
  }
}

TEST(Beam, TiesGoToTheEarlierHypothesisAndTheSmallerToken) {
  const std::vector<float> flat = {-1, -1, -1, -1};
  const auto beam = make_beam({.beam = 2, .alpha = 0}, 2, kEosType);
  beam->advance(std::vector<const float*>{flat.data()}, 4);
  EXPECT_EQ(beam->hypotheses()[0].tokens, Prefix{0});
  EXPECT_EQ(beam->hypotheses()[1].tokens, Prefix{2});
  beam->advance(std::vector<const float*>{flat.data(), flat.data()}, 4);
  EXPECT_EQ(beam->hypotheses()[0].tokens, (Prefix{0, 0}));
}

}  // namespace
}  // namespace tearless::engine::beam_test
