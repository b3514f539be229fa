// A sweep is printed as it was submitted: from its folder and the database, whatever happened since to the grid file,
// its base files and the training program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::frozen_sweep_test {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class FrozenSweep : public RunTest {
 protected:
  FrozenSweep() {
    write_base(1);
    test::write_text(folder_ / "grid.toml",
                     "base = \"base.toml\"\n" + grid_of("\"succeed\", \"diverge\"", 0) +
                         "caption = \"“A” caption\"\n[[exclude]]\nwhy = \"not needed\"\n"
                         "when = { \"model.kind\" = \"b\", \"fake.behaviour\" = \"diverge\" }\n");
  }

  void write_base(int beam) const {
    test::write_text(folder_ / "base.toml", "[model]\nbeam = " + std::to_string(beam) + "\n");
  }

  test::Finished without_program(std::vector<std::string> arguments) const {
    test::Command lacking = command(std::move(arguments));
    lacking.environment["TEARLESS_ENGINE"] = (folder_ / "none").string();
    return test::run(lacking);
  }

  // A sweep names its grid file absolutely.
  std::string without_folder(const std::string& text) const {
    return std::regex_replace(text, std::regex(folder_.path().string() + "/"), "");
  }

  std::string sweep_id() const {
    return json::parse(tearless({"--json", "status"}).output).at("sweeps").at(0).at("id");
  }
};

TEST_F(FrozenSweep, KeepsWhatTheProgramWarnedOf) {
  EXPECT_THAT(tearless({"plan", "grid.toml"}).output, Not(HasSubstr("arning")));
  test::write_text(folder_ / "base.toml", "[fake]\nwarning = \"the text looks coded\"\n");
  EXPECT_THAT(tearless({"plan", "grid.toml"}).output, HasSubstr("\nWarning: the text looks coded\n"));
  EXPECT_EQ(json::parse(tearless({"--json", "plan", "grid.toml"}).output).at("warnings"),
            json::array({"the text looks coded"}));
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string table = tearless({"table", "grid.toml"}).output;
  EXPECT_THAT(table, HasSubstr("Warning: the text looks coded.\n"));
  EXPECT_EQ(without_program({"table", "last"}).output, table);
}

TEST_F(FrozenSweep, PrintsTheSameTableAfterABaseFileWasEdited) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string id = sweep_id();
  for (const char* format : {"text", "markdown", "latex", "html", "csv", "json"}) {
    write_base(1);
    const std::string table = tearless({"table", "grid.toml", "--format", format}).output;
    write_base(4);
    for (const std::string& word : {id, id.substr(0, 7), std::string("last")}) {
      EXPECT_EQ(tearless({"table", word, "--format", format}).output, table) << format << " " << word;
    }
  }
  const std::string line =
      "6 finished runs of this grid differ in model.beam (1 → 4); tearless table " + id + " shows them\n";
  EXPECT_EQ(tearless({"table", "grid.toml"}).errors, line);
  EXPECT_EQ(tearless({"plan", "grid.toml"}).errors, line);
  EXPECT_EQ(tearless({"status", "grid.toml"}).errors, "") << "nothing else was submitted";
  const fs::path engine = folder_ / "engine";
  test::write_text(engine, "#!/bin/sh\n[ $1 != train ] || while [ ! -e go ]; do sleep 0.02; done\nexec " +
                               test::program("fake-engine").string() + " \"$@\"\n");
  fs::permissions(engine, fs::perms::owner_all);
  ASSERT_EQ(tearless({"submit", "grid.toml", "--engine", engine.string(), "--jobs", "1"}).code, 0);
  ASSERT_TRUE(test::eventually([&] { return attempts() == 7; }));
  EXPECT_EQ(tearless({"status", "grid.toml"}).errors, std::regex_replace(line, std::regex("^6"), "5"))
      << "of those that were not started";
  EXPECT_EQ(tearless({"status", id}).errors, "");
  test::write_text(folder_ / "go", "");
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  for (const char* command : {"table", "plan", "status"}) EXPECT_EQ(tearless({command, "grid.toml"}).errors, "");
}

