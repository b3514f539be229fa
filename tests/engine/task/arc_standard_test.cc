// The arc-standard system: its oracle makes each projective tree, no road of legal transitions is a dead end, and the
// order of children.
#include "engine/task/arc_standard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "engine/data/dependency_trees.h"
#include "tests/engine/data/all_trees.h"

namespace tearless::engine::arc_standard_test {
namespace {

constexpr Transitions kLabelled{.labels = 3, .root_label = 1}, kUnlabelled{.labels = 1, .root_label = 0};

/// Labels that a tree may have: the root's, and any other for the rest.
std::vector<int32_t> labels_for(const std::vector<int32_t>& heads, const Transitions& transitions) {
  std::vector<int32_t> labels;
  for (size_t i = 0; i < heads.size(); ++i) {
    labels.push_back(transitions.labels == 1 ? 0 : heads[i] == 0 ? 1 : i % 2 == 0 ? 0 : 2);
  }
  return labels;
}

std::vector<int32_t> legal_of(const Configuration& configuration, const Transitions& transitions) {
  std::vector<int32_t> legal;
  for (int32_t t = 0; t < transitions.count(); ++t) {
    if (transitions.is_legal(configuration.legal(), t)) legal.push_back(t);
  }
  return legal;
}

TEST(ArcStandard, TheOracleMakesEachProjectiveTreeInTwoTransitionsAWord) {
  for (const Transitions& transitions : {kLabelled, kUnlabelled}) {
    int64_t trees = 0;
    for (int32_t words = 1; words <= 6; ++words) {
      for (const std::vector<int32_t>& heads : test::all_trees(words)) {
        if (!is_projective(heads)) continue;
        const std::vector<int32_t> labels = labels_for(heads, transitions);
        Configuration configuration(words);
        int32_t steps = 0;
        for (; !configuration.is_final() && steps <= 2 * words; ++steps) {
          const int32_t gold = oracle(configuration, transitions, heads, labels);
          ASSERT_TRUE(transitions.is_legal(configuration.legal(), gold)) << testing::PrintToString(heads);
          configuration.apply(transitions, gold);
        }
        EXPECT_EQ(steps, 2 * words);
        for (int32_t word = 1; word <= words; ++word) {
          EXPECT_EQ(configuration.head(word), heads[word - 1]) << testing::PrintToString(heads);
          EXPECT_EQ(configuration.label(word), labels[word - 1]);
        }
        ++trees;
      }
    }
    EXPECT_EQ(trees, 1 + 2 + 7 + 30 + 143 + 728);
  }
}

TEST(ArcStandard, AnyLegalTransitionsEndInATreeWithOneRootAndItsLabel) {
  constexpr unsigned kSeed = 5;
  std::mt19937 random(kSeed);
  for (const Transitions& transitions : {kLabelled, kUnlabelled}) {
    for (int trial = 0; trial < 300; ++trial) {
      const int32_t words = 1 + static_cast<int32_t>(random() % 9);
      Configuration configuration(words);
      int32_t steps = 0;
      while (!configuration.is_final()) {
        const std::vector<int32_t> legal = legal_of(configuration, transitions);
        ASSERT_FALSE(legal.empty()) << "a dead end, seed " << kSeed << ", trial " << trial;
        configuration.apply(transitions, legal[random() % legal.size()]);
        ++steps;
      }
      EXPECT_EQ(steps, 2 * words);
      int roots = 0;
      for (int32_t word = 1; word <= words; ++word) {
        roots += configuration.head(word) == 0;
        if (transitions.labels > 1) {
          EXPECT_EQ(configuration.label(word) == transitions.root_label, configuration.head(word) == 0);
        }
      }
      EXPECT_EQ(roots, 1);
      EXPECT_THROW(configuration.apply(transitions, transitions.shift()), std::logic_error) << "it is final";
    }
  }
}

TEST(ArcStandard, ATransitionThatIsNotLegalIsNotMade) {
  Configuration configuration(2);
  EXPECT_THROW(configuration.apply(kLabelled, kLabelled.left(0)), std::logic_error);
  configuration.apply(kLabelled, kLabelled.shift());
  EXPECT_THROW(configuration.apply(kLabelled, kLabelled.right(1)), std::logic_error) << "the buffer has a word";
  configuration.apply(kLabelled, kLabelled.shift());
  EXPECT_THROW(configuration.apply(kLabelled, kLabelled.shift()), std::logic_error);
  EXPECT_THROW(configuration.apply(kLabelled, kLabelled.left(1)), std::logic_error) << "the root's label";
  configuration.apply(kLabelled, kLabelled.left(0));
  EXPECT_THROW(configuration.apply(kLabelled, kLabelled.right(0)), std::logic_error) << "ROOT has its label alone";
  configuration.apply(kLabelled, kLabelled.right(1));
  EXPECT_TRUE(configuration.is_final());
}

// "a b c d e" with c above all: a and b are its left children, e and d its right ones.
TEST(ArcStandard, ChildrenAreCountedFromTheirOuterEnd) {
  const std::vector<int32_t> heads = {3, 3, 0, 3, 3}, labels = {0, 0, 0, 0, 0};
  Configuration configuration(5);
  EXPECT_EQ(configuration.stack(1), 0);
  EXPECT_EQ(configuration.stack(2), Configuration::kNone);
  EXPECT_EQ(configuration.buffer(1), 1);
  EXPECT_EQ(configuration.buffer(5), 5);
  EXPECT_EQ(configuration.buffer(6), Configuration::kNone);
  for (int step = 0; step < 9; ++step) {
    configuration.apply(kUnlabelled, oracle(configuration, kUnlabelled, heads, labels));
  }
  EXPECT_EQ(configuration.stack(1), 3);
  EXPECT_EQ(configuration.stack(2), 0);
  EXPECT_EQ(configuration.buffer(1), Configuration::kNone);
  EXPECT_EQ(configuration.left_child(3, 1), 1);
  EXPECT_EQ(configuration.left_child(3, 2), 2);
  EXPECT_EQ(configuration.left_child(3, 3), Configuration::kNone);
  EXPECT_EQ(configuration.right_child(3, 1), 5);
  EXPECT_EQ(configuration.right_child(3, 2), 4);
  EXPECT_EQ(configuration.right_child(Configuration::kNone, 1), Configuration::kNone);
  EXPECT_EQ(configuration.children(3), 4);
}

}  // namespace
}  // namespace tearless::engine::arc_standard_test
