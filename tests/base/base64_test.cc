#include "base/base64.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace tearless {
namespace {

TEST(Base64, OfTheTextsOfRfc4648IsAsItSays) {
  const std::string text = "foobar", codes[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (size_t size = 0; size <= text.size(); ++size) EXPECT_EQ(base64(text.substr(0, size)), codes[size]);
  EXPECT_EQ(base64("\xff\xfe\xfb"), "//77");
}

}  // namespace
}  // namespace tearless
