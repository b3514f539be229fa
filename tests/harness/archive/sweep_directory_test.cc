// The folder of a sweep: what a service needs to run it without its grid file, and what was asked of it since.
#include "harness/folders/sweep_directory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/run_directory.h"
#include "harness/archive/archive.h"
#include "tests/support/error_of.h"
#include "tests/support/faults.h"
#include "tests/support/paths.h"

namespace tearless::harness::sweep_directory_test {
namespace {

using test::error_of;
using testing::HasSubstr;
namespace fs = std::filesystem;

class SweepFolder : public testing::Test {
 protected:
  SweepFolder() : workspace_(folder_.path()) {
    sweep_.runs.push_back({.id = run_id("n = 1\n"),
                           .settings = "n = 1\n",
                           .local = "threads = 2\n",
                           .coordinates = {{"axis", "é"}, {"a", "b"}},
                           .seed = 3,
                           .rank = 4,
                           .needs = {.device = "cuda", .threads = 2},
                           .updates = 7});
    harness::Run& other = sweep_.runs.emplace_back(sweep_.runs.front());
    other.settings = "n = 2\n";
    other.id = run_id("n = 2\n");
    other.seed = 8;
    other.waiting_for = "\"train.de\" is missing";
    other.needs.memory_bytes = 1L << 40;
    other.needs.resource_class = "a class";
    other.parameters = 11;
    other.evaluations = 12;
    other.data = std::make_shared<const InputFiles>(InputFiles{{"/corpus/\"train\".en", "34"}});
    sweep_.id = sweep_id(sweep_, "grid text");
    freeze_sweep(workspace_, sweep_, "grid text");
  }
  Sweep read() { return read_sweep(workspace_, sweep_.id); }
  fs::path file(const char* name) const { return workspace_.sweep(sweep_.id) / name; }

