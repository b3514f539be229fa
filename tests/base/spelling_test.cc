#include "base/spelling.h"

#include <gtest/gtest.h>

namespace tearless::spelling_test {
namespace {

TEST(Spelling, OfANumberIsAsPeopleAndTomlWriteIt) {
  EXPECT_EQ(number_spelled("5e-4"), 0.0005);
  EXPECT_EQ(number_spelled("+.5"), 0.5);
  EXPECT_EQ(number_spelled("1."), 1.0);
  EXPECT_EQ(number_spelled("-3_000"), -3000.0);
  EXPECT_EQ(number_spelled("1E3"), 1000.0);
  for (const char* other : {"", "+", "+-1", "1 ", " 1", "1e", "0x10", "inf", "nan", "1e999", "1.2.3", "one", "_"}) {
    EXPECT_EQ(number_spelled(other), std::nullopt) << other;
  }
}

TEST(Spelling, OfOneValueMayDiffer) {
  for (const auto& [a, b] : {std::pair("5e-4", "0.0005"),
                             {"1", "1.0"},
                             {"3e6", "3000000.0"},
                             {"1e-7", "1e-07"},
                             {"-0", "0"},
                             {"post", "post"}}) {
    EXPECT_TRUE(is_same_value(a, b)) << a << " " << b;
    EXPECT_TRUE(is_same_value(b, a)) << a << " " << b;
  }
  for (const auto& [a, b] : {std::pair("1", "1.01"), {"true", "1"}, {"1", "1 "}, {"Post", "post"}, {"", "0"}}) {
    EXPECT_FALSE(is_same_value(a, b)) << a << " " << b;
  }
}

TEST(Spelling, OfNumbersAndTruthValuesIsBare) {
  for (const char* label : {"1", "0.001", "1e-3", "-2", "true", "false"}) EXPECT_TRUE(is_bare(label)) << label;
  for (const char* label : {"", "post", "2 layers", "nan", "inf", "True", "1x"}) EXPECT_FALSE(is_bare(label)) << label;
}

}  // namespace
}  // namespace tearless::spelling_test
