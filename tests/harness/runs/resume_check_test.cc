// Where the result files of two trainings of one run differ, and what resume.json and its sentence say of it.
#include "harness/runs/resume_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/paths.h"

namespace tearless::harness::resume_check_test {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

class Differences : public testing::Test {
 protected:
  Differences() : undisturbed_(folder_ / "undisturbed"), resumed_(folder_ / "resumed") {
    for (const RunDirectory& run : {undisturbed_, resumed_}) write(run, "1\n2\n3\n", {"extra.txt"});
  }
  static void write(const RunDirectory& run, const std::string& metrics, const std::vector<std::string>& files,
                    const std::string& reason = "max_epochs") {
    make_folders(run.root());
    test::write_text(run.root() / "metrics.jsonl", metrics);
    test::write_text(run.root() / "scores.json", "{}");
    for (const std::string& file : files) test::write_text(run.root() / file, "same");
    write_done(run, "done", 3, reason, files);
  }
  std::vector<FileDifference> found() const { return differences_between(undisturbed_, resumed_); }

  test::TempFolder folder_;
  RunDirectory undisturbed_, resumed_;
};

auto is(const std::string& file, int64_t line, const std::string& expected, const std::string& found) {
  return testing::AllOf(Field(&FileDifference::file, file), Field(&FileDifference::line, line),
                        Field(&FileDifference::expected, expected), Field(&FileDifference::found, found));
}

TEST_F(Differences, OfEqualFilesAreNone) { EXPECT_THAT(found(), IsEmpty()); }

TEST_F(Differences, NameTheFirstLineThatDiffers) {
  write(resumed_, "1\n2\n4\n", {"extra.txt"});
  EXPECT_THAT(found(), ElementsAre(is("metrics.jsonl", 3, "3", "4")));
  write(resumed_, "1\n2\n", {"extra.txt"});
  EXPECT_THAT(found(), ElementsAre(is("metrics.jsonl", 3, "3", "")));
}

TEST_F(Differences, IncludeTheEndOfTheTraining) {
  write(resumed_, "1\n2\n3\n", {"extra.txt"}, "early_stop");
  EXPECT_THAT(found(), ElementsAre(is("DONE", 1, "done at update 3: max_epochs", "done at update 3: early_stop")));
}

TEST_F(Differences, AreLookedForInAllFilesThatOneOfThemNames) {
  test::write_text(resumed_.root() / "extra.txt", "other");
  EXPECT_THAT(found(), ElementsAre(is("extra.txt", 1, "same", "other")));
  write(resumed_, "1\n2\n3\n", {"extra.txt", "more.txt"});
  EXPECT_THAT(found(), ElementsAre(is("more.txt", 0, "missing", "there")));
}

TEST(ResumeCheck, IsWrittenAndReadAndSaidInOneSentence) {
  const test::TempFolder folder;
  const RunDirectory run(folder / "0123");
  make_folders(run.root());
  EXPECT_FALSE(read_resume_check(run));
  ResumeCheck check{.verified_at = "2026-01-31T12:00:00Z",
                    .program = "programs/1/engine",
                    .version = "0.1.0",
                    .seed = 7,
                    .stops_requested = 3,
                    .stops = {{.update = 3, .kill = false, .resumed_from = 3}, {.update = 7, .kill = true}},
                    .settings = {},
                    .trained_twice = true,
                    .differences = {}};
  EXPECT_EQ(sentence_of(check),
            "equal after 2 stops (SIGTERM at update 3, SIGKILL at 7; seed 7), compared with a second training without "
            "stops");
  check.settings = {"a=1", "b=2"};
  check.differences = {{.file = "metrics.jsonl", .line = 4}, {.file = "more.txt", .line = 0}};
  write_resume_check(run, check);
  const std::optional<ResumeCheck> read = read_resume_check(run);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(check));
  EXPECT_EQ(sentence_of(*read),
            "DIFFERENT after 2 stops (SIGTERM at update 3, SIGKILL at 7; seed 7) in metrics.jsonl from line 4, "
            "more.txt, with a=1, b=2");
  EXPECT_EQ(outcome_of(*read), "different (a=1, b=2)");
}

}  // namespace
}  // namespace tearless::harness::resume_check_test