  test::TempFolder folder_;
  Workspace workspace_;
  Sweep sweep_{.id = "",
               .title = "A title",
               .name = "a name",
               .grid_file = "/grids/g.toml",
               .submitted_at = "2026-01-01T00:00:00Z",
               .runs = {},
               .program = "/bin/engine",
               .stamp = {{"numerics", 3}},
               .policy = {.stall_seconds = 5, .grace_seconds = 6},
               .reason = "",
               .windows = {{"train.loss"}}};
};

TEST(SweepId, OfACommittedSweepStaysWhatItIs) {
  const test::TempFolder folder;
  unpack(test::source_root() / "results/ada_small.tar.gz", folder.path());
  const Workspace workspace(folder.path());
  const char* id = "ada_small-c2782bcf";
  EXPECT_EQ(sweep_id(read_sweep(workspace, id), test::read_text(workspace.sweep(id) / "grid.toml")), id);
}

TEST_F(SweepFolder, IfAPowerCutLeavesTheNameOfSweepJsonItLeavesTheOtherFiles) {
  int64_t whole = 0;
  const int64_t points =
      test::at_each_power_cut({[&](const fs::path& root) { make_folders(Workspace(root).sweeps()); },
                               [&](const fs::path& root) { freeze_sweep(Workspace(root), sweep_, "grid text"); },
                               fs::path("sweeps") / sweep_.id / "sweep.json"},
                              [&](const fs::path& left, int64_t point) {
                                const Workspace workspace(left);
                                if (!fs::exists(workspace.sweep(sweep_.id) / "sweep.json")) return;
                                ++whole;
                                EXPECT_EQ(error_of([&] { read_sweep(workspace, sweep_.id); }), "") << point;
                              });
  EXPECT_GT(points, 10);
  EXPECT_GE(whole, 2);
}

TEST_F(SweepFolder, OfAnEarlierBuildWhichCallsTheResourceClassShapeIsRead) {
  std::string lines = test::read_text(file("runs.jsonl"));
  const std::string word = "\"resource_class\"";
  for (size_t at; (at = lines.find(word)) != std::string::npos;) lines.replace(at, word.size(), "\"shape\"");
  test::write_text(file("runs.jsonl"), lines);
  EXPECT_EQ(read().runs[1].needs.resource_class, "a class");
}

TEST_F(SweepFolder, IsReadAsItWasWritten) {
  const Sweep sweep = read();
  EXPECT_EQ(sweep.title, "A title");
  EXPECT_EQ(sweep.name, "a name");
  EXPECT_EQ(sweep.program, "/bin/engine");
  EXPECT_EQ(sweep.stamp, nlohmann::json({{"numerics", 3}}));
  EXPECT_EQ(sweep.scores, std::nullopt);
  EXPECT_THAT(sweep.windows, testing::Optional(testing::ElementsAre("train.loss")));
  EXPECT_EQ(sweep.policy.stall_seconds, 5);
  EXPECT_EQ(sweep.policy.grace_seconds, 6);
  EXPECT_EQ(nlohmann::json(sweep.policy).dump(),
            R"({"grace_seconds":6,"memory_bytes":0,"stall_seconds":5.0,"tries":{}})");
  EXPECT_EQ(sweep.state, SweepState::kActive);
  ASSERT_EQ(sweep.runs.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(to_json(sweep.runs[i]), to_json(sweep_.runs[i]));
  EXPECT_EQ(sweep.runs[0].settings, "n = 1\n");
  EXPECT_EQ(sweep.runs[0].coordinates, sweep_.runs[0].coordinates);
  EXPECT_EQ(sweep.runs[0].needs.memory_bytes, std::nullopt);
  EXPECT_EQ(sweep.runs[0].data, nullptr);
  EXPECT_EQ(sweep.runs[1].needs, sweep_.runs[1].needs);
  EXPECT_EQ(*sweep.runs[1].data, *sweep_.runs[1].data);
}

TEST_F(SweepFolder, ANewSubmissionReplacesWhatIsNotPartOfItsId) {
  sweep_.runs.at(0).local = "threads = 1\n";
  sweep_.program = "/bin/newer";
  ASSERT_EQ(sweep_id(sweep_, "grid text"), sweep_.id);
  freeze_sweep(workspace_, sweep_, "grid text");
  EXPECT_EQ(read().runs.at(0).local, "threads = 1\n");
  EXPECT_EQ(read().program, "/bin/newer");
}

TEST_F(SweepFolder, TheLastRequestCounts) {
  log_event(workspace_, sweep_.id, "submitted");
  log_event(workspace_, sweep_.id, "paused", {{"text", "why"}});
  log_event(workspace_, sweep_.id, "priority", {{"priority", 7}});
  EXPECT_EQ(read().state, SweepState::kPaused);
  EXPECT_EQ(read().reason, "why");
  EXPECT_EQ(read().priority, 7);
  log_event(workspace_, sweep_.id, "resumed");
  EXPECT_EQ(read().state, SweepState::kActive);
  log_event(workspace_, sweep_.id, "cancelled", {{"run", "aa"}});  // of a run
  EXPECT_EQ(read().state, SweepState::kActive);
  log_event(workspace_, sweep_.id, "cancelled", {{"run", ""}});
  EXPECT_EQ(read().state, SweepState::kCancelled);
  EXPECT_EQ(read().priority, 7);
}

TEST_F(SweepFolder, ALineThatAPowerCutToreLosesNoOther) {
  log_event(workspace_, sweep_.id, "paused");
  const std::string whole = read_file(file("events.jsonl"));
  for (size_t kept = 0; kept < whole.size(); ++kept) {
    test::write_text(file("events.jsonl"), whole + whole.substr(0, kept));
    log_event(workspace_, sweep_.id, "priority", {{"priority", 2}});
    EXPECT_EQ(read().state, SweepState::kPaused);
    EXPECT_EQ(read().priority, 2) << kept;
  }
}

TEST_F(SweepFolder, RunsOfAnotherSweepAreRefused) {
  const std::string runs = read_file(file("runs.jsonl"));
  const auto refusal_of = [&](const std::string& before, const std::string& after) {
    std::string changed = runs;
    test::write_text(file("runs.jsonl"), changed.replace(changed.find(before), before.size(), after));
    return error_of([&] { read(); });
  };
  EXPECT_THAT(refusal_of("n = 1", "n = 7"), HasSubstr("was changed: the settings of run " + run_id("n = 1\n")));
  EXPECT_THAT(refusal_of("\"seed\":3", "\"seed\":4"), HasSubstr("are no longer what was submitted"));
  EXPECT_THAT(refusal_of("\"é\"", "\"e\""), HasSubstr("are no longer what was submitted"));
  EXPECT_THAT(refusal_of(runs.substr(0, runs.find('\n') + 1), ""), HasSubstr("are no longer what was submitted"));
  const std::string damaged = "is damaged (\"threads\" is not a whole number); delete that folder";
  EXPECT_THAT(refusal_of("\"threads\":2", "\"threads\":true"), HasSubstr(damaged));
  EXPECT_THAT(refusal_of("\"threads\":2", "\"threads\":2.5"), HasSubstr(damaged));
  EXPECT_THAT(refusal_of("{\"/", "{\""), HasSubstr("is not an absolute path"));
  test::write_text(file("runs.jsonl"), "{\"id\": \n{\n");
  EXPECT_THAT(error_of([&] { read(); }), HasSubstr("is damaged"));
}

TEST_F(SweepFolder, HasItsIdOfTheseBytes) {
  // An edit of how they are written would make every sweep that is submitted again a new one.
  EXPECT_EQ(sweep_.id,
            "g-" + sha256(fmt::format(
                              R"(grid text{{"id":"{}","updates":7,"coordinates":{{"axis":"é","a":"b"}},"seed":3}}
{{"id":"{}","updates":7,"coordinates":{{"axis":"é","a":"b"}},"seed":8,"waiting_for":"\"train.de\" is missing"}}
)",
                              run_id("n = 1\n"), run_id("n = 2\n")))
                       .substr(0, 8));
}

TEST_F(SweepFolder, SharesTheInputFilesOfRunsThatReadTheSame) {
  sweep_.runs[0].data = std::make_shared<const InputFiles>(*sweep_.runs[1].data);
  freeze_sweep(workspace_, sweep_, "grid text");
  const Sweep sweep = read();
  EXPECT_EQ(sweep.runs[0].data, sweep.runs[1].data);
}

TEST_F(SweepFolder, WithAnEventThatIsNoEventIsDamaged) {
  log_event(workspace_, sweep_.id, "priority", {{"priority", "high"}});
  EXPECT_THAT(error_of([&] { read(); }), HasSubstr("is damaged"));
}

}  // namespace
}  // namespace tearless::harness::sweep_directory_test
