// Input that would exhaust the stack if it were parsed, and input that is not TOML text.
#include "base/toml.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tearless::toml_test {
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

TEST(ParseToml, NamesBothLinesOfAKeyThatIsDefinedTwice) {
  const auto twice = [](int line, const std::string& key, int first) {
    const std::string of_first = first > 0 ? " (first at f.toml:" + std::to_string(first) + ")" : "";
    return "f.toml:" + std::to_string(line) + ": " + key + " is defined twice" + of_first +
           "; remove one of the two, or merge them if they are tables";
  };
  EXPECT_EQ(error_of("base = \"a\"\nx = 1\nbase = \"b\"\n"), twice(3, "base", 1));
  EXPECT_EQ(error_of("a = 1\n[set]\nb = 2\na = [\n  3 ]\n  a = 4"), twice(6, "a", 4)) << "of this table, not the root";
  EXPECT_EQ(error_of("[axis]\n\"m.d\" = [1]\n\n\"m.d\" = [\n2]\n"), twice(4, "\"m.d\"", 2));
  EXPECT_EQ(error_of("[set]\na.b = 1\na.c = 2\na . b = 3\n"), twice(4, "a . b", 2));
  EXPECT_EQ(error_of("[[x]]\na = 1\n[[x]]\na = 2\na = 3\n"), twice(5, "a", 4)) << "of the last table of a list";
  // Tables, and a key that is a table elsewhere.
  EXPECT_EQ(error_of("[a]\nx = 1\n[b]\n[a]\ny = 1\n"), twice(4, "a", 1));
  EXPECT_EQ(error_of("[set]\na.b = 3\n[set.a]\nb = 4\n"), twice(3, "set.a", 2));
  EXPECT_EQ(error_of("[axis]\nx = [1]\n[[axis.x]]\nlabel = 1\n"), twice(3, "axis.x", 2));
  EXPECT_EQ(error_of("a = 1\n[a.b]\n[c]\n"), twice(2, "a.b", 1));
  EXPECT_EQ(error_of("a = 1\n[a.b]"), twice(2, "a.b", 1));
  EXPECT_EQ(error_of("a = 1\n[a.b]  # x\n# x = 1\n"), twice(2, "a.b", 1));
  EXPECT_EQ(error_of("a = 1\nb = 2\na.c.d = 3\n"), twice(3, "a.c.d", 1));
  // Within a value the first line is not looked for.
  EXPECT_EQ(error_of("a = 1\nb = { c = 1, a = 2, a = 3 }\n"), twice(2, "a", 0));
  EXPECT_EQ(error_of("a = 1\nb = [\n{ c = 1 },\n{ a = 2, a = 3 }]\n"), twice(4, "a", 0));
}

TEST(FlattenToml, NamesBothLinesOfAKeyThatIsDottedOnceAndQuotedOnce) {
  for (const std::string text : {"a.b = 1\n\"a.b\" = 2\n", "\"a.b\" = 1\na.b = 2\n"}) {
    try {
      flatten_toml(parse_toml(text, "f.toml"), "f.toml");
      FAIL() << text;
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(),
                   "f.toml:2: a.b is defined twice (first at f.toml:1); remove one of the two, or merge them if they "
                   "are tables");
    }
  }
}

TEST(ParseToml, NamesTheLineOfBytesThatAreNotText) {
  for (const std::string& text : {std::string("a = 1\nb = \"\0\"", 12), std::string("a = 1\nb = \"\xff\""),
                                  std::string("a = 1\nb = 99999999999999999999")}) {
    EXPECT_EQ(error_of(text).rfind("f.toml:2: ", 0), 0u) << error_of(text);
  }
}

}  // namespace
}  // namespace tearless::toml_test
