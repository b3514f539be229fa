// data.split_seed = "train.seed": each seed of a run has a split of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/task/classify.h"
#include "tests/engine/run/small_runs.h"

namespace tearless::engine::split_seed_test {
namespace {

using test::Settings;
using test::with;

class SplitBySeed : public testing::Test {
 protected:
  SplitBySeed() {
    for (const char* name : {"bad", "good"}) {
      std::string lines;
      for (int i = 0; i < 20; ++i) lines += fmt::format("a {} film, number {}\n", name, i);
      test::write_text(runs_.folder() / (std::string("all.") + name), lines);
    }
  }

  /// The tokens of the three sets, one after another.
  std::vector<int32_t> split_of(const RunOptions& options) const {
    const auto task = test::task_of(options);
    const LabelledTokens& data = dynamic_cast<const Classify&>(*task).data();
    std::vector<int32_t> tokens;
    for (const LabelledLines* set : {&data.train, &data.dev, &data.test}) {
      for (int64_t i = 0; i < set->size(); ++i) {
        for (const int32_t token : set->lines[static_cast<int32_t>(i)]) tokens.push_back(token);
        tokens.push_back(-1 - set->labels[static_cast<size_t>(i)]);
      }
    }
    return tokens;
  }
  std::vector<int32_t> split_of(const Settings& settings) const { return split_of(runs_.options(settings)); }
  static Settings seeded(const Settings& settings, int seed) { return with(settings, {{"train.seed", seed}}); }

  test::SmallRuns runs_;
  const Settings one_split_ = with(test::labelled_settings(), {{"data.form", "class_files"},
                                                               {"data.train", "all"},
                                                               {"data.dev_count", 10},
                                                               {"data.test_count", 10},
                                                               {"text.min_count", 1},
                                                               {"model.layers", 1}});
  const Settings by_seed_ = with(one_split_, {{"data.split_seed", "train.seed"}});
};

TEST_F(SplitBySeed, TwoSeedsHaveTwoSplitsAndOneSeedHasOne) {
  EXPECT_NE(split_of(seeded(by_seed_, 1)), split_of(seeded(by_seed_, 2)));
  EXPECT_EQ(split_of(seeded(by_seed_, 2)), split_of(with(seeded(by_seed_, 2), {{"model.norm.kind", "none"}})))
      << "what is compared within a seed has the same test set";
  EXPECT_EQ(split_of(seeded(one_split_, 1)), split_of(seeded(one_split_, 2)));
}

TEST_F(SplitBySeed, IsTheSplitOfThatNumber) {
  for (const int seed : {1, 2, 5}) {
    EXPECT_EQ(split_of(seeded(by_seed_, seed)), split_of(with(one_split_, {{"data.split_seed", seed}}))) << seed;
  }
}

TEST_F(SplitBySeed, IsReadBackFromTheRunsFolder) {
  EXPECT_EQ(split_of(read_run_directory(runs_.make(seeded(by_seed_, 2)))), split_of(seeded(by_seed_, 2)));
}

// Else two runs with different test sets would be one.
TEST_F(SplitBySeed, KeepsTheSeedInTheIdWhenNothingElseUsesIt) {
  const Settings others = {{"train.init_seed", 1}, {"train.order_seed", 1}, {"train.dropout_seed", 1}};
  const auto canonical = [&](const Settings& settings, int seed) {
    return runs_.canonical(with(seeded(settings, seed), others));
  };
  EXPECT_NE(canonical(by_seed_, 1), canonical(by_seed_, 2));
  EXPECT_EQ(canonical(one_split_, 1), canonical(one_split_, 2));
}

}  // namespace
}  // namespace tearless::engine::split_seed_test
