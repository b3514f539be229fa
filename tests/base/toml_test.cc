// Input that would exhaust the stack if it were parsed, and input that is not TOML text.
#include "base/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/error_of.h"

namespace tearless::toml_test {
namespace {

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

std::string error_of(const std::string& text) {
  return test::error_of([&] { parse_toml(text, "f.toml"); });
}

TEST(ParseToml, RefusesDottedKeysOfTooManyParts) {
  const char* kRefusal = ": the line has more than 100 dots; write keys of fewer parts, or a list in several lines";
  EXPECT_EQ(error_of(repeated("a.", 40'000) + "b = 1\n"), std::string("f.toml:1") + kRefusal);
  EXPECT_EQ(error_of("x = 1\n[" + repeated("a . ", 40'000) + "b]\n"), std::string("f.toml:2") + kRefusal);
  EXPECT_EQ(error_of("x = { " + repeated("'a'.\"b\".", 20'000) + "b = 1 }\n"), std::string("f.toml:1") + kRefusal);
  EXPECT_EQ(error_of("x = [\n" + repeated("1.5,\n", 1000) + "]\n"), "");
}

TEST(ParseToml, RefusesListsAndTablesNestedTooDeeply) {
  const auto refused_in = [](int line, const std::string& text) {
    EXPECT_THAT(error_of(text), testing::StartsWith("f.toml:" + std::to_string(line) + ": "));
    EXPECT_THAT(error_of(text), testing::HasSubstr("maximum nested value depth of 256"));
  };
  refused_in(1, "x = " + repeated("[", 100'000));
  refused_in(1, "x = " + repeated("{a=", 100'000));
  refused_in(87, "x = [\n" + repeated("[{a=[\n", 100));
  refused_in(1, "x = " + repeated("[", 257) + repeated("]", 257));
  EXPECT_EQ(error_of("x = " + repeated("[", 256) + repeated("]", 256)), "");
}

// The longest keys at the deepest nesting, freed as a table and after a syntax error.
TEST(ParseToml, SurvivesTheDeepestTables) {
  const std::string key = repeated("a.", 100) + "a";
  const std::string text =
      "[" + key + "]\n" + key + " = " + repeated("[\n{" + key + " = ", 127) + "1" + repeated("}]", 127) + "\n";
  EXPECT_EQ(error_of(text), "");
  EXPECT_THAT(error_of(text + "x x"), testing::StartsWith("f.toml:130: "));
}

TEST(ParseToml, IgnoresBracketsAndDotsInTextAndComments) {
  const std::string many = repeated("[{.", 30);
  EXPECT_EQ(error_of("# " + many + "\na = \"" + many + "\\\"" + many + "\"\nb = '" + many + "'\n"), "");
  EXPECT_EQ(error_of("a = \"\"\"\n" + many + "\n" + many + "\"\"\"\nb = '''" + many + "'''\n"), "");
  EXPECT_EQ(error_of("a = [" + repeated("[1.5], ", 100) + "]\n" + repeated("[[b.c.d]]\ne.f = {}\n", 100)), "");
}

TEST(ParseToml, AcceptsAByteOrderMarkAndWindowsLineEnds) {
  EXPECT_EQ(error_of("\xef\xbb\xbf"
                     "a = 1\r\n[b]\r\n"),
            "");
}

TEST(ParseToml, NamesTheSecondLineOfAKeyThatIsDefinedTwice) {
  const auto refused_in = [](int line, const std::string& text) {
    EXPECT_THAT(error_of(text), testing::StartsWith("f.toml:" + std::to_string(line) + ": ")) << text;
    EXPECT_THAT(error_of(text), testing::HasSubstr("cannot redefine existing ")) << text;
  };
  refused_in(3, "base = \"a\"\nx = 1\nbase = \"b\"\n");
  refused_in(4, "[axis]\n\"m.d\" = [1]\n\n\"m.d\" = [\n2]\n");
  refused_in(5, "[[x]]\na = 1\n[[x]]\na = 2\na = 3\n");
  refused_in(4, "[a]\nx = 1\n[b]\n[a]\ny = 1\n");
  refused_in(3, "[axis]\nx = [1]\n[[axis.x]]\nlabel = 1\n");
  refused_in(3, "a = 1\nb = 2\na.c.d = 3\n");
  refused_in(2, "a = 1\nb = { c = 1, a = 2, a = 3 }\n");
}

TEST(FlattenToml, NamesBothLinesOfAKeyThatIsDottedOnceAndQuotedOnce) {
  for (const std::string text : {"a.b = 1\n\"a.b\" = 2\n", "\"a.b\" = 1\na.b = 2\n"}) {
    EXPECT_EQ(tearless::test::error_of([&] { flatten_toml(parse_toml(text, "f.toml"), "f.toml"); }),
              "f.toml:2: a.b is defined twice (first at f.toml:1); remove one of the two");
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
