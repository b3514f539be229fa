// Copies of training programs: a sweep is trained by the program that it was submitted with, or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "harness/runs/workspace.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::program_copies_test {
namespace {

using testing::HasSubstr;

class ProgramCopiesTest : public ServedRunTest {
 protected:
  std::vector<std::string> programs() const { return folders_in(workspace().programs()); }
  fs::path copy() const { return workspace().programs() / programs().at(0) / "fake-engine"; }
  void flip_a_byte_of_the_copy() const {
    std::string bytes = test::read_text(copy());
    bytes.at(bytes.size() / 2) = static_cast<char>(bytes.at(bytes.size() / 2) ^ 1);
    test::write_text(copy(), bytes);
  }
  std::string status() const { return ok({"status", "last"}).output; }
};

TEST_F(ProgramCopiesTest, OneThatWasChangedTrainsNoFurtherRunUntilTheGridIsSubmittedAgain) {
  write_grid("\"succeed\"", 20);
  ok({"submit", "grid.toml", "--jobs", "1"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  fs::rename(copy(), folder_ / "fake-engine");  // the file that is running cannot be written to
  fs::copy_file(folder_ / "fake-engine", copy());
  flip_a_byte_of_the_copy();
  const std::string sentence =
      "the training program " + copy().string() + " was changed after it was copied; submit the grid again";
  EXPECT_TRUE(test::eventually([&] { return status().find(sentence) != std::string::npos; })) << status();
  EXPECT_TRUE(test::eventually([&] { return fs::exists(some.done()); })) << "that one is trained to its end";
  wait_until_unserved();
  EXPECT_EQ(attempts(), 1);
  EXPECT_THAT(tearless({"verify"}).output, HasSubstr(sentence + "  →  tearless submit "));

  ok({"submit", "grid.toml"});
  ok({"wait", "all"});
  EXPECT_EQ(results(), undisturbed());
  ok({"verify"});
}

TEST_F(ProgramCopiesTest, VerifyResumeRefusesOneThatWasChanged) {
  ok({"run", "grid.toml"});
  flip_a_byte_of_the_copy();
  const test::Finished refused = tearless({"verify-resume", "1"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("was changed after it was copied; submit the grid again: tearless submit "));
}

}  // namespace
}  // namespace tearless::harness::program_copies_test
