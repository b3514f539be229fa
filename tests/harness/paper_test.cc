// A file that lists grids: its commands act on all of them, and a run that several have is planned, counted and trained
// once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::paper_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PaperTest : public RunTest {
 protected:
  PaperTest() {
    fs::create_directories(folder_ / "grids");
    write("paper_one", R"("a", "b")");
    write("paper_two", R"("b", "c", "d")");
    write("three", R"("d")");
    test::write_text(folder_ / "grids/paper.toml",
                     "title = \"A paper\"\ngrids = [\"paper_two.toml\", \"paper_one.toml\", \"three.toml\"]\n");
  }

  void write(const std::string& name, const std::string& kinds, const std::string& more = "") const {
    test::write_text(folder_ / "grids" / (name + ".toml"),
                     "title = \"Grid " + name + "\"\n" + more +
                         "[set]\n\"fake.updates\" = 2\n[axis]\n\"model.kind\" = [" + kinds +
                         "]\n[table]\nscores = [\"test.score\"]\n");
  }
  json plan(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"plan", "grids/paper.toml", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(ok(arguments).output);
  }
  std::string error_of(const std::string& text,
                       std::vector<std::string> arguments = {"plan", "grids/paper.toml"}) const {
    test::write_text(folder_ / "grids/paper.toml", text);
    const test::Finished finished = tearless(std::move(arguments));
    EXPECT_EQ(finished.code, 2) << finished.output;
    return finished.errors;
  }
};

TEST_F(PaperTest, IsPlannedWithSharedRunsCountedOnce) {
  const json counts = plan();
  EXPECT_EQ(counts.at("counts").at("to_run"), 4);
  EXPECT_EQ(counts.at("updates"), 8);
  EXPECT_EQ(counts.at("shared"), json::parse(R"([{"parts": ["two", "one"], "runs": 1},
                                                 {"parts": ["two", "three"], "runs": 1}])"));
  EXPECT_EQ(counts.at("parts").size(), 3u);
  EXPECT_EQ(counts.at("parts").at(0).at("counts").at("to_run"), 3);
  const std::string text = ok({"plan", "grids/paper.toml"}).output;
  EXPECT_THAT(text, AllOf(HasSubstr("A paper"), HasSubstr("1 run of two, one: trained once"),
                          HasSubstr("To run: 4 runs, 8 updates"), HasSubstr("Next: tearless run grids/paper.toml")));
  EXPECT_THAT(text, HasSubstr("three       1  Grid three"));
}

TEST_F(PaperTest, OfRunsThatWaitForDataCountsEachOnce) {
  for (const char* name : {"paper_one", "paper_two", "three"}) {
    const fs::path file = folder_ / "grids" / (std::string(name) + ".toml");
    std::string text = test::read_text(file);
    text.replace(text.find("[axis]"), 6, "\"data.train\" = \"nowhere\"\n[axis]");
    test::write_text(file, text);
  }
  const std::string said = ok({"plan", "grids/paper.toml"}).output;
  EXPECT_THAT(said,
              AllOf(HasSubstr("\n4 runs waiting: "), HasSubstr("Nothing can run yet. Next: add the missing files")));
}

