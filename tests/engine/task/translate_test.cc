// The translation task, in what no whole run shows.
#include "engine/task/translate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tearless::engine::translate_test {
namespace {

TEST(Perplexity, IsAlwaysANumber) {
  EXPECT_NEAR(perplexity(10, 5), std::exp(2.0), 1e-12);
  EXPECT_TRUE(std::isfinite(perplexity(1e9, 1)));
  EXPECT_EQ(perplexity(0, 0), 0);
}

}  // namespace
}  // namespace tearless::engine::translate_test
