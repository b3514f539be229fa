#include "base/base64.h"

#include <gtest/gtest.h>

namespace tearless {
namespace {

TEST(Base64, OfTheTextsOfRfc4648IsAsItSays) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfb"), "//77");
}

}  // namespace
}  // namespace tearless
