// log.txt stays small whatever a program prints: its beginning, its end, and how much is missing between them.
#include "harness/launch/attempt_log.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/support/paths.h"

namespace tearless::harness::attempt_log_test {
namespace {

constexpr AttemptLog::Limits kSmall{.most = 100, .kept = 20};

std::string left_out(int64_t bytes) {
  return "\n[tearless: about " + std::to_string(bytes) + " bytes of output are left out here]\n";
}

class AttemptLogTest : public testing::Test {
 protected:
  std::string text() const { return test::read_text(file_); }

  test::TempFolder folder_;
  std::filesystem::path file_ = folder_ / "log.txt";
};

TEST_F(AttemptLogTest, KeepsEverythingUpToItsLimit) {
  AttemptLog log(file_, kSmall);
  std::string all;
  for (int i = 0; i < 10; ++i) {
    all += "line " + std::to_string(i) + "...\n";
    log.append("line " + std::to_string(i) + "...\n");
  }
  ASSERT_EQ(all.size(), 100u);
  EXPECT_EQ(text(), all);
}

TEST_F(AttemptLogTest, BeyondItKeepsTheBeginningAndTheEndAndTheMissingCount) {
  AttemptLog log(file_, kSmall);
  const std::string first(20, 'a'), middle(20, 'b'), last(20, 'c');
  log.append(first);
  for (int i = 0; i < 3; ++i) log.append(middle);
  log.append(last);
  log.append("d");
  EXPECT_EQ(text(), first + left_out(60) + last + "d");
}

TEST_F(AttemptLogTest, CountsWhatComesByteByByte) {
  AttemptLog log(file_, kSmall);
  for (int i = 0; i < 101; ++i) log.append("x");
  EXPECT_EQ(text(), std::string(20, 'x') + left_out(60) + std::string(20, 'x') + "x");
}

TEST_F(AttemptLogTest, OfABurstKeepsTheLastPart) {
  AttemptLog log(file_, kSmall);
  log.append(std::string(500, 'x') + "what explains it....");
  EXPECT_EQ(text(), "what explains it....");
  log.append(std::string(80, 'y') + std::string(20, 'z'));
  EXPECT_EQ(text(), "what explains it....zzzzzzzzzzzzzzzzzzzz");
}

TEST_F(AttemptLogTest, AppendsToAnExistingLog) {
  test::write_text(file_, std::string(90, 'a'));
  AttemptLog log(file_, kSmall);
  log.append("bbbbbbbbbb");
  EXPECT_EQ(text(), std::string(90, 'a') + "bbbbbbbbbb");
  log.append("c");
  EXPECT_EQ(text(), std::string(20, 'a') + left_out(60) + std::string(10, 'a') + "bbbbbbbbbb" + "c");
}

TEST_F(AttemptLogTest, StaysSmallForAnyOutputAndCountsWhatIsMissing) {
  AttemptLog log(file_, {.most = 1000, .kept = 200});
  int64_t written = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    written += static_cast<int64_t>(line.size());
    log.append(line);
    ASSERT_LE(text().size(), 1000u);
  }
  const std::string left = text();
  EXPECT_EQ(left.rfind("line 0\nline 1\n", 0), 0u);
  EXPECT_EQ(left.substr(left.size() - 10), "line 1999\n");
  std::smatch said;
  ASSERT_TRUE(std::regex_search(left, said, std::regex("about ([0-9]+) bytes")));
  const auto gone = static_cast<double>(written) - static_cast<double>(left.size());
  EXPECT_NEAR(std::stod(said[1]), gone, 0.2 * gone);  // its own lines between are counted, too
}

}  // namespace
}  // namespace tearless::harness::attempt_log_test
