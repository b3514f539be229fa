// Derivations with real processes: added to a grid of finished runs they train nothing; what commands print of them;
// and that they are rebuilt, verified, stopped and deleted as trained runs are.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::derived_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDerivations = R"(
[derived.wide]
beam = 8
[derived.mark]
kind = "score"
outputs = "wide"
)";

class DerivedTest : public RunTest {
 protected:
  DerivedTest() { write("", ""); }

  // Two runs of 12 updates; the table has a score of each of the derivations wide and mark that there are.
  void write(const std::string& derivations, const std::string& more_settings, const std::string& scores = "") const {
    std::string names = scores.empty() ? "" : ", " + scores;
    for (const char* name : {"wide", "mark"}) {
      const bool is_made = derivations.find(fmt::format("[derived.{}]", name)) != std::string::npos;
      if (scores.empty() && is_made) names += fmt::format(", \"{}.test.score\"", name);
    }
    test::write_text(folder_ / "grid.toml", "seeds = 2\n[set]\n\"fake.updates\" = 12\n" + more_settings +
                                                "[axis]\n\"model.kind\" = [\"a\"]\n[table]\nscores = [\"test.score\"" +
                                                names + "]\n" + derivations);
  }
  std::string table() const { return ok({"table", "grid.toml"}).output; }
  json rows(const std::string& sql) const { return json::parse(ok({"sql", "--json", sql}).output); }
  json runs_as_json() const { return json::parse(ok({"--json", "runs", "--derived"}).output); }
  /// By the id of the trained run: the number of attempts.
  int64_t trainings() const {
    int64_t count = 0;
    for (const RunDirectory& run : runs()) {
      if (fs::exists(run.settings()) && derived_from(test::read_text(run.settings())).empty())
        count += run.newest_attempt();
    }
    return count;
  }
  std::vector<RunDirectory> derived() const {
    std::vector<RunDirectory> all;
    for (const RunDirectory& run : runs()) {
      if (!fs::exists(run.settings())) continue;  // its folder has just been made
      if (!derived_from(test::read_text(run.settings())).empty()) all.push_back(run);
    }
    return all;
  }
};

// The fake engine measures half a second an update, and two seconds of a derived run. Theirs are shown with the trained
// run, as their scores are.
TEST_F(DerivedTest, WhatDerivedRunsHaveMeasuredStandsUnderTheirNames) {
  write(kDerivations, "", "\"measured.seconds\", \"wide.measured.seconds\"");
  ok({"run", "grid.toml"});
  EXPECT_THAT(table(), AllOf(HasSubstr("6.00 ± 0.00"), HasSubstr("2.00 ± 0.00"),
                             HasSubstr("\nmeasured.seconds: measured on: cpu, "),
                             HasSubstr("\nwide.measured.seconds: measured on: cpu, ")))
      << "the fake engine says threads of the trained run alone";
  const json runs = json::parse(ok({"--json", "runs", "--scores", "*.measured.*,measured.*"}).output);
  ASSERT_EQ(runs.size(), 2u);
  for (const json& run : runs) {
    EXPECT_EQ(run.at("scores").at("measured.seconds"), 6);
    EXPECT_EQ(run.at("scores").at("wide.measured.seconds"), 2);
    EXPECT_EQ(run.at("scores").at("mark.measured.seconds"), 2);
    EXPECT_FALSE(run.at("scores").contains("test.score"));
    const std::string id = run.at("run");
    EXPECT_THAT(ok({"explain", id}).output, HasSubstr("\n  measured.seconds_per_update = 0.5\n"));
    EXPECT_EQ(json::parse(ok({"--json", "explain", id}).output)[0].at("measured").at("measured.seconds"), 6);
  }
  write(kDerivations, "", "\"wide.measured.second\"");
  EXPECT_THAT(tearless({"plan", "grid.toml"}).errors, HasSubstr("did you mean \"wide.measured.seconds\"?"));
}

