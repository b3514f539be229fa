#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tearless::utf8_test {
namespace {

TEST(Printable, LeavesPrintableTextUnchanged) {
  for (const char* text : {"", "a b", "20.91 ± 0.30 → 日本", "C:\\new", "e\u0301 \u00a0 👍"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesTerminalControlCharacters) {
  EXPECT_EQ(printable("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(printable("\x1b]0;title\x07\x7f"), "\\x1b]0;title\\x07\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u009b31m \u2028 \u202E \u2066 \ufeff"), "\\u009b31m \\u2028 \\u202e \\u2066 \\ufeff");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("caf\xe9!"), "caf\\xe9!");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut off
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // a control character in an overlong form
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate
}

TEST(Printable, KeepsLinesAndTabsOfATextOfManyLines) {
  EXPECT_EQ(printable_lines("a\tb\n\x1b[2J\n"), "a\tb\n\\x1b[2J\n");
}

TEST(Printable, EscapesInJsonWhatATerminalObeysAndLeavesItsValue) {
  EXPECT_EQ(printable_json("{\n  \"a\\u001b\": \"é\u009b31m \x7f \u2028 \u202e 👍\"\n}"),
            "{\n  \"a\\u001b\": \"é\\u009b31m \\u007f \\u2028 \\u202e 👍\"\n}");
}

TEST(ValidUtf8, FindsEveryMalformedSequence) {
  EXPECT_TRUE(valid_utf8("aé日👍"));
  for (const char* bad : {"\x80", "\xc1\x81", "\xe0\x9f\xbf", "\xf4\x90\x80\x80", "\xf0\x9f\x91", "\xff"}) {
    EXPECT_FALSE(valid_utf8(bad)) << bad;
  }
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("gl→en"), 5u);
  EXPECT_EQ(display_width("±"), 1u);
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width(""), 0u);
}

TEST(Wrapped, BreaksBetweenWordsAndInLongOnes) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrapped("two words", 20), (Lines{"two words"}));
  EXPECT_EQ(wrapped("two words", 9), (Lines{"two words"}));
  EXPECT_EQ(wrapped("two words", 8), (Lines{"two", "words"}));
  EXPECT_EQ(wrapped("√√√ √√√", 3), (Lines{"√√√", "√√√"})) << "columns, not bytes";
  EXPECT_EQ(wrapped("abcdefg h", 3), (Lines{"abc", "def", "g h"}));
  EXPECT_EQ(wrapped("", 3), Lines());
  EXPECT_EQ(wrapped("日本", 1), (Lines{"日本"})) << "a character is not cut";
}

TEST(Fitted, CutsAtColumnsAndSaysSo) {
  EXPECT_EQ(cut_to_width("日本語", 5), "日本");
  EXPECT_EQ(cut_to_width("gl→en", 5), "gl→en");
  EXPECT_EQ(cut_to_width("abc", 0), "");
  EXPECT_EQ(fitted("gl→en", 5), "gl→en");
  EXPECT_EQ(fitted("gl→en", 4), "gl→…");
  EXPECT_EQ(fitted("日本語", 4), "日…");
  EXPECT_EQ(fitted("abc", 1), "…");
  EXPECT_EQ(fitted("abc", 0), "");
}

}  // namespace
}  // namespace tearless::utf8_test