TEST_F(FrozenSweep, NeedsTheDatabaseAndItsFolderOnly) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string table = tearless({"table", "grid.toml"}).output;
  const std::vector<std::string> cell = {"model.kind=a", "fake.behaviour=diverge"};
  const std::string explained = without_folder(tearless({"explain", "grid.toml", cell[0], cell[1]}).output);
  const json as_json = json::parse(tearless({"--json", "table", "grid.toml"}).output);
  for (const char* file : {"grid.toml", "base.toml", "results/runs"}) fs::remove_all(folder_ / file);
  for (const test::Finished& gone : {tearless({"table", "grid.toml"}), tearless({"explain", "grid.toml"})}) {
    EXPECT_EQ(gone.code, 0);
    EXPECT_EQ(gone.errors, "there is no file grid.toml; what follows is its newest sweep as it was submitted\n");
  }
  EXPECT_EQ(tearless({"table", "grid.toml"}).output, table);

  const test::Finished shown = without_program({"table", "last"});
  EXPECT_EQ(shown.output, table);
  EXPECT_EQ(shown.errors, "");
  // The logs are gone, and the runs would be made again.
  const std::regex of_the_folder(", file [0-9a-f]{16}|; results/runs/[^\n]*log\\.txt|\n  next: [^\n]*");
  EXPECT_EQ(std::regex_replace(without_folder(without_program({"explain", "last", cell[0], cell[1]}).output),
                               of_the_folder, ""),
            std::regex_replace(explained, of_the_folder, ""));
  EXPECT_EQ(json::parse(without_program({"--json", "table", "last"}).output), as_json);
  EXPECT_EQ(json::parse(without_program({"--json", "explain", "last", "seed=2"}).output).size(), 3u);
  EXPECT_THAT(without_program({"status", "last"}).output, HasSubstr("4 done, 2 diverged"));
  EXPECT_EQ(json::parse(without_program({"--json", "status", "last"}).output).at("sweeps").size(), 1u);
  fs::remove_all(folder_ / "results/sweeps");
  EXPECT_THAT(without_program({"table", "last"}).errors, HasSubstr("is missing; to write it again: tearless"));
}

TEST_F(FrozenSweep, IsPrintedInTheLayoutOfAnotherGridWithoutTheProgramOrTheFilesOfItsRuns) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  // Other settings, so other ids; rows and columns the other way round; one label more; numbers to compare with.
  test::write_text(folder_ / "today.toml", R"(seeds = 2
[set]
fake.updates = 7
data.train = "gone.txt"
[axis]
fake.behaviour = ["succeed", "diverge"]
model.kind = ["b", "a", "c"]
[table]
rows = "model.kind"
columns = "fake.behaviour"
scores = ["test.score"]
caption = "Laid out again"
[table.published]
source = "A paper"
values = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
)");
  const json own = json::parse(without_program({"--json", "table", "last"}).output);
  const auto mean_of = [&](const char* kind) -> json {
    for (const json& row : own.at("rows")) {
      if (row.at("labels").at("model.kind") == kind) return row.at("cells").at(0).at("mean");
    }
    return nullptr;
  };
  const test::Finished shown = without_program({"--json", "table", "last", "--layout", "today.toml"});
  EXPECT_EQ(shown.code, 0) << shown.errors;
  EXPECT_EQ(shown.errors, "");
  const json laid = json::parse(shown.output);
  EXPECT_EQ(laid.at("title"), "Laid out again");
  ASSERT_EQ(laid.at("rows").size(), 3u);
  const json &b = laid.at("rows").at(0), &a = laid.at("rows").at(1), &c = laid.at("rows").at(2);
  EXPECT_EQ(b.at("cells").at(0).at("mean"), mean_of("b"));
  EXPECT_EQ(a.at("cells").at(0).at("mean"), mean_of("a"));
  EXPECT_TRUE(mean_of("a").is_number());
  EXPECT_NE(mean_of("a"), mean_of("b"));
  EXPECT_EQ(b.at("cells").at(0).at("published"), 1.0);
  EXPECT_EQ(c.at("cells").at(0).at("n"), 0) << "the sweep has no such runs";
  EXPECT_THAT(without_program({"table", "grid.toml", "--layout", "today.toml"}).output, HasSubstr("– (0/2)"))
      << "a grid file names its newest sweep";
}