// A program whose trained runs have another result from now on, whatever the grid says.
class AnotherResult : public DerivedTest {
 protected:
  AnotherResult() {
    test::write_text(folder_ / "program", "#!/bin/sh\nFAKE_EXTRA=$(cat '" + (folder_ / "extra").string() + "') exec " +
                                              test::program("fake-engine").string() + " \"$@\"\n");
    fs::permissions(folder_ / "program", fs::perms::owner_all);
    set_extra("0");
    write(kDerivations, "program = \"program\"\n");
  }
  void write(const std::string& derivations, const std::string& more) const {
    test::write_text(folder_ / "grid.toml", more +
                                                "seeds = 1\n[set]\n\"fake.updates\" = 12\n[axis]\n"
                                                "\"model.kind\" = [\"a\"]\n[table]\nscores = [\"*score\"]\n" +
                                                derivations);
  }
  void set_extra(const std::string& number) const { test::write_text(folder_ / "extra", number + "\n"); }
  test::Finished ok(std::vector<std::string> arguments) const {
    test::Command with = command(std::move(arguments));
    with.environment.erase("TEARLESS_ENGINE");
    const test::Finished finished = finish(with);
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    return finished;
  }
  void remove_trained_run() const {
    for (const RunDirectory& run : runs()) {
      if (derived_from(test::read_text(run.settings())).empty()) fs::remove_all(run.root());
    }
  }
  // Of the trained run, and of the two that derive from it one after the other.
  std::vector<double> scores() const {
    std::vector<double> values;
    for (const json& row : json::parse(ok({"sql", "--json",
                                           "SELECT value FROM scores_view WHERE name LIKE '%.score' "
                                           "ORDER BY length(derived) > 0, value"})
                                           .output)) {
      values.push_back(row.at("value"));
    }
    return values;
  }
};

