// Numbers that a whole text is.
#include "base/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace tearless::numbers_test {
namespace {

TEST(NumberOf, IsTheWholeTextAndFitsItsType) {
  EXPECT_EQ(number_of<int64_t>("-12"), -12);
  EXPECT_EQ(number_of<double>("1e-3"), 0.001);
  EXPECT_TRUE(std::isinf(number_of<double>("inf").value()));
  EXPECT_EQ(number_of<int>("2147483647"), 2147483647);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "0x1", "1.5", "9223372036854775808"})
    EXPECT_EQ(number_of<int64_t>(text), std::nullopt) << text;
  EXPECT_EQ(number_of<int>("2147483648"), std::nullopt);
  EXPECT_EQ(number_of<uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(number_of<double>("1e999"), std::nullopt);
}

}  // namespace
}  // namespace tearless::numbers_test
