// Matches of n-grams against a count by maps; white space and words as Python has them.
#include "base/score/ngrams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace tearless::ngrams_test {
namespace {

using Symbols = std::vector<uint32_t>;
using testing::ElementsAre;

std::vector<int64_t> matches_by_maps(const Symbols& hypothesis, const Symbols& reference, size_t orders) {
  const auto count = [](const Symbols& symbols, size_t n) {
    std::map<Symbols, int64_t> counts;
    for (size_t i = 0; i + n <= symbols.size(); ++i) ++counts[Symbols(symbols.begin() + i, symbols.begin() + i + n)];
    return counts;
  };
  std::vector<int64_t> matches;
  for (size_t n = 1; n <= orders; ++n) {
    const auto wanted = count(reference, n);
    int64_t& sum = matches.emplace_back(0);
    for (const auto& [ngram, times] : count(hypothesis, n)) {
      if (wanted.contains(ngram)) sum += std::min(times, wanted.at(ngram));
    }
  }
  return matches;
}

std::string utf8(unsigned point) {
  const auto byte = [](unsigned bits) { return static_cast<char>(bits); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xC0 | point >> 6), byte(0x80 | (point & 63))};
  if (point < 0x10000) return {byte(0xE0 | point >> 12), byte(0x80 | (point >> 6 & 63)), byte(0x80 | (point & 63))};
  return {byte(0xF0 | point >> 18), byte(0x80 | (point >> 12 & 63)), byte(0x80 | (point >> 6 & 63)),
          byte(0x80 | (point & 63))};
}

TEST(CountMatches, CountsAnNgramAtMostAsOftenAsTheReferenceHasIt) {
  std::vector<int64_t> matches(4);
  count_matches(Symbols{1, 1, 1, 2, 3, 2, 3}, Symbols{1, 1, 2, 3}, matches);
  EXPECT_THAT(matches, ElementsAre(4, 3, 2, 1));
}

TEST(CountMatches, OfNothingAreNone) {
  std::vector<int64_t> matches(3, 7);
  count_matches(Symbols{}, Symbols{1, 2}, matches);
  EXPECT_THAT(matches, ElementsAre(0, 0, 0));
  count_matches(Symbols{1, 2}, Symbols{}, matches);
  EXPECT_THAT(matches, ElementsAre(0, 0, 0));
}

TEST(CountMatches, EqualsACountByMapsForRandomSequences) {
  std::mt19937 random(31);
  for (int i = 0; i < 500; ++i) {
    const uint32_t symbols = 1 + random() % 6, spread = i % 2 == 0 ? 1 : 0x2F00'0001;
    const auto sequence = [&] {
      Symbols drawn(random() % 40);
      for (uint32_t& symbol : drawn) symbol = random() % symbols * spread;
      return drawn;
    };
    const Symbols hypothesis = sequence(), reference = sequence();
    std::vector<int64_t> matches(6);
    count_matches(hypothesis, reference, matches);
    ASSERT_EQ(matches, matches_by_maps(hypothesis, reference, 6)) << "sequence " << i;
  }
}

TEST(CountMatches, OfWordsTellsWordsFromTheirParts) {
  const std::vector<std::string_view> hypothesis = {"a b", "c"}, reference = {"a", "b c"};
  std::vector<int64_t> matches(2);
  count_matches(std::span(hypothesis), std::span(reference), matches);
  EXPECT_THAT(matches, ElementsAre(0, 0));
  count_matches(std::span(hypothesis), std::span(hypothesis), matches);
  EXPECT_THAT(matches, ElementsAre(2, 1));
}

// [hex(i) for i in range(0x110000) if chr(i).isspace()], Python 3.11.
TEST(UnicodeSpace, IsWhatPythonSplitsAt) {
  std::vector<unsigned> spaces;
  for (unsigned point = 0; point < 0x110000; ++point) {
    const std::string text = utf8(point) + "x";
    const size_t length = unicode_space_length(text);
    if (length == 0) continue;
    EXPECT_EQ(length, text.size() - 1);
    spaces.push_back(point);
  }
  EXPECT_THAT(spaces, ElementsAre(0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x85, 0xA0, 0x1680,
                                  0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009,
                                  0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000));
}

TEST(UnicodeSpace, IsNotACharacterThatIsCutOff) {
  for (const char* text : {"\xC2", "\xE2", "\xE2\x80", "\xE3\x80", "\x80", "\xA8", "\xE2\x80\x7A"})
    EXPECT_EQ(unicode_space_length(text), 0) << text;
}

TEST(UnicodeWords, LieBetweenSpaces) {
  EXPECT_THAT(split_unicode_words(" a\u3000\u00a0bc \u2028"), ElementsAre("a", "bc"));
  EXPECT_THAT(split_unicode_words("é"), ElementsAre("é"));
  EXPECT_TRUE(split_unicode_words("").empty());
  EXPECT_TRUE(split_unicode_words(" \t").empty());
}

}  // namespace
}  // namespace tearless::ngrams_test
