#include "base/pattern.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tearless::pattern_test {
namespace {

// Every text of the letters a and b up to this length.
std::vector<std::string> texts_up_to(size_t length) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) break;
    for (const char letter : {'a', 'b'}) texts.push_back(texts[i] + letter);
  }
  return texts;
}

TEST(MatchesPattern, TakesAnyTextForAStar) {
  for (const char* name : {"test.bleu", "test.", "test.x.bleu"}) EXPECT_TRUE(matches_pattern("test.*", name)) << name;
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("**", "a"));
  EXPECT_TRUE(matches_pattern("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(matches_pattern("*ab", "aab"));
  EXPECT_TRUE(matches_pattern("", ""));
  for (const char* name : {"", "a", "ab", "a-c-b", "a-b-cc-"}) EXPECT_FALSE(matches_pattern("a*b*c", name)) << name;
  EXPECT_FALSE(matches_pattern("", "a"));
  EXPECT_FALSE(matches_pattern("a", ""));
}

// With a choice at each star this would not end.
TEST(MatchesPattern, DoesNotBacktrack) {
  std::string pattern;
  for (int star = 0; star < 40; ++star) pattern += "*a";
  EXPECT_FALSE(matches_pattern(pattern + "b", std::string(2000, 'a')));
  EXPECT_TRUE(matches_pattern(pattern, std::string(2000, 'a')));
}

TEST(Patterns, MeetIfSomeTextMatchesBoth) {
  EXPECT_TRUE(patterns_meet("test.*", "*.bleu"));
  EXPECT_TRUE(patterns_meet("g.encoder.*", "g.*.final"));
  EXPECT_TRUE(patterns_meet("g.*", "g.encoder.1.ffn"));
  EXPECT_TRUE(patterns_meet("", "*"));
  EXPECT_FALSE(patterns_meet("test.bleu", "test.bleu_13a"));
  EXPECT_FALSE(patterns_meet("dev.*", "test.*"));
  EXPECT_FALSE(patterns_meet("", "a*"));
}

TEST(Patterns, MeetAsTheTextsThatMatchThemSay) {
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto drawn = [&] {
    std::string pattern(random() % 5, ' ');
    for (char& letter : pattern) letter = "ab*"[random() % 3];
    return pattern;
  };
  const std::vector<std::string> texts =
      texts_up_to(8);  // two patterns of four letters that meet, meet in one of these
  for (int i = 0; i < 500; ++i) {
    const std::string a = drawn(), b = drawn();
    bool met = false;
    for (const std::string& text : texts) met |= matches_pattern(a, text) && matches_pattern(b, text);
    EXPECT_EQ(patterns_meet(a, b), met) << a << " and " << b;
  }
}

}  // namespace
}  // namespace tearless::pattern_test
