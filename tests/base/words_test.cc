// Lines, words between ASCII white space, and numbers in sentences.
#include "base/words.h"
#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tearless::words_test {
namespace {

using testing::ElementsAre;

TEST(SplitLines, EndsALineOnlyAtANewline) {
  EXPECT_THAT(split_lines(""), ElementsAre());
  EXPECT_THAT(split_lines("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(split_lines("a\n\nb\n"), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_lines("\n"), ElementsAre(""));
  EXPECT_THAT(split_lines("a\r\xe2\x80\xa8z\n"), ElementsAre("a\r\xe2\x80\xa8z"));
}

TEST(SplitWords, SplitsAtAsciiWhiteSpace) {
  EXPECT_THAT(split_words("a bc  d"), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(split_words(" \t\n\v\f\ra\t\n\v\f\rb \t\n\v\f\r"), ElementsAre("a", "b"));
  EXPECT_THAT(split_words(""), ElementsAre());
  EXPECT_THAT(split_words(" \n"), ElementsAre());
}

TEST(SplitWords, KeepsUnicodeSpacesInWords) {
  for (const char* word : {"a\xc2\xa0z", "a\xc2\x85z", "a\xe2\x80\xa8z"})
    EXPECT_THAT(split_words(word), ElementsAre(word));
}

TEST(Counted, HasASingularAndAPlural) {
  EXPECT_EQ(counted(0, "run"), "0 runs");
  EXPECT_EQ(counted(1, "run"), "1 run");
  EXPECT_EQ(counted(2, "run"), "2 runs");
}

TEST(ShortCount, ChangesTheUnitWhereTheRoundedNumberWouldBeAThousand) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(1000), "1k");
  EXPECT_EQ(short_count(12'600), "13k");
  EXPECT_EQ(short_count(999'499), "999k");
  EXPECT_EQ(short_count(999'500), "1.0M");
  EXPECT_EQ(short_count(1'260'000), "1.3M");
  EXPECT_EQ(short_count(61'000'000), "61.0M");
}

TEST(BytesText, ChangesTheUnitWhereTheRoundedNumberWouldBeAThousand) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1), "1 byte");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(9'949), "9.9 kB");
  EXPECT_EQ(bytes_text(9'950), "10 kB");
  EXPECT_EQ(bytes_text(999'499), "999 kB");
  EXPECT_EQ(bytes_text(999'500), "1.0 MB");
  EXPECT_EQ(bytes_text(1'234'567'890), "1.2 GB");
  EXPECT_EQ(bytes_text(4'000'000'000'000'000), "4000 TB");
}

TEST(ListItems, AreBetweenCommasWithASpace) {
  EXPECT_EQ(list_items("a, b c, d"), (std::vector<std::string>{"a", "b c", "d"}));
  EXPECT_EQ(list_items("a,b, "), (std::vector<std::string>{"a,b", ""}));
  EXPECT_EQ(list_items(""), std::vector<std::string>{""});
}

TEST(ShellWord, IsQuotedWhereAShellWouldReadItAsSomethingElse) {
  EXPECT_EQ(shell_word("results/a-b_1.toml"), "results/a-b_1.toml");
  EXPECT_EQ(shell_word("größe=1"), "größe=1");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my grid.toml"), "'my grid.toml'");
  EXPECT_EQ(shell_word("~/it's; $HOME"), "'~/it'\\''s; $HOME'");
}

TEST(SomeOf, SaysHowManyAreLeftOut) {
  EXPECT_EQ(some_of({}, 2), "");
  EXPECT_EQ(some_of({"a", "b"}, 2), "a, b");
  EXPECT_EQ(some_of({"a", "b", "c", "d"}, 2), "a, b and 2 more");
  EXPECT_EQ(some_of({"a", "b", "c"}, 2, "; "), "a; b and 1 more");
}

TEST(ShellWords, AreQuotedOneByOne) { EXPECT_EQ(shell_words({"a grid", "b", ""}), "'a grid' b ''"); }

TEST(WordsOfShellLine, AreThoseThatWereQuoted) {
  const std::vector<std::string> words = {"table", "it's; $HOME", "", "a \"b\" \\c", "größe=1"};
  EXPECT_EQ(words_of_shell_line(shell_words(words)), words);
  EXPECT_EQ(words_of_shell_line(" a\n\t\"b 'c' \\\" d\"e\\ f ''"),
            (std::vector<std::string>{"a", "b 'c' \" de f", ""}));
  EXPECT_TRUE(words_of_shell_line(" \n").empty());
  EXPECT_THROW(words_of_shell_line("a 'b"), UserError);
}

TEST(Words, AreTrimmedOfSpacesAloneAndLoweredInAsciiAlone) {
  EXPECT_EQ(trimmed("  a b\t "), "a b\t");
  EXPECT_EQ(trimmed("   "), "");
  EXPECT_EQ(lowered("A-Zé É"), "a-zé É");
}

}  // namespace
}  // namespace tearless::words_test
