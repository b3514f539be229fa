// The beams against slow searches that follow docs/spec/training.md §1.12, §4.4, §5 and §6.8 literally: over all
// possible outputs, and over all extensions of a narrow beam. The "model" is a table of log p by prefix, drawn from a
// seed.
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
#include <tuple>

#include "engine/ops/kernels.h"
#include "tests/engine/decode/literal_t2t.h"

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

std::vector<SearchOutput> outputs_of(PrefixModel& model, const DecodeOptions& options, int64_t limit,
                                     int64_t* positions = nullptr) {
  const std::unique_ptr<Beam> beam = make_beam(options, limit, kEosType);
  while (!beam->done()) {
    std::vector<LogitRow> rows;
    for (const Hypothesis& h : beam->hypotheses()) {
      if (!h.finished) rows.push_back({model.after(h.tokens).data()});
    }
    EXPECT_EQ(static_cast<int64_t>(rows.size()), beam->open());
    beam->advance(rows, model.vocabulary());
    if (positions) ++*positions;
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
  const bool must_end = options.search == "fairseq";
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
  for (const char* const search : {"twt", "fairseq"}) {
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
          EXPECT_EQ(best[rank].tokens, without_eos(all[rank].tokens))
              << fmt::format("seed {}, search {}, alpha {}, limit {}", seed, options.search, options.alpha, limit);
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
        DecodeOptions options{.search = "fairseq",
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
        options.search = "twt";
        differs_from_twt += search(model, options, 12) != found.front().tokens;
      }
    }
  }
  EXPECT_GT(differs_from_twt, 20) << "the models are too easy: both searches find the same";
}

// A search for several outputs goes on as the papers' codes do.
TEST(Beam, ForOneOutputEndsWhereNothingCanBecomeBetter) {
  for (const char* const kind : {"twt", "fairseq"}) {
    int64_t positions = 0, of_all = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      PrefixModel model(seed, 6);
      for (const auto& [beam, alpha, penalty, limit] : {std::tuple{4, 0.0, LengthPenalty::kGnmt, 12},
                                                        {4, 0.6, LengthPenalty::kGnmt, 12},
                                                        {4, 1.0, LengthPenalty::kLength, 12},
                                                        {2, 10.0, LengthPenalty::kGnmt, 12},
                                                        {3, 0.6, LengthPenalty::kLength, 2},
                                                        {2, 0.6, LengthPenalty::kGnmt, 1}}) {
        const DecodeOptions one{.search = kind, .beam = beam, .length_penalty = penalty, .alpha = alpha, .n_best = 1};
        DecodeOptions all = one;
        all.n_best = beam;
        const SearchOutput found = outputs_of(model, one, limit, &positions).front();
        const SearchOutput expected = outputs_of(model, all, limit, &of_all).front();
        EXPECT_EQ(found.tokens, expected.tokens) << fmt::format("seed {}, alpha {}, limit {}", seed, alpha, limit);
        EXPECT_EQ(found.score, expected.score);
      }
    }
    EXPECT_LT(positions, 0.9 * static_cast<double>(of_all)) << kind;
  }
}

void expect_same(const std::vector<SearchOutput>& found, const std::vector<SearchOutput>& expected, size_t at_most,
                 const std::string& what) {
  ASSERT_EQ(found.size(), std::min(at_most, expected.size())) << what;
  for (size_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_EQ(found[rank].tokens, expected[rank].tokens) << what << ", rank " << rank;
    EXPECT_NEAR(found[rank].score, expected[rank].score, 1e-12) << what;
  }
}

