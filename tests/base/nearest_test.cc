// Suggestions for mistyped names, and none if no name is near.
#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace tearless::nearest_test {
namespace {

const std::vector<std::string> kNames = {"model.norm.kind", "model.norm.eps", "model.d_model", "train.clip_norm"};

TEST(Nearest, FindsANameWithOneTypingError) { EXPECT_EQ(nearest("model.norm.knid", kNames), "model.norm.kind"); }

TEST(Nearest, FindsTheSameLastPart) { EXPECT_EQ(nearest("clip_norm", kNames), "train.clip_norm"); }

TEST(Nearest, PrefersTheWholeNameToALastPart) {
  const std::vector<std::string> names = {"b.eps", "a.epsi"};
  EXPECT_EQ(nearest("b.eps", names), "b.eps");
}

TEST(Nearest, SuggestsNothingForAnotherWord) {
  EXPECT_EQ(nearest("colour", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(did_you_mean("colour", kNames), "");
}

TEST(Nearest, TakesTheFirstOfTwoEquallyNearNames) {
  EXPECT_EQ(nearest("bat", std::vector<std::string>{"cat", "rat"}), "cat");
}

TEST(Nearest, AllowsEditsUpToAThirdOfTheNamePlusOne) {
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"abcxyz"}), "abcxyz");
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"abwxyz"}), "");
  const std::string longest(100, 'x');
  EXPECT_EQ(nearest(longest, std::vector<std::string>{longest + "y", longest}), longest);
  EXPECT_EQ(nearest(longest + "x", std::vector<std::string>{longest}), "");
}

TEST(Nearest, IsPhrasedAsAQuestion) {
  EXPECT_EQ(did_you_mean("model.d_modle", kNames), " (did you mean \"model.d_model\"?)");
}

TEST(Nearest, SkipsTextsThatAreTooLongForAName) {
  const std::string text(1'000'000, 'x');  // a table of a million squared entries would not end
  EXPECT_EQ(nearest(text, std::vector<std::string>{text + "y"}), "");
  EXPECT_EQ(nearest("sed", std::vector<std::string>{text, "seed"}), "seed");
}

}  // namespace
}  // namespace tearless::nearest_test