TEST_F(AnotherResult, OfATrainedRunHasItsDerivedRunsMadeAgain) {
  ok({"run", "grid.toml"});
  const std::vector<double> before = scores();
  ASSERT_EQ(before.size(), 3u);
  set_extra("5");
  remove_trained_run();
  EXPECT_THAT(ok({"plan", "grid.toml"}).output, HasSubstr("To run: 1 run"));
  ok({"run", "grid.toml"});
  const std::vector<double> after = scores();
  ASSERT_EQ(after.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(after[i], before[i] + 5) << i;
  EXPECT_THAT(ok({"table", "grid.toml"}).output, Not(HasSubstr("stale")));
  EXPECT_THAT(ok({"verify"}).output, Not(HasSubstr("stale")));
}

TEST_F(AnotherResult, MarksTheDerivedRunsOfTheEarlierOneUntilTheyAreMadeAgain) {
  ok({"run", "grid.toml"});
  const std::vector<double> before = scores();
  set_extra("5");
  remove_trained_run();
  ok({"cancel", "last"});
  write("", "program = \"program\"\n");
  ok({"run", "grid.toml"});  // nothing asks for them now
  write(kDerivations, "program = \"program\"\n");
  const std::string table = ok({"table", "grid.toml"}).output;
  EXPECT_THAT(table, AllOf(HasSubstr("*: stale: the run from which it derives was trained again, with another result"),
                           HasSubstr(fmt::format("{:.2f}*", before[1])), HasSubstr(fmt::format("{:.2f}*", before[2])),
                           HasSubstr(fmt::format("{:.2f}", before[0] + 5))));
  EXPECT_THAT(ok({"plan", "grid.toml"}).output, HasSubstr("Derived wide: 1 to run"));
  const test::Finished verified = test::run(command({"verify"}));
  EXPECT_EQ(verified.code, 1);
  EXPECT_THAT(verified.output, HasSubstr("it is stale: the run from which it derives was trained again"));
  ok({"run", "grid.toml"});
  for (size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(scores().at(i), before[i] + 5) << i;
  EXPECT_EQ(test::run(command({"verify"})).code, 0);
}

TEST_F(AnotherResult, ThatIsEqualLeavesTheDerivedRunsAsTheyAre) {
  ok({"run", "grid.toml"});
  remove_trained_run();
  ok({"run", "grid.toml"});
  for (const RunDirectory& run : derived()) EXPECT_EQ(run.newest_attempt(), 1) << run.id();
}

TEST_F(DerivedTest, AddedToAGridOfFinishedRunsTrainNothing) {
  ok({"run", "grid.toml"});
  write(kDerivations, "");
  const std::string plan = ok({"plan", "grid.toml"}).output;
  EXPECT_THAT(plan, AllOf(HasSubstr("Derived wide: 2 to run; not timed yet"), HasSubstr("Derived mark: 2 to run"),
                          HasSubstr("Next: tearless run"), Not(HasSubstr("To run:"))));
  EXPECT_THAT(table(), AllOf(HasSubstr("– (0/2)"), HasSubstr("wide: 2 runs have no result yet")));
  ok({"run", "grid.toml"});
  EXPECT_EQ(trainings(), 2);
  EXPECT_EQ(runs().size(), 6u);
  EXPECT_THAT(table(), AllOf(Not(HasSubstr("(0/2)")), Not(HasSubstr("no result yet"))));
  EXPECT_THAT(ok({"plan", "grid.toml"}).output, AllOf(HasSubstr("Derived wide: 2 done"), HasSubstr("Nothing to run")));

  std::string third = kDerivations;
  write(third + "[derived.more]\nbeam = 9\n", "");
  EXPECT_THAT(ok({"plan", "grid.toml"}).output,
              AllOf(HasSubstr("Derived more: 2 to run; about 0:0"), HasSubstr("4 ended runs")))
      << "their cost is known from runs alike";
  const json planned = json::parse(ok({"--json", "plan", "grid.toml"}).output);
  EXPECT_EQ(planned.at("counts").at("done"), 2);
  EXPECT_EQ(planned.at("derived").at(1).at("counts").at("to_run"), 2);
}

TEST_F(DerivedTest, TheirScoresAreThoseOfTheTrainedRun) {
  write(kDerivations, "");
  ok({"run", "grid.toml"});
  int trained = 0;
  for (const json& run : runs_as_json()) {
    if (run.at("coordinates").contains("derived")) {
      EXPECT_EQ(run.at("scores"), json::object());
      continue;
    }
    ++trained;
    const double score = run.at("scores").at("test.score");
    EXPECT_NEAR(run.at("scores").at("wide.test.score"), score + 1, 1e-9);
    EXPECT_NEAR(run.at("scores").at("mark.test.score"), score + 2, 1e-9);
    const json scores = rows("SELECT name, value FROM scores_view WHERE run = '" + run.at("run").get<std::string>() +
                             "' AND name LIKE '%.test.score' ORDER BY name");
    EXPECT_EQ(scores.size(), 2u) << scores;
  }
  EXPECT_EQ(trained, 2);
  EXPECT_EQ(rows("SELECT 1 FROM scores_view WHERE run IN (SELECT id FROM runs_view WHERE of != '')"), json::array());
  EXPECT_EQ(rows("SELECT count(*) AS n FROM runs_view WHERE of != ''").at(0).at("n"), 4);
  EXPECT_THAT(ok({"runs", "--where", "wide.test.score > 0"}).output, AllOf(HasSubstr("run"), Not(HasSubstr("wide  "))));
  const std::string explained = ok({"explain", "grid.toml"}).output;
  EXPECT_THAT(explained, AllOf(HasSubstr("seed 2, derived wide"), HasSubstr("mark.test.score = ")));
  EXPECT_THAT(ok({"runs", "derived=wide"}).output, Not(HasSubstr("mark")));
}

TEST_F(DerivedTest, AreListedOnRequestOrWithoutTheirTrainedRuns) {
  write(kDerivations, "");
  ok({"run", "grid.toml"});
  const auto listed = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--json", "runs"});
    std::map<std::string, int> counts;
    for (const json& run : json::parse(ok(words).output)) ++counts[run.at("coordinates").value("derived", "")];
    return counts;
  };
  using Counts = std::map<std::string, int>;
  EXPECT_EQ(listed({}), (Counts{{"", 2}}));
  EXPECT_EQ(listed({"--derived"}), (Counts{{"", 2}, {"mark", 2}, {"wide", 2}}));
  EXPECT_EQ(listed({"derived=wide"}), (Counts{{"wide", 2}}));
  EXPECT_EQ(listed({"--where", "derived = mark"}), (Counts{{"mark", 2}}));
  EXPECT_EQ(listed({"last", "seed=1", "--by", "sweep"}), (Counts{{"", 1}}));
  EXPECT_EQ(listed({derived().front().id()}).size(), 1u);
  const std::string csv = ok({"runs", "--csv"}).output;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3) << csv;
  EXPECT_THAT(csv.substr(0, csv.find('\n')), AllOf(HasSubstr("model.kind,"), Not(HasSubstr(",derived"))));
  const std::string plot = ok({"plot", "last", "train.loss"}).output;
  EXPECT_THAT(plot,
              AllOf(HasSubstr("\nA  a\nLines: the mean of 2 seeds"), Not(HasSubstr("\nB  ")), Not(HasSubstr("wide"))));
}

