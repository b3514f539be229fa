// Input that would exhaust the stack if it were parsed, and input that is not TOML text.
#include "base/toml.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tearless {
namespace {

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

std::string error_of(const std::string& text) {
  try {
    parse_toml(text, "f.toml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseToml, RefusesDottedKeysOfTooManyParts) {
  const char* kRefusal = ": the parts of a dotted key are nested more than 32 deep; write fewer levels";
  EXPECT_EQ(error_of(repeated("a.", 40'000) + "b = 1\n"), std::string("f.toml:1") + kRefusal);
  EXPECT_EQ(error_of("x = 1\n[" + repeated("a . ", 40'000) + "b]\n"), std::string("f.toml:2") + kRefusal);
  EXPECT_EQ(error_of("x = { " + repeated("'a'.\"b\".", 20'000) + "b = 1 }\n"), std::string("f.toml:1") + kRefusal);
  // A string that ends in quotes of its own hides nothing of its line.
  EXPECT_EQ(error_of("x = { y = \"\"\"\n\"\"\"\"\", " + repeated("a.", 40'000) + "b = 1 }\n"),
            std::string("f.toml:2") + kRefusal);
}

TEST(ParseToml, RefusesListsAndTablesNestedTooDeeply) {
  const char* kRefusal = ": lists or tables are nested more than 32 deep; write fewer levels";
  EXPECT_EQ(error_of("x = " + repeated("[", 100'000)), std::string("f.toml:1") + kRefusal);
  EXPECT_EQ(error_of("x = " + repeated("{a=", 100'000)), std::string("f.toml:1") + kRefusal);
  EXPECT_EQ(error_of("x = [\n" + repeated("[{a=[\n", 20)), std::string("f.toml:12") + kRefusal);
}

TEST(ParseToml, AcceptsThirtyTwoLevelsAndNoMore) {
  EXPECT_EQ(error_of(repeated("a.", 31) + "b = 1\n"), "");
  EXPECT_NE(error_of(repeated("a.", 32) + "b = 1\n"), "");
  EXPECT_EQ(error_of("x = " + repeated("[", 32) + repeated("]", 32)), "");
  EXPECT_NE(error_of("x = " + repeated("[", 33) + repeated("]", 33)), "");
  // A bracket that closes ends its level, and a string of one line ends with its line.
  EXPECT_EQ(error_of("x = [" + repeated("[],", 100) + "]\n"), "");
  EXPECT_EQ(error_of("x = ['" + repeated("[", 100) + "', \"" + repeated("{", 100) + "\"]\n"), "");
  EXPECT_NE(error_of("x = [\"\\\\\", " + repeated("[", 32) + repeated("]", 33)), "") << "an escape is two characters";
  EXPECT_EQ(error_of("x = \"open\ny = " + repeated("[", 33)).rfind("f.toml:2: lists", 0), 0u);
}

TEST(ParseToml, IgnoresBracketsAndDotsInTextAndComments) {
  const std::string many = repeated("[{.", 100);
  EXPECT_EQ(error_of("# " + many + "\na = \"" + many + "\\\"" + many + "\"\nb = '" + many + "'\n"), "");
  EXPECT_EQ(error_of("a = \"\"\"\n" + many + "\n" + many + "\"\"\"\nb = '''" + many + "'''\n"), "");
  EXPECT_EQ(error_of("a = [" + repeated("[1.5], ", 1000) + "]\n" + repeated("[[b.c.d]]\ne.f = {}\n", 100)), "");
}

TEST(ParseToml, AcceptsAByteOrderMarkAndWindowsLineEnds) {
  EXPECT_EQ(error_of("\xef\xbb\xbf"
                     "a = 1\r\n[b]\r\n"),
            "");
}

TEST(ParseToml, NamesTheLineOfBytesThatAreNotText) {
  for (const std::string& text : {std::string("a = 1\nb = \"\0\"", 12), std::string("a = 1\nb = \"\xff\""),
                                  std::string("a = 1\nb = 99999999999999999999")}) {
    EXPECT_EQ(error_of(text).rfind("f.toml:2: ", 0), 0u) << error_of(text);
  }
}

}  // namespace
}  // namespace tearless