TEST_F(FrozenSweep, IsNotPrintedInALayoutThatDoesNotFit) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string id = sweep_id();
  const auto refusal = [&](const std::string& layout) {
    test::write_text(folder_ / "today.toml", layout);
    const test::Finished refused = without_program({"table", "last", "--layout", "today.toml"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.output, "");
    return refused.errors;
  };
  EXPECT_THAT(refusal("[axis]\nmodel.kind = [\"a\", \"b\"]\nmodel.depth = [1]\n"),
              HasSubstr("today.toml:3: sweep " + id + " has no axis model.depth"));
  EXPECT_THAT(refusal("[axis]\nmodel.kind = [\"a\", \"b\"]\nfake.behaviour = [\"diverge\"]\n"),
              HasSubstr("today.toml:3: the axis fake.behaviour has no \"succeed\", which sweep " + id + " has"));
  EXPECT_THAT(refusal("[axis]\nmodel.kind = [\"a\", \"b\"]\nfake.behaviour = [\"succeed\", \"diverge\"]\n"
                      "[table]\nscores = [\"test.scroe\"]\n"),
              HasSubstr("test.scroe"));
  EXPECT_THAT(refusal("grids = [\"grid.toml\"]\n"), HasSubstr("today.toml lists grids"));
  EXPECT_THAT(without_program({"table", "last", "--layout", "none.toml"}).errors, HasSubstr("none.toml"));
}

TEST_F(FrozenSweep, PrintsAllItsTablesWithoutAnyFileThatItWasMadeOf) {
  fs::create_directory(folder_ / "base");
  test::write_text(folder_ / "base/common.toml", "base = \"deep.toml\"\nmodel.width = 0.1\n");
  test::write_text(folder_ / "base/deep.toml", "model.rate = 1e-9\nmodel.width = 3\n");
  test::write_text(folder_ / "base/small.toml", "[model]\nd = 64\n");
  test::write_text(folder_ / "grid.toml", R"(
base = "base/common.toml"
seeds = 2
[set]
fake.updates = 4
[[axis.size]]
label = "small"
base = "base/small.toml"
[[axis.size]]
label = "large, “really”"
set = { model.d = 512 }
[axis]
model.kind = ["b", "a"]
fake.behaviour = ["succeed", "diverge"]
[[exclude]]
when = { size = "small", model.kind = "a" }
why = "not needed"
[policy]
grace = 7
[[table]]
caption = "By size"
rows = "size"
scores = "test.score"
published = { source = "A paper", values = [[1.0, "fail", "", 1e-9], [0.1, 2.50, 3, -4]] }
[[table]]
caption = "By kind"
rows = ["fake.behaviour", "model.kind"]
cell = { score = "test.score", show = "mean" }
)");
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  std::map<std::string, std::string> tables;
  for (const char* format : {"text", "markdown", "latex", "html", "csv", "json"}) {
    tables[format] = tearless({"table", "grid.toml", "--format", format}).output;
  }
  EXPECT_THAT(tables["text"], testing::MatchesRegex("By size\n(.|\n)*A paper(.|\n)*not needed\\.\n\nBy kind\n(.|\n)*"));
  EXPECT_EQ(json::parse(tables["json"]).at(1).at("row_axes"), json({"fake.behaviour", "model.kind"}));
  for (const char* file : {"grid.toml", "base"}) fs::remove_all(folder_ / file);
  for (const auto& [format, table] : tables) {
    EXPECT_EQ(without_program({"table", "last", "--format", format}).output, table) << format;
  }
  EXPECT_EQ(tearless({"verify"}).code, 0);
}

TEST_F(FrozenSweep, PrintsTheSameTableFromARebuiltDatabase) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string table = tearless({"table", "grid.toml"}).output;
  fs::remove(folder_ / "results/tearless.db");
  ASSERT_EQ(tearless({"rebuild"}).code, 0);
  EXPECT_EQ(without_program({"table", "last"}).output, table);
}

TEST_F(FrozenSweep, StandsInForTheTrainingProgramWhileTheGridIsTheSame) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string table = tearless({"table", "grid.toml"}).output;
  const std::string base = test::read_text(folder_ / "base.toml");
  test::write_text(folder_ / "base.toml", "# a comment changes nothing\n" + base);
  const test::Finished shown = without_program({"table", "grid.toml"});
  EXPECT_EQ(shown.output, table);
  EXPECT_THAT(shown.errors, testing::AllOf(HasSubstr("there is no training program"), HasSubstr(sweep_id())));
  EXPECT_EQ(without_program({"explain", "grid.toml", "seed=1"}).output,
            tearless({"explain", "grid.toml", "seed=1"}).output);
  EXPECT_EQ(without_program({"plan", "grid.toml"}).code, 2) << "a plan is the program's";
  EXPECT_EQ(without_program({"--engine", "none", "table", "grid.toml"}).code, 2) << "it was asked for";

  write_base(4);
  for (const char* command : {"table", "explain"}) {
    const test::Finished refused = without_program({command, "grid.toml"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.output, "");
    EXPECT_THAT(refused.errors, testing::AllOf(HasSubstr("--engine"), HasSubstr("or name a sweep"),
                                               EndsWith("no sweep in results is of grid.toml as it and its base files "
                                                        "are now\n")));
  }
}