TEST_F(DerivedTest, OfOneNameInTwoSweepsAreToldApart) {
  const auto submitted = [&](const char* extra) {
    write(std::string("[derived.wide]\nextra = ") + extra + "\n", "");
    ok({"run", "grid.toml"});
    return json::parse(ok({"--json", "status", "last"}).output).at("sweeps").at(0).at("id").get<std::string>();
  };
  const std::string old_sweep = submitted("0.5"), new_sweep = submitted("0.25");
  const auto extras = [&](const std::vector<std::string>& words) {
    std::vector<std::string> command = {"--json", "runs"}, extras;
    command.insert(command.end(), words.begin(), words.end());
    for (const json& run : json::parse(ok(command).output)) {
      const json& scores = run.at("scores");
      if (!scores.contains("test.score") || !scores.contains("wide.test.score")) continue;
      extras.push_back(
          fmt::format("{:.2f}", scores.at("wide.test.score").get<double>() - scores.at("test.score").get<double>()));
    }
    return extras;
  };
  using testing::ElementsAre;
  EXPECT_THAT(extras({old_sweep}), ElementsAre("0.50", "0.50"));
  EXPECT_THAT(extras({new_sweep}), ElementsAre("0.25", "0.25"));
  EXPECT_THAT(extras({"all"}), ElementsAre("0.25", "0.25")) << "each run as the newest sweep has it";
  EXPECT_THAT(extras({"all", "--by", "sweep"}), ElementsAre("0.25", "0.25", "0.50", "0.50"));
  const json one = json::parse(ok({"--json", "runs", old_sweep, "1"}).output).at(0);
  EXPECT_TRUE(one.at("scores").contains("wide.test.score")) << "a run alone has them, too";
  for (const json& run : json::parse(ok({"--json", "runs", "all"}).output)) {
    EXPECT_EQ(run.at("scores").empty(), run.at("coordinates").contains("derived") && run.at("sweep") == new_sweep)
        << "where the trained run is not listed with that sweep, the derived run has its score: " << run;
  }
  const json scores =
      rows("SELECT run, derived, value FROM scores_view WHERE name = 'wide.test.score' ORDER BY run, value");
  ASSERT_EQ(scores.size(), 4u);
  for (size_t i = 0; i < scores.size(); i += 2) {
    EXPECT_EQ(scores[i].at("run"), scores[i + 1].at("run"));
    EXPECT_NEAR(scores[i + 1].at("value").get<double>() - scores[i].at("value").get<double>(), 0.25, 1e-9);
    EXPECT_EQ(
        rows("SELECT of FROM runs_view WHERE id = '" + scores[i].at("derived").get<std::string>() + "'").at(0).at("of"),
        scores[i].at("run"));
  }
  EXPECT_EQ(rows("SELECT DISTINCT derived FROM scores_view WHERE name = 'test.score'"),
            json::parse(R"([{"derived": ""}])"));
}

TEST_F(DerivedTest, AreRebuiltVerifiedAndDeletedAsRunsAre) {
  write(kDerivations, "");
  ok({"run", "grid.toml"});
  const std::string before = table();
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  EXPECT_EQ(table(), before);
  ok({"verify"});
  ok({"run", "grid.toml"});
  for (const RunDirectory& run : runs()) EXPECT_EQ(run.newest_attempt(), 1);

  const RunDirectory changed = derived().front();
  const std::string good = test::read_text(changed.outputs() / "test.hyp");
  test::write_text(changed.outputs() / "test.hyp", "other");
  EXPECT_NE(tearless({"verify"}).code, 0);
  test::write_text(changed.outputs() / "test.hyp", good);
  ok({"verify"});
  ok({"delete", "grid.toml", "--yes"});
  EXPECT_TRUE(runs().empty());
}

