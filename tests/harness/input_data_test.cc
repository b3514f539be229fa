// The input files of runs: they are read where they lie, and a run whose files are missing or were changed since it was
// planned waits for them and continues when they are back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "harness/runs/workspace.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::input_data_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class InputDataTest : public ServedRunTest {
 protected:
  InputDataTest() {
    write_files("the old bytes");
    write_grid("grid.toml", "");
  }

  // What the grids read: one file by its path, two by the beginning of theirs.
  void write_files(const std::string& bytes) const {
    fs::create_directories(folder_ / "corpus");
    for (const char* name : {"train.en", "pair.a", "pair.b"}) test::write_text(corpus(name), bytes + " of " + name);
  }
  fs::path corpus(const std::string& name) const { return folder_ / "corpus" / name; }

  // Three runs.
  void write_grid(const std::string& name, const std::string& more) const {
    test::write_text(folder_ / name,
                     "[set]\ndata.train = \"corpus/train.en\"\ndata.pair = \"corpus/pair\"\n[axis]\n"
                     "model.kind = [\"a\", \"b\", \"c\"]\n" +
                         more);
  }

  // One run at a time, so that the number of attempts is known.
  void serve() const { ok({"daemon", "--background", "--jobs", "1"}); }
  void stop() const {
    ok({"stop"});
    EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "results/tearless.lock"); }));
  }

  std::vector<std::string> column(const std::string& sql) const {
    std::vector<std::string> values;
    for (const json& row : json::parse(ok({"--json", "sql", sql}).output)) values.push_back(row.at("it"));
    return values;
  }
  std::vector<std::string> states() const { return column("SELECT state AS it FROM runs_view"); }
  std::vector<std::string> reasons() const { return column("SELECT reason AS it FROM runs_view"); }
  bool all_wait() const {
    return test::eventually([&] { return states() == std::vector<std::string>(3, "waiting_data"); });
  }
  bool all_are_done() const {
    return test::eventually([&] { return states() == std::vector<std::string>(3, "done"); });
  }

  static std::map<std::string, std::string> undisturbed() {
    const InputDataTest other;
    other.ok({"run", "grid.toml"});
    return other.results();
  }
};

TEST_F(InputDataTest, IsReadWhereItLies) {
  ok({"run", "grid.toml"});
  for (const RunDirectory& run : runs()) {
    EXPECT_THAT(test::read_text(run.local()), HasSubstr("\"" + corpus("pair").string() + "\""));
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "results")) {
    EXPECT_NE(entry.path().filename(), "train.en");
  }
}

TEST_F(InputDataTest, AChangedFileIsNamedWithBothChecksumsAndItsRunsContinueWhenItIsBack) {
  write_grid("grid.toml", "[policy]\ntries = { crashed = 1 }\n");
  queue("grid.toml");
  const std::string planned = sha256_of_file(corpus("pair.b"));
  test::write_text(corpus("pair.b"), "other bytes");
  free_the_daemon();
  ASSERT_TRUE(all_wait()) << testing::PrintToString(states());
  EXPECT_THAT(reasons(),
              Each(corpus("pair.b").string() + " has the SHA-256 " + sha256("other bytes") +
                   ", but the run was planned with " + planned + "; the run continues when that file is back"));
  EXPECT_EQ(attempts(), 1) << "the other runs read the same files";
  EXPECT_THAT(ok({"status", "last"}).output, AllOf(HasSubstr("3 waiting_data"), HasSubstr("pair.b has the")));
  EXPECT_EQ(tearless({"wait", "all"}).code, 1) << "nobody knows when they continue";

  test::write_text(corpus("pair.b"), "still other bytes");
  ASSERT_TRUE(test::eventually([&] { return attempts() == 2; }));
  ASSERT_TRUE(all_wait());
  EXPECT_THAT(reasons(), Each(HasSubstr(sha256("still other bytes"))));

  write_files("the old bytes");
  ASSERT_TRUE(all_are_done()) << testing::PrintToString(reasons());
  EXPECT_EQ(results(), undisturbed());
  EXPECT_THAT(column("SELECT outcome AS it FROM attempts_view"),
              UnorderedElementsAre("data", "data", "done", "done", "done"));
  ok({"verify"});
}

