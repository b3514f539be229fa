// Which program trains a run is part of what the run is; and results of an earlier file of the program are marked.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::program_identity_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ProgramIdentity : public RunTest {
 protected:
  // A training program that is the fake engine but for its answer to `probe`. `comment` makes another file of it.
  std::string program(const std::string& name, const std::string& probe, const std::string& comment = "") const {
    test::write_text(folder_ / name, "#!/bin/sh\n#" + comment + "\n[ $1 != probe ] || { echo '" + probe +
                                         "'; exit; }\nexec " + test::program("fake-engine").string() + " \"$@\"\n");
    fs::permissions(folder_ / name, fs::perms::owner_all);
    return (folder_ / name).string();
  }
  static std::string named(const std::string& name, const std::string& version, const std::string& more = "") {
    return fmt::format(R"({{"program": "{}", "version": "{}", "numerics": 1{}}})", name, version, more);
  }
  test::Finished with(const std::string& program, std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--engine", program});
    return ok(arguments);
  }
  std::string table(const std::string& program) const { return with(program, {"table", "grid.toml"}).output; }
  std::set<std::string> ids() const {
    std::set<std::string> ids;
    for (const RunDirectory& run : runs()) ids.insert(run.id());
    return ids;
  }
};

TEST_F(ProgramIdentity, OfAnotherNameOrVersionTrainsItsOwnRuns) {
  const std::string one = program("one", named("mine", "1")), fork = program("fork", named("fork", "1")),
                    next = program("next", named("mine", "2"));
  with(one, {"run", "grid.toml"});
  for (size_t trained = 4; const std::string& other : {fork, next}) {
    EXPECT_THAT(table(other), HasSubstr("– (0/2)"));
    with(other, {"run", "grid.toml"});
    EXPECT_EQ(ids().size(), trained += 4);
    EXPECT_THAT(table(other), Not(HasSubstr("(0/2)")));
  }
  int of_fork = 0;
  for (const RunDirectory& run : runs()) {
    const std::string settings = test::read_text(run.settings());
    of_fork += settings.ends_with("\nprogram.identity = \"fork 1\"\n");
    EXPECT_EQ(run.id(), run_id(settings));
  }
  EXPECT_EQ(of_fork, 4);
  EXPECT_THAT(table(one), Not(HasSubstr("*"))) << "its own runs are as they were";
}

TEST_F(ProgramIdentity, ThatTheProgramSaysHoldsOverItsVersions) {
  const std::string more = R"(, "identity": "a \"trainer\"")";
  const std::string one = program("one", named("mine", "1", more)), two = program("two", named("other", "2", more));
  with(one, {"run", "grid.toml"});
  EXPECT_THAT(with(two, {"plan", "grid.toml"}).output, HasSubstr("Nothing to run"));
  EXPECT_THAT(test::read_text(runs().front().settings()), HasSubstr("program.identity = \"a \\\"trainer\\\"\"\n"));
  EXPECT_THAT(table(two), HasSubstr("*: stale: trained by version 1, file")) << "another file has made them";
}

TEST_F(ProgramIdentity, ThatIsEmptyIsRefused) {
  const std::string empty = program("empty", named("mine", "1", R"(, "identity": "")"));
  const test::Finished refused = tearless({"run", "grid.toml", "--engine", empty});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("\"identity\" is empty; leave it out, or say what the program is"));
}

TEST_F(ProgramIdentity, IsNoPartOfTheRunsOfTearlessEngine) {
  const std::string ours = program("ours", named("tearless-engine", "1"));
  with(ours, {"run", "grid.toml"});
  const std::set<std::string> before = ids();
  program("ours", named("tearless-engine", "2"));
  EXPECT_THAT(with(ours, {"plan", "grid.toml"}).output, HasSubstr("Nothing to run"));
  EXPECT_THAT(table(ours), Not(HasSubstr("*"))) << "numerics says whether its results are comparable";
  EXPECT_THAT(test::read_text(runs().front().settings()), Not(HasSubstr("program.identity")));
}

TEST_F(ProgramIdentity, OfDerivedRunsIsThatOfTheirTrainedRuns) {
  test::write_text(folder_ / "grid.toml", test::read_text(folder_ / "grid.toml") +
                                              "[derived.wide]\nbeam = 8\n[derived.mark]\noutputs = \"wide\"\n");
  const std::string one = program("one", named("mine", "1"));
  with(one, {"run", "grid.toml"});
  ASSERT_EQ(ids().size(), 12u);
  int derived = 0;
  for (const RunDirectory& run : runs()) {
    const std::string of = derived_from(test::read_text(run.settings()));
    if (of.empty()) continue;
    ++derived;
    EXPECT_TRUE(ids().contains(of)) << of;
    EXPECT_TRUE(fs::exists(run.done()));
  }
  EXPECT_EQ(derived, 8);
}