TEST(Beam, OfT2tEndsWhenNoUnfinishedHypothesisCanBecomeBetterThanItsWorstFinishedOne) {
  int differs_from_twt = 0, differs_from_fairseq = 0, ends_early = 0, has_empty_slots = 0, at_the_limit = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    PrefixModel model(seed, 6);
    for (const int64_t width : {1, 2, 4, 7}) {
      for (const LengthPenalty penalty : {LengthPenalty::kGnmt, LengthPenalty::kLength}) {
        for (const double alpha : {0.0, 0.6, 3.0}) {
          for (const int64_t limit : {1, 2, 4, 6, 12}) {
            DecodeOptions options{
                .search = "t2t", .beam = width, .length_penalty = penalty, .alpha = alpha, .n_best = width};
            const test::LiteralSentence sentence{[&](const Prefix& prefix) { return model.after(prefix); }, limit};
            const test::LiteralOutcome expected = test::literal_t2t({sentence}, options, kEosType).front();
            int64_t positions = 0;
            const std::vector<SearchOutput> found = outputs_of(model, options, limit, &positions);
            const std::string what = fmt::format("seed {}, beam {}, alpha {}, limit {}", seed, width, alpha, limit);
            expect_same(found, expected.ranked, static_cast<size_t>(width), what);
            EXPECT_EQ(positions, expected.positions) << what;
            if (limit < 12) continue;
            ends_early += expected.positions < limit;
            at_the_limit += expected.positions == limit;
            has_empty_slots += std::ssize(expected.ranked) < width;
            options.search = "twt";
            differs_from_twt += search(model, options, limit) != found.front().tokens;
            options.search = "fairseq";
            differs_from_fairseq += search(model, options, limit) != found.front().tokens;
          }
        }
      }
    }
  }
  for (const int met : {differs_from_twt, differs_from_fairseq, ends_early, has_empty_slots, at_the_limit}) {
    EXPECT_GT(met, 20) << "the models are too easy: what sets the search apart does not happen";
  }
}

std::vector<float> logs(std::vector<double> p) {
  std::vector<float> row;
  for (const double x : p) row.push_back(static_cast<float>(std::log(x)));
  return row;
}

// The columns are a, EOS, b. With α = 0, a EOS has .81 and b EOS .09; of what is unfinished a b has most, .081.
TEST(Beam, OfT2tEndsWithEmptySlotsIfThoseThatAreFilledAreGoodEnough) {
  const std::vector<float> first = logs({0.9, 1e-9, 0.1}), second = logs({0.01, 0.9, 0.09});
  DecodeOptions options{.search = "t2t", .beam = 3, .alpha = 0, .n_best = 3};
  const auto beam = make_beam(options, 10, kEosType);
  EXPECT_EQ(beam->advance(std::vector<LogitRow>{{first.data()}}, 3).size(), 2u);
  EXPECT_FALSE(beam->may_end());
  EXPECT_TRUE(beam->advance(std::vector<LogitRow>{{second.data()}, {second.data()}}, 3).empty());
  EXPECT_TRUE(beam->done());
  ASSERT_EQ(beam->best().size(), 2u);
  EXPECT_EQ(beam->best()[0].tokens, Prefix{0});
  EXPECT_NEAR(beam->best()[0].score, std::log(0.81), 1e-6);

  // Divided by the penalty of the limit an unfinished one may still become better: (5 + 100) / 6 to the third.
  options.alpha = 3;
  const auto patient = make_beam(options, 100, kEosType);
  patient->advance(std::vector<LogitRow>{{first.data()}}, 3);
  EXPECT_FALSE(patient->advance(std::vector<LogitRow>{{second.data()}, {second.data()}}, 3).empty());
  EXPECT_FALSE(patient->may_end());
}

// With α = 0, a EOS, b EOS, a a and b a have .2 each.
TEST(Beam, OfT2tContinuesWhileAnUnfinishedHypothesisIsAsGoodAsItsWorstFinishedOne) {
  const std::vector<float> first = logs({0.5, 1e-9, 0.5}), second = logs({0.4, 0.4, 0.2});
  const auto beam = make_beam({.search = "t2t", .beam = 2, .alpha = 0}, 10, kEosType);
  beam->advance(std::vector<LogitRow>{{first.data()}}, 3);
  EXPECT_EQ(beam->advance(std::vector<LogitRow>{{second.data()}, {second.data()}}, 3).size(), 2u);
  EXPECT_FALSE(beam->may_end());
}