TEST_F(InputDataTest, AMissingFileIsWaitedForWithoutAnotherAttempt) {
  queue("grid.toml");
  fs::rename(folder_ / "corpus", folder_ / "elsewhere");
  free_the_daemon();
  ASSERT_TRUE(all_wait());
  EXPECT_THAT(reasons(), Each(HasSubstr(" is missing; the run continues when the file with the SHA-256 ")));
  EXPECT_EQ(attempts(), 1);

  stop();
  serve();  // what the first service knew is gone
  ASSERT_TRUE(test::eventually([&] { return attempts() == 2; }));
  ASSERT_TRUE(all_wait());
  fs::rename(folder_ / "elsewhere", folder_ / "corpus");
  ASSERT_TRUE(all_are_done());
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(InputDataTest, WhatComesBackWhileNobodyLooksIsFoundByTheNextService) {
  queue("grid.toml");
  fs::rename(corpus("train.en"), folder_ / "elsewhere");
  free_the_daemon();
  ASSERT_TRUE(all_wait());
  stop();
  fs::rename(folder_ / "elsewhere", corpus("train.en"));
  ok({"resume", "grid.toml"});  // starts a service
  ASSERT_TRUE(all_are_done());
}

TEST_F(InputDataTest, ARunInTheForegroundSaysWhatItsRunsWaitForAndEnds) {
  const fs::path engine = folder_ / "engine";  // the file changes after each check
  test::write_text(engine, "#!/bin/sh\n\"" + test::program("fake-engine").string() +
                               "\" \"$@\" || exit\n[ $1 != check ] || echo more >> corpus/pair.b\n");
  fs::permissions(engine, fs::perms::owner_all);
  const test::Finished run = tearless({"run", "grid.toml", "--engine", "./engine"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.output, AllOf(HasSubstr("3 runs: 3 waiting_data"),
                                HasSubstr(" and 2 more: " + corpus("pair.b").string() + " has the SHA-256 ")));
  ok({"run", "grid.toml", "--engine", test::program("fake-engine").string()});
  EXPECT_THAT(column("SELECT state AS it FROM runs_view ORDER BY state"),
              testing::ElementsAre("done", "done", "done", "waiting_data", "waiting_data", "waiting_data"))
      << "the new bytes are other runs";
}

TEST_F(InputDataTest, RunsThatWaitCanBeCancelledAndSubmittedAgain) {
  queue("grid.toml");
  test::write_text(folder_ / "other.toml", std::regex_replace(test::read_text(folder_ / "grid.toml"),
                                                              std::regex("\"a\", \"b\", \"c\""), "\"d\""));
  ok({"submit", "other.toml"});
  fs::rename(corpus("train.en"), folder_ / "elsewhere");
  free_the_daemon();
  ASSERT_TRUE(test::eventually([&] { return states() == std::vector<std::string>(4, "waiting_data"); }));
  EXPECT_EQ(attempts(), 1);
  ok({"cancel", "grid.toml", "1"});
  EXPECT_THAT(states(), UnorderedElementsAre("cancelled", "waiting_data", "waiting_data", "waiting_data"));
  ok({"cancel", "grid.toml"});
  fs::rename(folder_ / "elsewhere", corpus("train.en"));
  EXPECT_TRUE(test::eventually([&] {
    return column("SELECT state AS it FROM runs_view ORDER BY state") ==
           std::vector<std::string>{"cancelled", "cancelled", "cancelled", "done"};
  })) << "all four read the same files";
  ok({"submit", "grid.toml"});
  ASSERT_TRUE(test::eventually([&] { return states() == std::vector<std::string>(4, "done"); }));
}

TEST_F(InputDataTest, WhatSweepsOfOtherFilesWaitForDoesNotKeepARunFromStarting) {
  queue("grid.toml");
  fs::create_directories(folder_ / "other");
  for (const char* name : {"train.en", "pair.a", "pair.b"}) fs::copy(corpus(name), folder_ / "other" / name);
  test::write_text(
      folder_ / "other.toml",
      "[set]\ndata.train = \"other/train.en\"\ndata.pair = \"other/pair\"\n[axis]\nmodel.kind = [\"d\"]\n");
  fs::rename(corpus("train.en"), folder_ / "elsewhere");
  ok({"submit", "other.toml"});
  free_the_daemon();
  EXPECT_TRUE(test::eventually([&] {
    return column("SELECT state AS it FROM runs_view ORDER BY state") ==
           std::vector<std::string>{"done", "waiting_data", "waiting_data", "waiting_data"};
  }));
}

TEST_F(InputDataTest, LeaveTheSizeOfARunPendingAndOneThatHasNoneIsOfNoKnownSize) {
  const auto sizes = [&](const std::string& axis) {
    test::write_text(folder_ / "sizes.toml", "[set]\nfake.shape = \"unknown\"\nfake.updates = 4\n[axis]\n" + axis);
    const std::string plan = ok({"plan", "sizes.toml"}).output;
    return plan.substr(plan.find("at most; ") + 9, 42);
  };
  EXPECT_THAT(sizes("model.kind = [\"a\", \"b\"]\n"), StartsWith("parameters: not told by the program\n"));
  const std::string pending = "parameters: pending until the data are pre";
  EXPECT_EQ(sizes("data.train = [\"corpus/train.en\"]\n"), pending);
  EXPECT_EQ(sizes("[[axis.x]]\nlabel = \"a\"\nset = { model.kind = \"a\" }\n"
                  "[[axis.x]]\nlabel = \"b\"\nset = { data.train = \"corpus/none\" }\n"),
            pending)
      << "one waits";
}

}  // namespace
}  // namespace tearless::harness::input_data_test
