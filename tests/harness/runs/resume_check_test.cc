// Where the result files of two trainings of one run differ, and what resume.json and its sentence say of it.
#include "harness/runs/resume_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/sealed_json.h"
#include "tests/support/paths.h"

namespace tearless::harness::resume_check_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void write(const RunDirectory& run, const std::string& metrics, const std::vector<std::string>& files,
           const std::string& reason = "max_epochs") {
  make_folders(run.root());
  test::write_text(run.metrics(), metrics);
  test::write_text(run.scores(), "{}");
  for (const std::string& file : files) test::write_text(run.root() / file, "same");
  write_done(run, "done", 3, reason, files);
}

TEST(ResumeCheck, DifferencesAreLookedForInTheEndAndInAllFilesThatOneOfTheRunsNames) {
  const test::TempFolder folder;
  const RunDirectory undisturbed(folder / "undisturbed"), resumed(folder / "resumed");
  const auto found = [&] { return differences_between(undisturbed, resumed); };
  write(undisturbed, "1\n2\n3\n", {"extra.txt"});
  write(resumed, "1\n2\n3\n", {"extra.txt"});
  EXPECT_THAT(found(), IsEmpty());
  test::write_text(resumed.root() / "extra.txt", "other");
  EXPECT_THAT(found(), ElementsAre("extra.txt from line 1"));
  write(resumed, "1\n2\n4\n", {"extra.txt", "more.txt"});
  EXPECT_THAT(found(), ElementsAre("metrics.jsonl from line 3", "more.txt"));
  write(resumed, "1\n2\n", {"extra.txt", "more.txt"}, "early_stop");
  EXPECT_THAT(found(), ElementsAre("DONE", "metrics.jsonl from line 3", "more.txt"));
}

TEST(ResumeCheck, ADifferenceInNumbersOfFourBytesHasTheirPlace) {
  const test::TempFolder folder;
  const RunDirectory undisturbed(folder / "undisturbed"), resumed(folder / "resumed");
  for (const RunDirectory& run : {undisturbed, resumed}) write(run, "", {"gradient_norms.f32"});
  test::write_text(undisturbed.gradient_norms(), "aaaa\nbbbcccc");
  test::write_text(resumed.gradient_norms(), "aaaa\nbbbccdc");
  EXPECT_THAT(differences_between(undisturbed, resumed), ElementsAre("gradient_norms.f32 from value 3"));
}

TEST(ResumeCheck, IsReadAsItWasWrittenAndSaidInOneSentence) {
  const test::TempFolder folder;
  const RunDirectory run(folder / "0123");
  make_folders(run.root());
  EXPECT_FALSE(read_resume_check(run));
  ResumeCheck check{
      .outcome = "equal",
      .verified_at = "2026-01-31T12:00:00Z",
      .seed = 7,
      .stops = {{.update = 3, .signal = "SIGTERM", .resumed_from = 3}, {.update = 7, .signal = "SIGKILL"}},
      .differences = {}};
  EXPECT_EQ(sentence_of(check), "equal after 2 stops (SIGTERM at update 3, SIGKILL at 7; seed 7)");
  check.outcome = "different";
  check.differences = {"metrics.jsonl from line 4", "more.txt"};
  test::write_text(run.resume_check(), sealed(check));
  const std::optional<ResumeCheck> read = read_resume_check(run);
  ASSERT_TRUE(read);
  EXPECT_EQ(nlohmann::json(*read), nlohmann::json(check));
  EXPECT_EQ(
      sentence_of(*read),
      "DIFFERENT after 2 stops (SIGTERM at update 3, SIGKILL at 7; seed 7) in metrics.jsonl from line 4, more.txt");
}

}  // namespace
}  // namespace tearless::harness::resume_check_test
