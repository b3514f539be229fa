// BPE against merges worked by hand, and against a learner that recounts all pairs for each merge.
#include "engine/data/bpe.h"
#include "tests/support/error_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tearless::engine::bpe_test {
namespace {

using Counts = std::map<std::string, int64_t, std::less<>>;
using Words = std::vector<std::string>;

std::vector<std::string> listed(const std::vector<Merge>& merges) {
  std::vector<std::string> lines;
  for (const auto& [left, right] : merges) lines.push_back(left + " " + right);
  return lines;
}

/// The definition, word for word, for words of one-byte characters.
std::vector<Merge> learn_slowly(const Counts& words, size_t count) {
  std::vector<std::pair<Words, int64_t>> split;
  Words units;
  for (const auto& [word, frequency] : words) {
    Words characters;
    for (const char c : word) characters.emplace_back(1, c);
    characters.back() += "</w>";
    units.insert(units.end(), characters.begin(), characters.end());
    split.emplace_back(characters, frequency);
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  const auto number = [&](const std::string& unit) {
    return std::find(units.begin(), units.end(), unit) - units.begin();
  };

  std::vector<Merge> merges;
  while (merges.size() < count) {
    std::map<std::pair<long, long>, int64_t> counts;
    for (const auto& [word, frequency] : split) {
      for (size_t i = 0; i + 1 < word.size(); ++i) counts[{number(word[i]), number(word[i + 1])}] += frequency;
    }
    if (counts.empty()) break;
    auto best = counts.begin();
    for (auto it = counts.begin(); it != counts.end(); ++it) {
      if (it->second > best->second) best = it;
    }
    const Merge merge{units[best->first.first], units[best->first.second]};
    for (auto& [word, frequency] : split) {
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != merge.first || word[i + 1] != merge.second) continue;
        word[i] += word[i + 1];
        word.erase(word.begin() + i + 1);
      }
    }
    const std::string merged = merge.first + merge.second;
    if (std::find(units.begin(), units.end(), merged) == units.end()) units.push_back(merged);
    merges.push_back(merge);
  }
  return merges;
}

TEST(Bpe, LearnsTheMergesWorkedByHand) {
  // The words of Sennrich et al. 2016. "e s" and "s t</w>" both stand 9 times: e has the smaller number. Likewise "e w"
  // before "n e" and "w est</w>", and at last "d est</w>" before "i d" and "w i" … by their left unit.
  const Counts words = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
  EXPECT_EQ(listed(learn_merges(words, 8)),
            (Words{"e s", "es t</w>", "l o", "e w", "n ew", "new est</w>", "lo w</w>", "d est</w>"}));
}

TEST(Bpe, MergesARunOfEqualUnitsFromTheLeft) {
  EXPECT_EQ(listed(learn_merges({{"aaaaa", 1}}, 9)), (Words{"a a", "aa a</w>", "aa aaa</w>"}));
}

TEST(Bpe, StopsWhenNoPairIsLeft) {
  EXPECT_TRUE(learn_merges({{"a", 7}, {"b", 1}}, 10).empty());
  EXPECT_EQ(learn_merges({{"ab", 1}}, 10).size(), 1u);
  EXPECT_TRUE(learn_merges({}, 10).empty());
}

TEST(Bpe, AgreesWithRecountingAllPairs) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 30; ++trial) {
    Counts words;
    for (int i = 0; i < 40; ++i) {
      std::string word;
      for (size_t length = 1 + random() % 9; word.size() < length;) word += static_cast<char>('a' + random() % 3);
      words[word] += 1 + static_cast<int64_t>(random() % 4);
    }
    EXPECT_EQ(listed(learn_merges(words, 60)), listed(learn_slowly(words, 60)));
  }
}

// Two words that share their pairs: visits that double with every merge would make this one never end.
TEST(Bpe, LearnsFromLongWordsThatShareTheirPairs) {
  std::string word;
  for (char c = '!'; c <= '~'; ++c) word += c;
  EXPECT_EQ(learn_merges({{word, 1}, {word + "x", 1}}, 90).size(), 90u);
}