TEST_F(FrozenSweep, OfAPartOfTheGridSaysSoAndIsTheSecondChoice) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string table = tearless({"table", "grid.toml"}).output;
  ASSERT_EQ(tearless({"run", "grid.toml", "--only", "seed=1"}).code, 0);
  EXPECT_EQ(without_program({"table", "grid.toml"}).output, table);
  const test::Finished part = without_program({"table", "last"});
  EXPECT_THAT(part.errors, EndsWith("was submitted with 3 of the grid's 6 runs\n"));
  EXPECT_THAT(part.output, HasSubstr("(1/2)"));
}

TEST_F(FrozenSweep, IsStaleByTheProgramItWasSubmittedWith) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  test::Command newer = command({"table", "grid.toml"});
  newer.environment["FAKE_NUMERICS"] = "2";
  EXPECT_THAT(test::run(newer).output, HasSubstr("*: stale"));
  newer.arguments = command({"table", "last"}).arguments;
  EXPECT_THAT(test::run(newer).output, Not(HasSubstr("stale")));
  newer.arguments = command({"run", "grid.toml"}).arguments;
  ASSERT_EQ(test::run(newer).code, 0);
  EXPECT_THAT(tearless({"table", "last"}).output, HasSubstr("*: stale"));
}

TEST_F(FrozenSweep, ThatIsDamagedIsRefusedUntilItIsSubmittedAgain) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string table = tearless({"table", "grid.toml"}).output;
  const fs::path file = folder_ / "results/sweeps" / sweep_id() / "merged.toml";
  std::string text = test::read_text(file);
  test::write_text(file, text.replace(text.find("not needed"), 3, "NOT"));
  const test::Finished refused = tearless({"table", "last"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors,
              HasSubstr("merged.toml is damaged, was changed, or is of another sweep; submit the sweep's grid "
                        "again"));
  EXPECT_EQ(tearless({"table", "grid.toml"}).output, table);
  EXPECT_EQ(tearless({"verify"}).code, 1);
  EXPECT_THAT(without_program({"table", "grid.toml"}).errors, HasSubstr("skipped: "));
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  EXPECT_EQ(tearless({"table", "last"}).output, table);
  EXPECT_EQ(tearless({"verify"}).code, 0);
}

TEST_F(FrozenSweep, SaysWhichCorpusItsRunsWaitFor) {
  test::write_text(folder_ / "grid.toml", "[set]\ndata.train = \"corpus.txt\"\n[axis]\nmodel.a = [1, 2]\n");
  ASSERT_EQ(tearless({"submit", "grid.toml"}).code, 0);
  for (const char* command : {"table", "explain"}) {
    const std::string shown = without_folder(without_program({command, "last"}).output);
    EXPECT_THAT(shown, HasSubstr("waiting for data"));
    EXPECT_EQ(shown, without_folder(tearless({command, "grid.toml"}).output));
  }
}

TEST_F(FrozenSweep, IsNamedOnceForATable) {
  EXPECT_THAT(tearless({"table", "last"}).errors, HasSubstr("there is no database in results"));
  ASSERT_EQ(tearless({"submit", "grid.toml"}).code, 0);
  ASSERT_EQ(tearless({"submit", "grid.toml", "--only", "seed=1"}).code, 0);
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    const test::Finished refused = tearless(arguments);
    EXPECT_EQ(refused.code, 2);
    return refused.errors;
  };
  EXPECT_THAT(refusal({"table", "all"}), HasSubstr("means 2 sweeps"));
  EXPECT_THAT(refusal({"table", "gri"}), HasSubstr("could be any of 2 sweeps"));
  EXPECT_THAT(refusal({"table", "grid.toml", "model.kind=a"}), HasSubstr("means runs"));
  ASSERT_EQ(tearless({"wait", "all"}).code, 0);
  EXPECT_EQ(tearless({"table", "grid"}).output, tearless({"table", "last"}).output) << "the newest of this name";
}

}  // namespace
}  // namespace tearless::harness::frozen_sweep_test