TEST_F(PaperTest, OfRunsThatAreRefusedSaysWhyAndNoNextCommand) {
  for (const char* name : {"paper_one", "three"}) {
    const fs::path file = folder_ / "grids" / (std::string(name) + ".toml");
    std::string text = test::read_text(file);
    text.replace(text.find("[axis]"), 6, "\"fake.behaviour\" = \"refuse\"\n[axis]");
    test::write_text(file, text);
  }
  const test::Finished finished = tearless({"plan", "grids/paper.toml"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.errors, HasSubstr("this behaviour is refused"));
  EXPECT_THAT(finished.output, AllOf(Not(HasSubstr("trained once")), Not(HasSubstr("Next:"))));
}

TEST_F(PaperTest, IsTrainedInItsOrderEachRunOnce) {
  const test::Finished finished = ok({"run", "grids/paper.toml"});
  EXPECT_EQ(runs().size(), 4u);
  EXPECT_EQ(attempts(), 4);
  const auto at = [&](const std::string& text) { return finished.output.find(text); };
  EXPECT_LT(at("Next: tearless table grids/paper_two.toml"), at("Next: tearless table grids/paper_one.toml"));
  EXPECT_EQ(plan().at("counts").at("done"), 4);
  const std::string table = ok({"table", "grids/paper.toml"}).output;
  EXPECT_THAT(table, AllOf(HasSubstr("Grid paper_one"), HasSubstr("Grid paper_two"), HasSubstr("Grid three")));
  EXPECT_LT(table.find("Grid paper_two"), table.find("Grid paper_one"));
  EXPECT_EQ(json::parse(ok({"table", "grids/paper.toml", "--format", "json"}).output).size(), 3u);
  EXPECT_THAT(ok({"status", "grids/paper.toml"}).output, AllOf(HasSubstr("paper_one-"), HasSubstr("three-")));
  EXPECT_EQ(ok({"run", "grids/paper.toml"}).code, 0);
  EXPECT_EQ(attempts(), 4) << "nothing is trained again";
  ok({"delete", "grids/paper.toml", "--yes"});
  EXPECT_TRUE(runs().empty());
}

TEST_F(PaperTest, IsSubmittedTogether) {
  has_daemon_ = true;
  const json answer = json::parse(ok({"submit", "grids/paper.toml", "--json"}).output);
  EXPECT_EQ(answer.at("sweeps").size(), 3u);
  ok({"wait", "grids/paper.toml"});
  EXPECT_EQ(attempts(), 4);
}

TEST_F(PaperTest, APartIsChosenByItsName) {
  for (const char* part : {"one", "paper_one", "paper_one.toml"}) {
    EXPECT_THAT(ok({"plan", "grids/paper.toml", "--part", part}).output,
                AllOf(HasSubstr("Grid paper_one"), HasSubstr("To run: 2 runs")));
  }
  EXPECT_EQ(plan({"--part", "one", "--part", "three"}).at("counts").at("to_run"), 3);
  ok({"run", "grids/paper.toml", "--part", "three"});
  EXPECT_EQ(runs().size(), 1u);
  EXPECT_THAT(ok({"status", "grids/paper.toml"}).output, AllOf(HasSubstr("three-"), Not(HasSubstr("paper_one-"))));
  EXPECT_THAT(ok({"status", "grids/paper.toml", "--part", "three"}).output, HasSubstr("three-"));
  EXPECT_EQ(tearless({"status", "grids/paper.toml", "--part", "one"}).code, 2) << "it was not submitted";
  EXPECT_EQ(tearless({"status", "--part", "one"}).code, 2) << "of which file?";
  EXPECT_THAT(ok({"table", "grids/paper.toml", "--part", "three"}).output, Not(HasSubstr("Grid paper_one")));
  EXPECT_THAT(
      tearless({"plan", "grids/paper.toml", "--part", "tree"}).errors,
      HasSubstr("--part tree: grids/paper.toml has no such part (did you mean \"three\"?); it has two, one, three"));
  EXPECT_THAT(tearless({"plan", "grids/three.toml", "--part", "three"}).errors,
              HasSubstr("--part three: grids/three.toml is one grid; a file with grids = […] has parts"));
}

TEST_F(PaperTest, ASettingOfTheCommandLineIsOfAllItsGrids) {
  EXPECT_EQ(plan({"--set", "fake.updates=5"}).at("updates"), 20);
}

TEST_F(PaperTest, AMistakeInOneOfItsGridsStartsNone) {
  write("three", R"("d")", "seeds = 0\n");
  for (const char* command : {"plan", "run", "submit", "table"}) {
    const test::Finished finished = tearless({command, "grids/paper.toml"});
    EXPECT_EQ(finished.code, 2) << command;
    EXPECT_THAT(finished.errors, HasSubstr("grids/three.toml:2: seeds = 0")) << command;
  }
  EXPECT_TRUE(runs().empty());
}

TEST_F(PaperTest, AMistakeInItsListIsNamed) {
  EXPECT_THAT(error_of("grids = [\"four.toml\"]\n"), HasSubstr("paper.toml:1: there is no grid file grids/four.toml"));
  EXPECT_THAT(error_of("grids = [\"three.toml\", \"./three.toml\"]\n"), HasSubstr("./three.toml is named twice"));
  EXPECT_THAT(error_of("grids = [\"paper.toml\"]\n"), HasSubstr("paper.toml is a list of grids itself"));
  EXPECT_THAT(error_of("grids = []\n"), HasSubstr("grids names no grid file"));
  EXPECT_THAT(error_of("grids = [\"three.toml\"]\n[axis]\na = [1]\n"), HasSubstr("paper.toml:2: unknown key \"axis\""));
  EXPECT_THAT(error_of("grids = [\"three.toml\", \"paper_one.toml\"]\n", {"run", "grids/paper.toml", "--name", "x"}),
              HasSubstr("--name \"x\" names one sweep, and 2 grids are submitted"));
}

TEST_F(PaperTest, CtrlCPausesAllOfIt) {
  has_daemon_ = true;
  write("paper_two", R"("b", "c", "d")");
  for (const char* name : {"paper_one", "paper_two", "three"}) {
    std::string text = test::read_text(folder_ / "grids" / (std::string(name) + ".toml"));
    text.replace(text.find("\"fake.updates\" = 2"), 18, "\"fake.updates\" = 400\n\"fake.sleep_ms\" = 20");
    test::write_text(folder_ / "grids" / (std::string(name) + ".toml"), text);
  }
  test::Background run(command({"run", "grids/paper.toml", "--jobs", "1"}));
  RunDirectory found(folder_.path());
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&found));
  run.signal(SIGINT);
  const test::Finished finished = run.wait();
  EXPECT_THAT(finished.output, HasSubstr("To continue: tearless run grids/paper.toml"));
  const json status = json::parse(ok({"status", "--json"}).output);
  for (const json& sweep : status.at("sweeps")) EXPECT_EQ(sweep.at("state"), "paused") << sweep;
}