TEST_F(DerivedTest, BeginAgainAfterStopsWithTheSameBytes) {
  std::string slow = kDerivations;
  for (size_t at = 0; (at = slow.find("]\n", at)) != std::string::npos; at += 2)
    slow.insert(at + 2, "sleep_ms = 300\n");
  write(slow, "");
  ok({"run", "grid.toml"});
  const test::Finished verified = tearless({"--json", "verify-resume", "last", "--stops", "2"});
  int made = 0;
  for (const json& outcome : json::parse(verified.output)) {
    const RunDirectory run(folder_ / "results/runs" / outcome.at("run").get<std::string>());
    if (derived_from(test::read_text(run.settings())).empty()) continue;
    EXPECT_EQ(outcome.at("outcome"), "equal") << outcome;
    EXPECT_EQ(outcome.at("resume").at("stops").size(), 2u) << outcome;
    ++made;
  }
  EXPECT_EQ(made, 4);
}

TEST_F(DerivedTest, KilledInTheMiddleAreResumedByTheNextCommand) {
  write(kDerivations, "");
  ok({"run", "grid.toml"});
  const std::string expected = table();
  fs::remove_all(folder_ / "results");
  std::string waiting = kDerivations;
  waiting.replace(waiting.find("beam = 8"), 8, "beam = 8\nbehaviour = \"stall_once\"");
  write(waiting, "");
  test::Background run(command({"run", "grid.toml"}));
  std::set<std::string> killed;
  ASSERT_TRUE(test::eventually([&] {
    for (const RunDirectory& one : derived()) {
      const pid_t engine = one.newest_begun_attempt() == 1 && !killed.contains(one.id()) ? engine_of(one) : 0;
      if (engine > 0 && ::kill(engine, SIGKILL) == 0) killed.insert(one.id());
    }
    return killed.size() == 2;
  }));
  EXPECT_EQ(run.wait().code, 0);
  wait_until_unserved();
  EXPECT_EQ(table(), expected);
  std::multiset<int64_t> attempts;
  for (const RunDirectory& one : derived()) attempts.insert(one.newest_attempt());
  EXPECT_EQ(attempts, (std::multiset<int64_t>{1, 1, 2, 2})) << "the scores wait for the decodings";
}

TEST_F(DerivedTest, OfARunThatFailsOrDivergesSaySo) {
  write(kDerivations, "\"fake.behaviour\" = \"diverge\"\n");
  ok({"run", "grid.toml"});
  EXPECT_THAT(table(), HasSubstr("div. (2/2)"));
  for (const json& run : runs_as_json()) EXPECT_EQ(run.at("state"), "diverged") << run;

  write(kDerivations, "\"fake.behaviour\" = \"refuse_late\"\n");
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  for (const json& run : runs_as_json()) {
    EXPECT_EQ(run.at("state"), "failed");
    if (!run.at("coordinates").contains("derived")) continue;
    EXPECT_THAT(run.at("reason").get<std::string>(), HasSubstr("the run from which it derives has failed"));
  }
  EXPECT_EQ(derived().size(), 4u) << "those of the runs that diverged; of these none has a folder";
}

TEST_F(DerivedTest, ThatFailLeaveTheTrainedRunsResult) {
  write("[derived.wide]\nbehaviour = \"crash\"\n", "");
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  EXPECT_THAT(table(), AllOf(HasSubstr("failed (2/2)"), Not(HasSubstr("(0/2)")), HasSubstr("2 derived runs failed")));
}

TEST_F(DerivedTest, AreInTheRunsOfASmokeTestAndNotOfACalibration) {
  write(kDerivations, "");
  ok({"run", "grid.toml", "--smoke"});
  EXPECT_EQ(folders_in(folder_ / "results/smoke/runs").size(), 3u) << "one seed, trained and twice decoded";
}

}  // namespace
}  // namespace tearless::harness::derived_test
