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

TEST(ParseToml, SaysWhatToWriteInPlaceOfWhatIsNoToml) {
  const auto said = [](const std::string& line) {
    const std::string sentence = error_of("a = 1\n" + line + "\nb = 2\n");
    EXPECT_EQ(sentence.rfind("f.toml:2: ", 0), 0u) << sentence;
    return sentence.substr(std::min<size_t>(sentence.size(), 10));
  };
  for (const std::string word : {"null", "None", "none", "nil", "NULL", "~"}) {
    EXPECT_EQ(said("x = " + word), word + " is no value in TOML; leave the key out");
    EXPECT_EQ(said("x = [1, " + word + "]  # why"), word + " is no value in TOML; leave the key out");
  }
  for (const std::string word : {"True", "yes", "on"}) {
    EXPECT_EQ(said("x = " + word), word + " is no value in TOML; write true");
  }
  for (const std::string word : {"False", "no", "off"}) {
    EXPECT_EQ(said("x = { y = " + word + " }"), word + " is no value in TOML; write false");
  }
  EXPECT_EQ(said("x = .5"), ".5 is no number in TOML; write 0.5");
  EXPECT_EQ(said("x = [1.0, -.5e-3]"), "-.5e-3 is no number in TOML; write -0.5e-3");
  EXPECT_EQ(said("x = 5."), "5. is no number in TOML; write 5.0");
  EXPECT_EQ(said("x = 1.e-4"), "1.e-4 is no number in TOML; write 1.0e-4");
  EXPECT_EQ(said("x = 007"), "007 is no number in TOML; write 7");
  EXPECT_EQ(said("x = relu"), "a text needs quotes: \"relu\"");
  EXPECT_EQ(said("x = [\"gelu\", relu]"), "a text needs quotes: \"relu\"");
  EXPECT_EQ(said("x = /data/train.en"), "a text needs quotes: \"/data/train.en\"");
  for (const std::string line : {"seeds: 3", "axis:", "- 1", "lr : 0.1", "---"}) {
    EXPECT_EQ(said(line), "this is YAML; a grid is TOML, with lines such as key = value and [section]") << line;
  }
}

TEST(ParseToml, LeavesWordsInTextsAndCommentsAlone) {
  EXPECT_EQ(error_of("x = \"None\"  # True, .5 and null\ny = 'yes'\n\"no\" = [\"off\"]\nnull = 1\n"), "");
  const std::string sentence = error_of("x = \"None, True\" .5.5.\n");
  EXPECT_EQ(sentence.find("None"), std::string::npos) << sentence;
}

TEST(FlattenToml, RefusesEmptyTablesInPlaceOfValues) {
  const auto said = [](const std::string& text) {
    return tearless::test::error_of([&] { flatten_toml(parse_toml(text, "f.toml"), "f.toml"); });
  };
  EXPECT_EQ(said("a = {}\n"), "f.toml:1: a = {} sets nothing; leave the key out");
  EXPECT_EQ(said("a = { b = {} }\n"), "f.toml:1: a.b = {} sets nothing; leave the key out");
  EXPECT_EQ(said("[a]\n[b]\nc = 1\n"), "") << "a section without settings";
}

TEST(ParseToml, NamesTheLineOfBytesThatAreNotText) {
  for (const std::string& text : {std::string("a = 1\nb = \"\0\"", 12), std::string("a = 1\nb = \"\xff\""),
                                  std::string("a = 1\nb = 99999999999999999999")}) {
    EXPECT_EQ(error_of(text).rfind("f.toml:2: ", 0), 0u) << error_of(text);
  }
}

}  // namespace
}  // namespace tearless::toml_test