// In a batch that ends together the shorter sentence continues past its limit, where all of it is finished.
TEST(Beam, OfT2tIsFinishedAtTheFirstPositionPastItsLimitInABatch) {
  const std::vector<float> never_eos = logs({0.7, 1e-30, 0.3});
  DecodeOptions options{.search = "t2t", .stop = SearchStop::kBatch, .beam = 2, .alpha = 0, .n_best = 2};
  const auto beam = make_beam(options, 2, kEosType);
  beam->advance(std::vector<LogitRow>{{never_eos.data()}}, 3);
  const std::vector<LogitRow> rows = {{never_eos.data()}, {never_eos.data()}};
  EXPECT_EQ(beam->advance(rows, 3).size(), 2u) << "at its limit nothing has become of it";
  EXPECT_FALSE(beam->done());
  EXPECT_FALSE(beam->may_end());
  EXPECT_EQ(beam->best()[0].tokens, (Prefix{0, 0})) << "outputs are unfinished if there are no others";
  EXPECT_TRUE(beam->advance(rows, 3).empty());
  EXPECT_TRUE(beam->done() && beam->may_end());
  EXPECT_EQ(beam->open(), 0);
  ASSERT_EQ(beam->best().size(), 2u);
  EXPECT_EQ(beam->best()[0].tokens, (Prefix{0, 0, 0}));
  EXPECT_EQ(beam->best()[1].tokens, (Prefix{0, 0, 2}));

  options.stop = SearchStop::kSentence;
  const auto alone = make_beam(options, 2, kEosType);
  alone->advance(std::vector<LogitRow>{{never_eos.data()}}, 3);
  EXPECT_TRUE(alone->advance(rows, 3).empty()) << "by itself it ends at its limit";
  EXPECT_EQ(alone->best()[0].tokens, (Prefix{0, 0}));
}

/// As training.md §5 has it, over all extensions. All that is recorded, cut at EOS, the best first.
std::vector<SearchOutput> literal_joey(PrefixModel& model, size_t width, double alpha, size_t limit) {
  std::vector<Scored> places = {{0, {}}};  // the sums
  std::vector<int> flags(width, 0);
  std::vector<Scored> recorded;
  for (size_t length = 1; length <= limit && std::ranges::count(flags, 1) < std::ssize(flags); ++length) {
    const double divisor = std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
    std::vector<Scored> candidates;
    for (const Scored& place : places) {
      for (int32_t v = 0; v < model.vocabulary(); ++v) {
        candidates.push_back(
            {place.score + static_cast<double>(model.after(place.tokens)[static_cast<size_t>(v)]), place.tokens});
        candidates.back().tokens.push_back(v);
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Scored& a, const Scored& b) { return a.score > b.score; });
    places.assign(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(width));
    for (size_t i = 0; i < width; ++i) {
      if (places[i].tokens.back() == kEosType || length == limit) flags[i] = 1;
      if (flags[i] == 0 || std::ranges::count(places[i].tokens, kEosType) >= 2) continue;
      recorded.push_back({places[i].score / divisor, places[i].tokens});
    }
  }
  std::stable_sort(recorded.begin(), recorded.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
  std::vector<SearchOutput> outputs;
  for (Scored& one : recorded) {
    one.tokens.erase(std::ranges::find(one.tokens, kEosType), one.tokens.end());
    outputs.push_back({one.tokens, one.score});
  }
  return outputs;
}

TEST(Beam, OfJoeyExtendsWhatHasEndedAndRecordsWhatIsOnFlaggedPlaces) {
  int differs_from_twt = 0, differs_from_t2t = 0, empty = 0, many_recorded = 0, at_the_limit = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    PrefixModel model(seed, 8);
    for (const int64_t width : {1, 2, 5, 7}) {
      for (const double alpha : {0.0, 1.0, 3.0}) {
        for (const int64_t limit : {1, 2, 12}) {
          DecodeOptions options{.search = "joey", .beam = width, .alpha = alpha, .n_best = width};
          const std::vector<SearchOutput> expected =
              literal_joey(model, static_cast<size_t>(width), alpha, static_cast<size_t>(limit));
          const std::vector<SearchOutput> found = outputs_of(model, options, limit);
          expect_same(found, expected, static_cast<size_t>(width),
                      fmt::format("seed {}, beam {}, alpha {}, limit {}", seed, width, alpha, limit));
          empty += found.front().tokens.empty();
          if (limit < 12) continue;
          many_recorded += std::ssize(expected) > width;
          at_the_limit += std::ssize(found.front().tokens) == limit;
          options.search = "twt";
          differs_from_twt += search(model, options, limit) != found.front().tokens;
          options.search = "t2t";
          differs_from_t2t += search(model, options, limit) != found.front().tokens;
        }
      }
    }
  }
  for (const int met : {differs_from_twt, differs_from_t2t, empty, many_recorded, at_the_limit}) {
    EXPECT_GT(met, 20) << "the models are too easy: what sets the search apart does not happen";
  }
}

