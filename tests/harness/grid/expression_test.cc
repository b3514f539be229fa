// Expressions over settings: values against the same expressions in C++, texts, comparisons, and what is no expression.
#include "harness/grid/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/error_of.h"

namespace tearless::harness::expression_test {
namespace {

using test::error_of;
using testing::HasSubstr;

using nlohmann::json;

json value(const std::string& text) {
  const std::map<std::string, json> settings = {{"n", 7},       {"x", 0.5},   {"model.d_model", 512}, {"warm-up", 100},
                                                {"lang", "de"}, {"on", true}, {"sizes", {1, 2}}};
  const auto is_name = [&](const std::string& name) { return settings.contains(name); };
  return Expression(text, is_name).value([&](const std::string& name) { return settings.at(name); });
}
int64_t whole(const std::string& text) {
  const json number = value(text);
  EXPECT_TRUE(number.is_number_integer()) << text;
  return number.get<int64_t>();
}
double real(const std::string& text) {
  const json number = value(text);
  EXPECT_TRUE(number.is_number_float()) << text;
  return number.get<double>();
}

TEST(Expression, KeepsWholeNumbersWhole) {
  EXPECT_EQ(whole("2 + 3 * 4"), 14);
  EXPECT_EQ(whole("(2 + 3) * 4"), 20);
  EXPECT_EQ(whole("10 - 3 - 2"), 5) << "from the left";
  EXPECT_EQ(whole("64 / 4 / 2"), 8);
  EXPECT_EQ(whole("-n + 2"), -5);
  EXPECT_EQ(whole("--n"), 7);
  EXPECT_EQ(whole("2 * -3"), -6);
  EXPECT_EQ(whole("4*model.d_model"), 2048);
  EXPECT_EQ(whole("min(n, 3, 9)"), 3);
  EXPECT_EQ(whole("max(n, 3, 9)"), 9);
  EXPECT_EQ(whole("'warm-up' + \"warm-up\""), 200);
  EXPECT_EQ(whole("9007199254740993 + 0"), 9007199254740993) << "beyond what a double can hold";
}

TEST(Expression, HasRealNumbersWhereItMust) {
  EXPECT_EQ(real("7 / 2"), 3.5);
  EXPECT_EQ(real("x * 2"), 1.0);
  EXPECT_EQ(real("(-9223372036854775807 - 1) / -1"), 9223372036854775808.0) << "which no whole number can hold";
  EXPECT_EQ(real("1e-3 + 1"), 1.001);
  EXPECT_EQ(real(".5"), 0.5);
  EXPECT_EQ(real("min(n, x)"), 0.5);
  EXPECT_EQ(real("max(n, x)"), 7.0);
  EXPECT_EQ(real("sqrt(model.d_model)"), std::sqrt(512.0));
  EXPECT_EQ(real("log(n)"), std::log(7.0));
}

TEST(Expression, RoundsToWholeNumbers) {
  EXPECT_EQ(whole("round(2.5)"), 3);
  EXPECT_EQ(whole("round(-2.5)"), -3);
  EXPECT_EQ(whole("floor(-2.5)"), -3);
  EXPECT_EQ(whole("ceil(2.1)"), 3);
  EXPECT_EQ(whole("round(n)"), 7);
  EXPECT_THAT(error_of([] { value("round(1e300)"); }), HasSubstr("too large to be rounded"));
}

TEST(Expression, NamesItsSettingsOnceInTheOrderOfTheText) {
  const Expression expression("b * (a.c + b) / min(d, 2)", [](const std::string&) { return true; });
  EXPECT_THAT(expression.names(), testing::ElementsAre("b", "a.c", "d"));
}

TEST(Expression, JoinsTextsAndCopiesWhateverASettingIs) {
  EXPECT_EQ(value("'data/train.' + lang"), "data/train.de");
  EXPECT_EQ(value("lang + '-' + n + \"-\" + x + on"), "de-7-0.5true");
  EXPECT_EQ(value("n + n + 'k'"), "14k") << "from the left";
  EXPECT_EQ(value("'warm-up'"), 100) << "a setting in quotes";
  EXPECT_EQ(value("'warm up'"), "warm up");
  EXPECT_EQ(value("lang"), "de");
  EXPECT_EQ(value("on"), true);
  EXPECT_EQ(value("sizes"), json({1, 2}));
  EXPECT_EQ(error_of([] { value("2 * lang"); }), "lang is no number but \"de\"");
  EXPECT_EQ(error_of([] { value("max(n, on)"); }), "on is no number but true");
  EXPECT_EQ(error_of([] { value("lang + sizes"); }), "sizes is no number but [1,2]");
  EXPECT_EQ(error_of([] { value("0.06 * 'warm_up'"); }),
            "\"warm_up\" is no number, nor a setting of the grid; + joins texts");
}

TEST(Expression, ComparesOnce) {
  EXPECT_EQ(value("n > 6"), true);
  EXPECT_EQ(value("n > 7"), false);
  EXPECT_EQ(value("n >= 7"), true);
  EXPECT_EQ(value("n < 7.5"), true);
  EXPECT_EQ(value("n ≤ 2 * x + 6"), true);
  EXPECT_EQ(value("n<=6"), false);
  EXPECT_EQ(value("n ≥ 8"), false);
  EXPECT_EQ(error_of([] { value("lang > 2"); }), "lang is no number but \"de\"");
  EXPECT_EQ(error_of([] { value("1 < n < 9"); }), "\"< 9\" is not expected after \"1 < n \"");
}

TEST(Expression, OfNoFiniteValueIsAnError) {
  EXPECT_EQ(error_of([] { value("n / (n - 7)"); }), "it divides by zero");
  EXPECT_EQ(error_of([] { value("n / 0.0"); }), "it divides by zero");
  EXPECT_THAT(error_of([] { value("1e308 * 10"); }), HasSubstr("no finite value"));
  EXPECT_THAT(error_of([] { value("9223372036854775807 + n"); }), HasSubstr("is too large"));
  EXPECT_THAT(error_of([] { value("-9223372036854775807 - n"); }), HasSubstr("is too large"));
  EXPECT_THAT(error_of([] { value("4611686018427387904 * 2"); }), HasSubstr("is too large"));
}

TEST(Expression, WithAMistakeSaysWhatIsExpected) {
  const auto error = [](const std::string& text) {
    return error_of([&] { Expression(text, [](const std::string&) { return true; }); });
  };
  EXPECT_EQ(error(""), "a number or a setting is missing at its end");
  EXPECT_EQ(error("2 *"), "a number or a setting is missing at its end");
  EXPECT_EQ(error("2 3"), "\"3\" is not expected after \"2 \"");
  EXPECT_EQ(error("a = 3"), "\"= 3\" is not expected after \"a \"");
  EXPECT_EQ(error("(a"), "a \")\" is missing after \"(a\"");
  EXPECT_EQ(error("'a"), "the quotation mark before \"'a\" is not closed");
  EXPECT_EQ(error("sqr(a)"),
            "there is no function sqr (did you mean \"sqrt\"?); there are min, max, round, floor, ceil, sqrt, log");
  EXPECT_EQ(error("sqrt(a, b)"), "sqrt takes one value, not 2");
  EXPECT_THAT(error("%"), HasSubstr("\"%\" is neither a number nor a setting"));
  EXPECT_THAT(error(std::string(200, '(')), HasSubstr("nested more than 100 deep"));
  EXPECT_THAT(error(std::string(200, '-') + "1"), HasSubstr("nested more than 100 deep"));
}

}  // namespace
}  // namespace tearless::harness::expression_test
