// Files of dependency trees: what is read of them, and the sentence for each mistake.
#include "engine/data/dependency_trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/error.h"
#include "tests/engine/data/all_trees.h"
#include "tests/support/error_of.h"

namespace tearless::engine::dependency_trees_test {
namespace {

using tearless::test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kConllu =
    "# sent_id = 1\n# text = I'm here.\n"
    "1-2\tI'm\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tI\tI\tPRON\tPRP\t_\t3\tnsubj\t_\t_\n"
    "2\t'm\t_\tAUX\tVBP\t_\t3\tcop\t_\t_\n"
    "2.1\tbeing\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3\there\there\tADV\tRB\t_\t0\troot\t_\t_\n"
    "4\t.\t.\tPUNCT\t.\t_\t3\tpunct:end\t_\t_\n"
    "\n\n# the next\n"
    "1\t#\t#\tSYM\t#\t_\t0\troot\t_\t_\n";

std::vector<DependencyTree> read(const std::string& text) { return read_trees(text, "f.conll", TagColumn::kFine); }

TEST(DependencyTrees, AreReadWithoutCommentsRangesAndEmptyNodes) {
  const std::vector<DependencyTree> trees = read(kConllu);
  ASSERT_EQ(trees.size(), 2u);
  EXPECT_THAT(trees[0].forms, ElementsAre("I", "'m", "here", "."));
  EXPECT_THAT(trees[0].tags, ElementsAre("PRP", "VBP", "RB", "."));
  EXPECT_THAT(trees[0].labels, ElementsAre("nsubj", "cop", "root", "punct:end"));
  EXPECT_THAT(trees[0].heads, ElementsAre(3, 3, 0, 3));
  EXPECT_THAT(trees[1].forms, ElementsAre("#"));
  EXPECT_THAT(trees[1].heads, ElementsAre(0));
  EXPECT_THAT(read_trees(kConllu, "f", TagColumn::kCoarse)[0].tags, ElementsAre("PRON", "AUX", "ADV", "PUNCT"));
}

TEST(DependencyTrees, MayHaveEightColumnsCarriageReturnsAndNoLastEmptyLine) {
  const std::vector<DependencyTree> trees = read("1\ta b\t_\tX\tY\t_\t2\tdep\r\n2\tc\t_\tX\tY\t_\t0\troot\r\n");
  ASSERT_EQ(trees.size(), 1u);
  EXPECT_THAT(trees[0].forms, ElementsAre("a b", "c"));
  EXPECT_THAT(trees[0].labels, ElementsAre("dep", "root"));
}

TEST(DependencyTrees, ThatAreNoneAreRefusedInOneSentence) {
  const auto word = [](const std::string& id, const std::string& head, const std::string& form = "w") {
    return id + "\t" + form + "\t_\tX\tY\t_\t" + head + "\tdep\n";
  };
  const std::pair<std::string, const char*> mistakes[] = {
      {"", "f.conll has no sentence"},
      {"# a comment\n\n", "f.conll has no sentence"},
      {"1\tw\t_\tX\n", "f.conll:1: 4 columns"},
      {word("1", "0") + "# late\n",
       "f.conll:2: a comment inside a sentence: is an empty line between two sentences "
       "missing?"},
      {word("1", "0") + "# text = b\r\n" + word("1", "0"), "f.conll:2: a comment inside a sentence: is"},
      {word("1", "0") + "#\ta\tb\tX\tY\t_\t1\tdep\n", "f.conll:2: a comment inside a sentence: is"},
      {word("1", "0") + word("3", "1"), "f.conll:2: the word's number is \"3\" and should be 2"},
      {word("1", "0") + word("1", "0"), "f.conll:2: the word's number is \"1\" and should be 2"},
      {word("one", "0"), "f.conll:1: the word's number is \"one\""},
      {word("1", "0", ""), "f.conll:1: the word in column 2 is empty; write _ for none"},
      {"1\tw\t_\tX\t\t_\t0\tdep\n", "f.conll:1: the tag in column 5 is empty"},
      {"1\tw\t_\tX\tY\t_\t0\t\n", "f.conll:1: the label in column 8 is empty"},
      {"1 w _ X Y _ 0 dep\n", "f.conll:1: 1 column,"},
      {"1\tw\t_\tX\tY\t_\t0\n", "f.conll:1: 7 columns, where CoNLL-X and CoNLL-U have ten with a tab between two"},
      {"\n \n", "f.conll:2: 1 column,"},
      {word("1", "_"), "f.conll:1: the head \"_\" is no number"},
      {word("1", "-1"), "f.conll:1: the head \"-1\" is no number"},
      {word("1", "1.0"), "f.conll:1: the head \"1.0\" is no number"},
      {word("1", "99999999999"), "f.conll:1: the head \"99999999999\" is no number"},
      {word("1", "1"), "f.conll:1: the word is its own head"},
      {"#\n" + word("1", "0") + word("2", "5"), "f.conll:3: the head 5 is beyond the sentence of 2 words"},
      {word("1", "0") + word("2", "0"), "f.conll:2: a second root; the first is word 1"},
      {word("1", "2") + word("2", "1"), "f.conll:1: a sentence without a root"},
      {word("1", "0") + word("2", "3") + word("3", "2"), "f.conll:2: the heads of this word make a cycle"},
      {word("1", "3") + word("2", "0") + word("3", "4") + word("4", "3"), "f.conll:1: the heads of this word make"},
      {word("1", "0") + "\n" + word("1", "2") + word("2", "0") + word("3", "0"), "f.conll:5: a second root"},
      {"1\t\xff\t_\tX\tY\t_\t0\troot\n", "f.conll:1: not valid UTF-8"}};
  for (const auto& [text, sentence] : mistakes) EXPECT_THAT(error_of([&] { read(text); }), HasSubstr(sentence)) << text;
}

TEST(DependencyTrees, AreProjectiveWhereNoTwoArcsCross) {
  int64_t projective = 0, all = 0;
  for (int32_t words = 1; words <= 5; ++words) {
    for (const std::vector<int32_t>& heads : test::all_trees(words)) {
      bool crossing = false;
      for (int32_t a = 1; a <= words; ++a) {
        for (int32_t b = 1; b <= words; ++b) {
          const auto [first, last] = std::minmax(a, heads[a - 1]);
          const auto [other_first, other_last] = std::minmax(b, heads[b - 1]);
          crossing |= first < other_first && other_first < last && last < other_last;
        }
      }
      const DependencyTree tree{.forms = {}, .tags = {}, .labels = {}, .heads = heads};
      EXPECT_EQ(is_projective(heads), !crossing) << testing::PrintToString(heads);
      projective += !crossing;
      ++all;
    }
  }
  EXPECT_EQ(all, 1 + 2 + 9 + 64 + 625) << "n^(n - 1) trees with one root";
  EXPECT_EQ(projective, 1 + 2 + 7 + 30 + 143) << "binomial(3n - 2, n - 1) / n of them";
}

}  // namespace
}  // namespace tearless::engine::dependency_trees_test