TEST(Bpe, EncodesByTheEarliestMergeAndJoinsBack) {
  const ParallelText train{{"low low low low low lower lower"},
                           {"newest newest newest newest newest newest widest widest widest"}};
  const Bpe bpe = Bpe::learn(train, 7);
  EXPECT_EQ(bpe.encode("lower  low", Side::kSource), (Words{"lo@@", "w@@", "e@@", "r", "low"}));
  EXPECT_EQ(bpe.encode("newest\twidest", Side::kTarget), (Words{"newest", "w@@", "i@@", "d@@", "est"}));
  EXPECT_TRUE(bpe.encode(" ", Side::kSource).empty());
  EXPECT_EQ(bpe.join(bpe.encode("lower low  newest", Side::kTarget)), "lower low newest");
  EXPECT_EQ(bpe.join(Words{"lo@@", "w@@"}), "low");
}

TEST(Bpe, SplitsUnitsThatALanguageDoesNotHave) {
  // abcd is the target's alone; the source has ab@@ (of abq) and cd. So the source's abcd is split once, its ab not
  // further.
  const ParallelText train{{"abq cd"}, {"abcd abcd abcd abcd abcd"}};
  const Bpe bpe = Bpe::learn(train, 3);
  ASSERT_EQ(listed(bpe.merges()), (Words{"a b", "c d</w>", "ab cd</w>"}));
  EXPECT_EQ(bpe.encode("abcd", Side::kTarget), (Words{"abcd"}));
  EXPECT_EQ(bpe.encode("abcd", Side::kSource), (Words{"ab@@", "cd"}));
  EXPECT_EQ(bpe.encode("cd ab", Side::kTarget),
            (Words{"c@@", "d", "a@@", "b"}));  // the target has no cd, nor any of its parts
}

TEST(Bpe, KeepsUnitsThatALanguageDoesNotHaveIfAsked) {
  const ParallelText train{{"abq cd"}, {"abcd abcd abcd abcd abcd"}};
  const Bpe bpe = Bpe::learn(train, 3, /*split_unseen=*/false);
  const Bpe again = Bpe::from_bytes(bpe.bytes());
  EXPECT_EQ(again.bytes(), bpe.bytes());
  for (const Bpe* each : {&bpe, &again}) {
    EXPECT_EQ(listed(each->merges()), (Words{"a b", "c d</w>", "ab cd</w>"}));
    EXPECT_EQ(each->encode("abcd", Side::kSource), (Words{"abcd"}));
    EXPECT_EQ(each->encode("cd abx", Side::kTarget), (Words{"cd", "ab@@", "x"}));
  }
}

TEST(Bpe, OfOtherBytesIsRefused) {
  for (const char* bytes : {"", "a b\n", "a b\n\nab\n\n", "a b\n\n\n\n\n", "ab\n\n", "a \n\n"}) {
    EXPECT_THROW(Bpe::from_bytes(bytes), std::runtime_error) << bytes;
  }
}

TEST(Bpe, TreatsACharacterOfSeveralBytesAsOne) {
  const ParallelText train{{"ñé"}, {"日本"}};
  const Bpe bpe = Bpe::learn(train, 0);
  EXPECT_EQ(bpe.encode("ñé", Side::kSource), (Words{"ñ@@", "é"}));
  EXPECT_EQ(bpe.encode("日本", Side::kTarget), (Words{"日@@", "本"}));
}

TEST(Bpe, KeepsUnicodeSpacesInsideWords) {
  const ParallelText train{{"a\u00a0b"}, {"c"}};
  EXPECT_EQ(Bpe::learn(train, 0).encode("a\u00a0b", Side::kSource), (Words{"a@@", "\u00a0@@", "b"}));
}

TEST(Bpe, IsTheSameAfterItsBytesAreRead) {
  const ParallelText train{{"abq cd ñandú"}, {"abcd abcd abcd # @@"}};
  const Bpe bpe = Bpe::learn(train, 5);
  const Bpe again = Bpe::from_bytes(bpe.bytes());
  EXPECT_EQ(again.bytes(), bpe.bytes());
  for (const char* line : {"abcd cd", "abq ñandú zz", "# @@ ú"}) {
    EXPECT_EQ(again.encode(line, Side::kSource), bpe.encode(line, Side::kSource));
    EXPECT_EQ(again.encode(line, Side::kTarget), bpe.encode(line, Side::kTarget));
  }
}

TEST(Bpe, DoesNotDependOnTheOrderOfSentences) {
  const ParallelText train{{"b a ab", "ba ab", "aab bba"}, {"x y", "xy yx", "yy xx"}};
  const ParallelText turned{{"aab bba", "ba ab", "b a ab"}, {"yy xx", "xy yx", "x y"}};
  EXPECT_EQ(Bpe::learn(train, 20).bytes(), Bpe::learn(turned, 20).bytes());
}

}  // namespace
}  // namespace tearless::engine::bpe_test