// The columns are a, EOS, b. Step by step, with two places and α = 0.
TEST(Beam, OfJoeyLeavesTheFlagWithThePlace) {
  const auto beam = make_beam({.search = "joey", .beam = 2, .alpha = 0, .n_best = 9}, 10, kEosType);
  const std::vector<float> first = logs({0.5, 0.3, 0.2});
  beam->advance(std::vector<LogitRow>{{first.data()}}, 3);  // place 0: a, .5; place 1: EOS, .3, flagged
  EXPECT_EQ(beam->open(), 2) << "what has ended is extended, too";
  EXPECT_EQ(beam->hypotheses()[1].tokens, Prefix{1});
  const std::vector<float> of_a = logs({0.2, 0.1, 0.7}), of_eos = logs({0.98, 0.01, 0.01});
  // .35 a b on place 0; .294 EOS a on place 1, which is recorded again, with that score.
  EXPECT_EQ(beam->advance(std::vector<LogitRow>{{of_a.data()}, {of_eos.data()}}, 3), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(beam->hypotheses()[1].tokens, (Prefix{1, 0}));
  const std::vector<float> of_ab = logs({0.8, 0.1, 0.1}), of_eos_a = logs({0.98, 0.01, 0.01});
  // .288 EOS a a on place 0, which has no flag, so nothing is recorded of it; .28 a b a on place 1 is, without EOS.
  EXPECT_EQ(beam->advance(std::vector<LogitRow>{{of_ab.data()}, {of_eos_a.data()}}, 3), (std::vector<int64_t>{1, 0}));
  EXPECT_FALSE(beam->done());
  const std::vector<float> ends = logs({0.005, 0.99, 0.005});
  EXPECT_TRUE(beam->advance(std::vector<LogitRow>{{ends.data()}, {ends.data()}}, 3).empty());
  // EOS a a EOS flags place 0 and has EOS twice; a b a EOS, .277, is recorded after .3, .294 and .28.
  EXPECT_TRUE(beam->done());
  EXPECT_EQ(beam->open(), 0);
  const std::vector<std::pair<Prefix, double>> recorded = {
      {{}, 0.3}, {{}, 0.3 * 0.98}, {{0, 2, 0}, 0.28}, {{0, 2, 0}, 0.28 * 0.99}};
  const std::vector<SearchOutput> best = beam->best();
  ASSERT_EQ(best.size(), recorded.size());
  for (size_t i = 0; i < best.size(); ++i) {
    EXPECT_EQ(best[i].tokens, recorded[i].first);
    EXPECT_NEAR(best[i].score, std::log(recorded[i].second), 1e-6);
  }
}

TEST(Beam, OfJoeyIsGreedyWithOnePlaceAndMayBeEmpty) {
  int ended = 0, empty = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    PrefixModel model(seed, 6);
    Prefix greedy;
    while (greedy.size() < 12) {
      const std::vector<float>& row = model.after(greedy);
      const auto token = static_cast<int32_t>(std::ranges::max_element(row) - row.begin());
      if (token == kEosType) break;
      greedy.push_back(token);
    }
    for (const double alpha : {0.0, 1.0}) {
      EXPECT_EQ(search(model, {.search = "joey", .beam = 1, .alpha = alpha}, 12), greedy) << "seed " << seed;
    }
    ended += greedy.size() < 12;
    empty += greedy.empty();
  }
  EXPECT_GT(ended, 30);
  EXPECT_GT(empty, 3);
}

TEST(Beam, OfJoeyWithMorePlacesThanTokensHasItsEmptyPlacesFlagged) {
  const std::vector<float> first = logs({0.5, 0.3, 0.2});
  const auto beam = make_beam({.search = "joey", .beam = 4, .alpha = 0, .n_best = 4}, 10, kEosType);
  EXPECT_EQ(beam->advance(std::vector<LogitRow>{{first.data()}}, 3).size(), 3u);
  const std::vector<LogitRow> rows(3, {first.data()});
  // a a, a EOS, EOS a and a b have .25, .15, .15 and .1; place 3 was empty, so a b is recorded.
  EXPECT_EQ(beam->advance(rows, 3).size(), 4u);
  EXPECT_EQ(beam->best().back().tokens, (Prefix{0, 2}));
}

TEST(Beam, OfBothKindsIsGreedyWithOneHypothesis) {
  int ended = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    PrefixModel model(seed, 6);
    const Prefix greedy = search(model, {.beam = 1}, 12);
    if (greedy.size() >= 11) continue;  // at the limit fairseq's must end
    ++ended;
    EXPECT_EQ(search(model, {.search = "fairseq", .beam = 1}, 12), greedy) << "seed " << seed;
  }
  EXPECT_GT(ended, 30);
}

