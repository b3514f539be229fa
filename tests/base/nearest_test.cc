// Suggestions for mistyped names, and none if no name is near.
#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace tearless::nearest_test {
namespace {

const std::vector<std::string> kNames = {
    "task",
    "data.train",
    "data.train_sha256",
    "data.test",
    "decode.kind",
    "train.clip_norm",
    "train.dropout_seed",
    "train.schedule.kind",
    "train.schedule.lr",
    "train.schedule.warmup_updates",
    "train.batch.tokens",
    "model.d_ff",
    "model.d_model",
    "model.fix_norm",
    "model.placement",
    "model.ds_init.alpha",
    "model.dropout.attention",
    "model.norm.kind",
    "model.norm.scope",
    "model.norm.eps",
    "model.norm.eps_mode",
};

TEST(Nearest, FindsTheKeyInWhichTwoLettersChangedPlacesWhicheverTheyAre) {
  EXPECT_EQ(nearest("model.nrom.kind", kNames), "model.norm.kind");
  for (const std::string& name : kNames) {
    for (size_t i = 1; i < name.size(); ++i) {
      std::string typed = name;
      std::swap(typed[i - 1], typed[i]);
      EXPECT_EQ(nearest(typed, kNames), name) << typed;
    }
  }
}

TEST(Nearest, FindsTheKeyOfWhichALetterIsMissingWhicheverItIs) {
  for (const std::string& name : kNames) {
    for (size_t i = 0; i < name.size(); ++i) {
      std::string typed = name;
      typed.erase(i, 1);
      EXPECT_EQ(nearest(typed, kNames), name) << typed;
    }
  }
}

TEST(Nearest, CountsTwoLettersThatChangedPlacesAsOneMistake) {
  EXPECT_EQ(nearest("abdc", std::vector<std::string>{"abxyc", "abcd"}), "abcd");
  EXPECT_EQ(nearest("ab", std::vector<std::string>{"ba"}), "ba") << "at its limit, where two would be too many";
}

TEST(Nearest, FindsTheKeyOfWhichPartsAreMissing) {
  EXPECT_EQ(nearest("clip_norm", kNames), "train.clip_norm");
  EXPECT_EQ(nearest("norm.eps", kNames), "model.norm.eps");
  EXPECT_EQ(nearest("model.kind", kNames), "model.norm.kind");
  EXPECT_EQ(nearest("train.warmup_updates", kNames), "train.schedule.warmup_updates");
  EXPECT_EQ(nearest("lr", kNames), "train.schedule.lr");
  EXPECT_EQ(nearest("nrom.kind", kNames), "model.norm.kind");
}

TEST(Nearest, DoesNotTakeTheSameLastPartOrTheSameFirstPartsForTheSameKey) {
  const std::vector<std::string> names = {"train.schedule.kind", "train.schedule.lr"};
  EXPECT_EQ(nearest("model.nrom.kind", names), "");
  EXPECT_EQ(nearest("train.schedule.colour", names), "");
}

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

TEST(Nearest, AllowsEditsUpToAThirdOfTheLongestPartPlusOne) {
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"abcxyz"}), "abcxyz");
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"abwxyz"}), "");
  EXPECT_EQ(nearest("a.abcdef", std::vector<std::string>{"a.abcxyz"}), "a.abcxyz");
  EXPECT_EQ(nearest("a.abcdef", std::vector<std::string>{"b.abcxyz"}), "");
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