// --- words of the user's own ----------------------------------------------------------------------------------------

TEST_F(PaperTest, TagsAndANoteFindASweepAndAreNoPartOfAnyId) {
  write("three", R"("d")", "tag = [\"rebuttal\"]\nnote = \"as they asked\"\n");
  ok({"run", "grids/three.toml", "--tag", "final", "--tag", "rebuttal"});
  const std::string id = runs().at(0).root().filename();
  EXPECT_THAT(ok({"status"}).output, HasSubstr("  rebuttal, final: as they asked\n"));
  ok({"run", "grids/paper_one.toml", "--note", "another"});
  EXPECT_THAT(ok({"status"}).output, HasSubstr("  another\n"));
  const auto tagged = [&](const std::string& condition) {
    return ok({"runs", "all", "--where", condition, "--csv", "--columns", "run"}).output;
  };
  EXPECT_THAT(tagged("tag=final"), HasSubstr(id));
  EXPECT_THAT(tagged("tag=rebuttal"), HasSubstr(id));
  EXPECT_THAT(tagged("tag=other"), Not(HasSubstr(id)));
  EXPECT_THAT(tagged("tag!=other"), HasSubstr(id));
  EXPECT_THAT(tagged("note=another"), Not(HasSubstr(id)));
  write("three", R"("d")", "tag = \"other\"\n");
  ok({"run", "grids/three.toml"});
  EXPECT_EQ(attempts(), 3) << "the same run";
  EXPECT_EQ(tearless({"run", "grids/three.toml", "--tag", "two words"}).code, 2);
}

TEST_F(PaperTest, ASetOptionMakesAnotherSweepThatIsShownAndContinuedAsSuch) {
  ok({"run", "grids/three.toml"});
  const test::Finished finished = ok({"run", "grids/three.toml", "--set", "fake.updates=3"});
  EXPECT_EQ(runs().size(), 2u);
  const json sweeps = json::parse(ok({"status", "--json"}).output).at("sweeps");
  ASSERT_EQ(sweeps.size(), 2u);
  const std::string newest = sweeps.at(0).at("id");
  EXPECT_THAT(finished.output, HasSubstr("Next: tearless table " + newest));
  EXPECT_THAT(ok({"explain", newest}).output, HasSubstr("fake.updates"));
  EXPECT_THAT(test::read_text(folder_ / "results/sweeps" / newest / "grid.toml"),
              HasSubstr("# --set fake.updates=3\n"));
  EXPECT_EQ(
      json::parse(ok({"plan", "grids/three.toml", "--set", "fake.updates=3", "--json"}).output).at("counts").at("done"),
      1);
  EXPECT_THAT(ok({"plan", "grids/three.toml", "--set", "fake.updates=4"}).output,
              HasSubstr("Next: tearless run grids/three.toml --set fake.updates=4"));
  EXPECT_THAT(tearless({"run", "grids/three.toml", "--set", "model.kind=x"}).errors,
              HasSubstr("--set model.kind: the axis model.kind sets it"));
}

}  // namespace
}  // namespace tearless::harness::paper_test