TEST(Beam, NeverGivesAnEmptyOutputNorOneBeyondItsLimit) {
  const std::vector<float> wants_eos = {-9, -0.001f, -9};
  const std::vector<float> never_eos = {-0.001f, -90, -9};
  for (const std::string search : {"twt", "fairseq", "t2t"}) {
    const auto first = make_beam({.search = search, .beam = 4}, 10, kEosType);
    first->advance(std::vector<LogitRow>{{wants_eos.data()}}, 3);
    EXPECT_EQ(first->hypotheses().size(), 2u);  // two tokens besides EOS
    for (const Hypothesis& h : first->hypotheses()) EXPECT_FALSE(h.finished);

    const auto endless = make_beam({.search = search, .beam = 1}, 3, kEosType);
    while (!endless->done()) endless->advance(std::vector<LogitRow>{{never_eos.data()}}, 3);
    // Of fairseq's the third token is EOS.
    EXPECT_EQ(endless->best().front().tokens, search == "fairseq" ? (Prefix{0, 0}) : (Prefix{0, 0, 0}));
  }
}

// With odd seeds whole numbers, so that many tokens are as good as others. At position 0 the best is EOS, which is
// forbidden there but in joey.
TEST(Beam, ChoosesTheSameWithTheMaximaOfBlocksAsFromAllTokens) {
  constexpr int64_t kVocabulary = 200, kBlocks = (kVocabulary + kLogitBlock - 1) / kLogitBlock;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const std::string_view kind : search_kinds().names()) {
      SCOPED_TRACE(fmt::format("seed {}, {}", seed, kind));
      std::mt19937_64 bits(seed);
      std::uniform_real_distribution<float> number(0, 12);
      const DecodeOptions options{.search = std::string(kind), .beam = 1 + static_cast<int64_t>(seed % 4)};
      const auto beam = make_beam(options, 6, kEosType), from_all = make_beam(options, 6, kEosType);
      while (!from_all->done()) {
        std::vector<std::vector<float>> logits, maxima;
        std::vector<LogitRow> rows, all;
        const auto open = static_cast<size_t>(from_all->open());
        for (size_t i = 0; i < open; ++i) {
          std::vector<float>& z = logits.emplace_back(kVocabulary);
          std::vector<float>& of_blocks = maxima.emplace_back(kBlocks, -1.0f);
          double sum = 0;
          for (size_t v = 0; v < z.size(); ++v) {
            z[v] = seed % 2 == 1 ? std::floor(number(bits)) : number(bits);
            if (v == kEosType && from_all->hypotheses()[0].tokens.empty()) z[v] = 13;
            sum += std::exp(z[v]);
            float& of_block = of_blocks[v / static_cast<size_t>(kLogitBlock)];
            of_block = std::max(of_block, z[v]);
          }
          const auto log_sum = static_cast<float>(std::log(sum));
          rows.push_back({z.data(), log_sum, of_blocks});
          all.push_back({z.data(), log_sum});
        }
        ASSERT_EQ(beam->advance(rows, kVocabulary), from_all->advance(all, kVocabulary));
      }
      EXPECT_EQ(beam->best(), from_all->best());
    }
  }
}

TEST(Beam, WithALimitOfNoTokensIsRefused) {
  for (const std::string_view search : search_kinds().names()) {
    EXPECT_THROW(make_beam({.search = std::string(search), .beam = 2}, 0, kEosType), std::logic_error);
  }
}

TEST(Beam, TiesGoToTheEarlierHypothesisAndTheSmallerToken) {
  const std::vector<float> flat = {-1, -1, -1, -1};
  const auto beam = make_beam({.beam = 2, .alpha = 0}, 2, kEosType);
  beam->advance(std::vector<LogitRow>{{flat.data()}}, 4);
  EXPECT_EQ(beam->hypotheses()[0].tokens, Prefix{0});
  EXPECT_EQ(beam->hypotheses()[1].tokens, Prefix{2});
  beam->advance(std::vector<LogitRow>{{flat.data()}, {flat.data()}}, 4);
  EXPECT_EQ(beam->hypotheses()[0].tokens, (Prefix{0, 0}));
}

}  // namespace
}  // namespace tearless::engine::beam_test