TEST_F(ProgramIdentity, OfRunsWithoutTheirDataKeepsTheProgramsApart) {
  test::write_text(folder_ / "grid.toml",
                   "[set]\n\"data.train\" = \"corpus\"\n[axis]\n\"model.kind\" = [\"a\", \"b\"]\n");
  const auto planned = [&](const std::string& program) {
    std::set<std::string> ids;
    const json plan = json::parse(with(program, {"--json", "plan", "grid.toml"}).output);
    for (const json& run : plan.at("runs")) ids.insert(run.at("id"));
    return ids;
  };
  std::set<std::string> all = planned(program("one", named("mine", "1")));
  all.merge(planned(program("fork", named("fork", "1"))));
  EXPECT_EQ(all.size(), 4u);
}

// --- the program's file ----------------------------------------------------------------------------------------------

TEST_F(ProgramIdentity, AnEditedProgramMarksItsEarlierResultsEverywhere) {
  const std::string probe = named("mine", "1"), mine = program("mine", probe);
  with(mine, {"run", "grid.toml"});
  const std::string before = file_hash(mine);
  EXPECT_THAT(table(mine), Not(HasSubstr("*")));
  program("mine", probe, " edited");
  const std::string now = file_hash(mine);
  ASSERT_NE(before, now);
  const std::string why =
      fmt::format("stale: trained by version 1, file {}; the training program is file {} now", before, now);
  EXPECT_THAT(table(mine), HasSubstr("*: " + why));
  EXPECT_THAT(ok({"table", "last"}).output, HasSubstr("*: " + why))
      << "of the sweep, whose program was edited in its place";
  const std::string explained = with(mine, {"explain", "grid.toml"}).output;
  EXPECT_THAT(explained, AllOf(HasSubstr("; " + why), HasSubstr("version 1, file " + before + "; results/runs/"),
                               HasSubstr("next: tearless run grid.toml --engine " + mine + " --retrain-stale\n")));
  EXPECT_EQ(
      json::parse(ok({"table", "last", "--format", "json"}).output).at("rows").at(0).at("cells").at(0).at("stale"), 2);
  const json run = json::parse(ok({"runs", "--json"}).output).at(0);
  EXPECT_EQ("stale: " + run.at("stale").get<std::string>(), why);
  EXPECT_EQ(run.at("mixed"), false);
  EXPECT_THAT(ok({"runs", "--csv", "--columns", "stale,mixed"}).output,
              StartsWith("stale,mixed\n\"" + why.substr(std::string("stale: ").size()) + "\",false\n"));
  EXPECT_THAT(ok({"runs"}).output, AllOf(Not(HasSubstr("stale")), Not(HasSubstr("mixed"))));
}

TEST_F(ProgramIdentity, RunsOfTwoFilesInOneCellAreMixedUntilTheStaleOnesAreTrainedAgain) {
  const std::string probe = named("mine", "1"), mine = program("mine", probe);
  with(mine, {"run", "grid.toml"});
  const std::string before = file_hash(mine);
  program("mine", probe, " edited");
  const std::map<std::string, std::string> results_before = results();
  EXPECT_THAT(with(mine, {"run", "grid.toml", "--again", "seed=1"}).errors, HasSubstr("2 runs to be trained again"));
  EXPECT_THAT(table(mine),
              AllOf(HasSubstr("*°"), HasSubstr("°: mixed, "), HasSubstr(fmt::format("version 1, file {}", before)),
                    HasSubstr(fmt::format("version 1, file {}", file_hash(mine)))));
  EXPECT_THAT(ok({"diff", "1", "2"}).output, AllOf(HasSubstr("trained by"), HasSubstr(before)));
  EXPECT_THAT(with(mine, {"run", "grid.toml", "--retrain-stale"}).errors, HasSubstr("2 runs to be trained again"));
  EXPECT_THAT(table(mine), AllOf(Not(HasSubstr("*")), Not(HasSubstr("°")), Not(HasSubstr("/2)"))));
  EXPECT_EQ(results(), results_before) << "the program computes what it did";
  EXPECT_THAT(with(mine, {"run", "grid.toml", "--retrain-stale"}).errors, Not(HasSubstr("to be trained again")));
}

}  // namespace
}  // namespace tearless::harness::program_identity_test
