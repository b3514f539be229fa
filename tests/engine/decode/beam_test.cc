// The beam against two slow searches that follow docs/spec/training.md §1.12 literally: over all possible outputs, and
// over all extensions of a narrow beam. The "model" is a table of log p by prefix, drawn from a seed.
#include "engine/decode/beam.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

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

Prefix search(PrefixModel& model, const DecodeOptions& options, int64_t limit) {
  Beam beam(options, limit, kEosType);
  while (!beam.done()) {
    std::vector<const float*> rows;
    for (const Hypothesis& h : beam.hypotheses()) {
      if (!h.finished) rows.push_back(model.after(h.tokens).data());
    }
    EXPECT_EQ(static_cast<int64_t>(rows.size()), beam.open());
    beam.advance(rows, model.vocabulary());
  }
  return beam.best();
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

void collect_all(PrefixModel& model, double alpha, int64_t limit, Prefix& prefix, double sum,
                 std::vector<Scored>& all) {
  const std::vector<float> row = model.after(prefix);
  for (int32_t v = 0; v < model.vocabulary(); ++v) {
    if (prefix.empty() && v == kEosType) continue;  // no empty output
    prefix.push_back(v);
    const double total = sum + static_cast<double>(row[static_cast<size_t>(v)]);
    if (v == kEosType || static_cast<int64_t>(prefix.size()) == limit) {
      all.push_back({total / penalty(prefix.size(), alpha), prefix});
    } else {
      collect_all(model, alpha, limit, prefix, total, all);
    }
    prefix.pop_back();
  }
}

Prefix exhaustive(PrefixModel& model, double alpha, int64_t limit) {
  std::vector<Scored> all;
  Prefix prefix;
  collect_all(model, alpha, limit, prefix, 0, all);
  return without_eos(std::max_element(all.begin(), all.end(), [](const Scored& a, const Scored& b) {
                       return a.score < b.score;
                     })->tokens);
}

TEST(Beam, WideEnoughFindsTheBestOfAllOutputs) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const double alpha : {0.0, 0.6, 2.0}) {
      for (const int64_t limit : {1, 2, 5}) {
        PrefixModel model(seed, 3);
        const DecodeOptions options{.beam = 200, .alpha = alpha};
        EXPECT_EQ(search(model, options, limit), exhaustive(model, alpha, limit))
            << fmt::format("seed {}, alpha {}, limit {}", seed, alpha, limit);
      }
    }
  }
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

TEST(Beam, NeverGivesAnEmptyOutputNorOneBeyondItsLimit) {
  const std::vector<float> wants_eos = {-9, -0.001f, -9};
  const std::vector<float> never_eos = {-0.001f, -90, -9};
  Beam first({.beam = 4}, 10, kEosType);
  first.advance(std::vector<const float*>{wants_eos.data()}, 3);
  EXPECT_EQ(first.hypotheses().size(), 2u);  // two tokens besides EOS
  for (const Hypothesis& h : first.hypotheses()) EXPECT_FALSE(h.finished);

  Beam endless({.beam = 1}, 3, kEosType);
  while (!endless.done()) endless.advance(std::vector<const float*>{never_eos.data()}, 3);
  EXPECT_EQ(endless.best(), (Prefix{0, 0, 0}));
}

TEST(Beam, TiesGoToTheEarlierHypothesisAndTheSmallerToken) {
  const std::vector<float> flat = {-1, -1, -1, -1};
  Beam beam({.beam = 2, .alpha = 0}, 2, kEosType);
  beam.advance(std::vector<const float*>{flat.data()}, 4);
  EXPECT_EQ(beam.hypotheses()[0].tokens, Prefix{0});
  EXPECT_EQ(beam.hypotheses()[1].tokens, Prefix{2});
  beam.advance(std::vector<const float*>{flat.data(), flat.data()}, 4);
  EXPECT_EQ(beam.hypotheses()[0].tokens, (Prefix{0, 0}));
}

}  // namespace
}  // namespace tearless::engine::beam_test
