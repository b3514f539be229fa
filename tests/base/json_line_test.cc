// Lines of JSON: what each holds is read as it stands, and what it lacks is named.
#include "base/json_line.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "tests/support/error_of.h"

namespace tearless::json_line_test {
namespace {

using test::error_of;

class JsonLine : public testing::Test {
 protected:
  std::string refusal_of(const std::string& line) {
    return error_of<JsonLineError>([&] { parser_.parse(line); });
  }

  JsonLineParser parser_;
};

TEST_F(JsonLine, HoldsTextsNumbersAndObjects) {
  const JsonValue& line = parser_.parse(R"({"id": "a\n\u00e9\"", "empty": "", "n": -7, "of": {"x": "1", "y": "2"}})");
  EXPECT_EQ(text_at(line, "id"), "a\né\"");
  EXPECT_EQ(text_at(line, "empty", "other"), "");
  EXPECT_EQ(text_at(line, "none", "other"), "other");
  EXPECT_EQ(number_at(line, "n"), -7);
  EXPECT_EQ(number_at(line, "n", 3), -7);
  EXPECT_EQ(number_at(line, "none", 3), 3);
  std::string all;
  for (const auto& [key, value] : object_at(line, "of"))
    all += std::string(as_text(key)) + "=" + std::string(as_text(value)) + ";";
  EXPECT_EQ(all, "x=1;y=2;") << "in the order of the line";
  EXPECT_EQ(find_member(line, "none"), nullptr);
  EXPECT_EQ(find_member(line, "i"), nullptr) << "the beginning of a key is no key";
}

TEST_F(JsonLine, WithoutAMemberOrWithAnotherTypeSaysWhich) {
  const JsonValue& line = parser_.parse(R"({"text": "a", "number": 3, "null": null, "list": [1]})");
  EXPECT_EQ(error_of<JsonLineError>([&] { text_at(line, "id"); }), "\"id\" is missing");
  EXPECT_EQ(error_of<JsonLineError>([&] { number_at(line, "id"); }), "\"id\" is missing");
  EXPECT_EQ(error_of<JsonLineError>([&] { object_at(line, "id"); }), "\"id\" is missing");
  EXPECT_EQ(error_of<JsonLineError>([&] { text_at(line, "number"); }), "\"number\" is not a text");
  EXPECT_EQ(error_of<JsonLineError>([&] { text_at(line, "null", ""); }), "\"null\" is not a text");
  EXPECT_EQ(error_of<JsonLineError>([&] { number_at(line, "text", 3); }), "\"text\" is not a whole number");
  EXPECT_EQ(error_of<JsonLineError>([&] { object_at(line, "list"); }), "\"list\" is not an object");
  EXPECT_EQ(error_of<JsonLineError>([&] { as_text(*find_member(line, "number")); }), "a value is not a text");
}

TEST_F(JsonLine, TakesWholeNumbersHoweverTheyAreWritten) {
  const JsonValue& line = parser_.parse(
      R"({"most": 9223372036854775807, "least": -9223372036854775808, "float": 1234567.0, "exponent": 1e6,
          "half": 0.5, "above": 9223372036854775808, "huge": 1e300})");
  EXPECT_EQ(number_at(line, "most"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(number_at(line, "least"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(number_at(line, "float"), 1234567);
  EXPECT_EQ(number_at(line, "exponent"), 1000000);
  for (const char* key : {"half", "above", "huge"}) {
    EXPECT_EQ(error_of<JsonLineError>([&] { number_at(line, key); }),
              "\"" + std::string(key) + "\" is not a whole number");
  }
}

TEST_F(JsonLine, ThatIsNoObjectIsRefused) {
  for (const char* line : {"3", "[1]", "null", "\"a\""}) EXPECT_EQ(refusal_of(line), "it is not an object") << line;
  for (const char* line : {"", " ", R"({"a": 1)", R"({"a": 1} x)", R"({"a": 1,})", R"({a: 1})", R"({"a": NaN})"}) {
    EXPECT_TRUE(refusal_of(line).starts_with("at byte ")) << line;
  }
  EXPECT_EQ(refusal_of(R"({"a": x})").substr(0, 12), "at byte 7: I");
  EXPECT_TRUE(refusal_of("{\"a\": \"\xff\"}").starts_with("at byte ")) << "invalid UTF-8";
}

TEST_F(JsonLine, OfHostileDepthIsReadOrRefusedButNeverCrashes) {
  const std::string open(1'000'000, '[');
  EXPECT_TRUE(refusal_of(open).starts_with("at byte "));
  EXPECT_EQ(refusal_of(open + std::string(1'000'000, ']')), "it is not an object");
  EXPECT_TRUE(find_member(parser_.parse(R"({"a": )" + open + std::string(1'000'000, ']') + "}"), "a"));
}

TEST_F(JsonLine, IsParsedWhateverTheOneBeforeWas) {
  refusal_of(R"({"id": "first)");
  EXPECT_EQ(text_at(parser_.parse(R"({"id": "second"})"), "id"), "second");
  EXPECT_EQ(find_member(parser_.parse(R"({"n": 1})"), "id"), nullptr);
}

}  // namespace
}  // namespace tearless::json_line_test
