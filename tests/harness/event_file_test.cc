// Records of event files, byte for byte: of a file that TensorBoard's writer (tensorboard 2.21, summary.writer) has
// made of the same values.
#include "harness/commands/event_file.h"

#include <gtest/gtest.h>

#include <limits>

namespace tearless::harness::event_file_test {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[(byte >> 4) & 15], kDigits[byte & 15]};
  }
  return text;
}

TEST(EventFile, BeginsWithTheVersionOfItsFormat) {
  EXPECT_EQ(hex(event_file_header(1767225600)),
            "1800000000000000a37f4b2209000000406e55da411a0d627261696e2e4576656e743a32c3486dfc");
}

TEST(EventFile, HasARecordForEachValue) {
  EXPECT_EQ(hex(event_record(1767225600, 300, "train.loss", 1.0 / 3)),
            "2100000000000000017becf609000000406e55da4110ac022a130a110a0a747261696e2e6c6f737315abaaaa3eb4370ad9");
  EXPECT_EQ(hex(event_record(0.5, 10'000'000, "dev.blé", std::numeric_limits<double>::infinity())),
            "2100000000000000017becf609000000000000e03f1080ade2042a110a0f0a086465762e626cc3a9150000807f59f862fa");
}

TEST(EventFile, HasLongTags) {
  std::string tag;
  for (int i = 0; i < 200; ++i) tag += hex("x");
  EXPECT_EQ(hex(event_record(1767225600, 1, std::string(200, 'x'), -0.0)),
            "e10000000000000003b7489109000000406e55da4110012ad3010ad0010ac801" + tag + "15000000806b44eb8b");
}

}  // namespace
}  // namespace tearless::harness::event_file_test
