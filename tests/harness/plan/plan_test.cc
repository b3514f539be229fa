// The plan of a grid: each run is asked about with its own settings, whatever the one before it was.
#include "harness/plan/plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "harness/grid/grid.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::plan_test {
namespace {

using testing::HasSubstr;

TEST(Plan, AsksForEachRunWithTheSettingsOfItsCellAndItsSeed) {
  const test::TempFolder folder;
  test::write_text(folder / "g.toml", R"(
seeds = [5, 7]
[set]
"model.width" = 64
[axis]
"model.norm" = ["a", "b"]
"model.depth" = [1, 2, 3]
[table]
scores = ["test.score"]
)");
  const Grid grid = load_grid(folder / "g.toml");
  const std::vector<PlannedRun> plan = plan_runs(grid, Only(), Program(test::program("fake-engine")));
  ASSERT_EQ(plan.size(), 12u);
  size_t place = 0;
  std::set<std::string> ids;
  for (const std::string norm : {"a", "b"}) {
    for (const int depth : {1, 2, 3}) {
      for (const int seed : {5, 7}) {
        const PlannedRun& run = plan[place++];
        SCOPED_TRACE(fmt::format("{} {} {}", norm, depth, seed));
        for (const std::string& line : {std::string("model.width = 64"), fmt::format("model.norm = \"{}\"", norm),
                                        fmt::format("model.depth = {}", depth), fmt::format("train.seed = {}", seed)}) {
          EXPECT_THAT(run.answer.run.settings, HasSubstr(line + "\n"));
        }
        EXPECT_EQ(run.answer.run.coordinates, (Labels{{"model.norm", norm}, {"model.depth", std::to_string(depth)}}));
        EXPECT_EQ(run.answer.run.seed, seed);
        EXPECT_EQ(run.combination.seed, seed);
        ids.insert(run.answer.run.id);
      }
    }
  }
  EXPECT_EQ(ids.size(), 12u);
  const std::vector<PlannedRun> cut =
      plan_runs(grid, Only(grid, {"model.depth=2", "seed=7"}), Program(test::program("fake-engine")));
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].answer.run.id, plan[3].answer.run.id);
  EXPECT_EQ(cut[1].answer.run.id, plan[9].answer.run.id);
}

TEST(Plan, SaysWhatIsWrongWithManyRunsOnce) {
  const test::TempFolder folder;
  test::write_text(folder / "g.toml", R"(
seeds = 3
[axis]
"model.norm" = ["a", "b"]
"fake.behaviour" = ["succeed", "refuse"]
"model.depth" = [1, 2]
)");
  const Grid grid = load_grid(folder / "g.toml");
  const std::vector<PlannedRun> plan = plan_runs(grid, Only(), Program(test::program("fake-engine")));
  EXPECT_THAT(errors_of(grid, plan), testing::ElementsAre(HasSubstr("this behaviour is refused")));
}

// The fake program knows keys with a dot alone.
TEST(Plan, PointsThatDifferInAVariableAloneAreOneRun) {
  const test::TempFolder folder;
  const auto plan = [&](const std::string& variables) {
    test::write_text(folder / "g.toml", variables +
                                            "[axis]\nwidth = [1, 2, 4]\nhead = [1, 2]\n[computed]\n"
                                            "\"model.heads\" = \"width / head\"\n");
    const Grid grid = load_grid(folder / "g.toml");
    const std::vector<PlannedRun> runs = plan_runs(grid, Only(), Program(test::program("fake-engine")));
    return std::pair(runs, errors_of(grid, runs));
  };
  const auto [runs, errors] = plan("variables = [\"width\", \"head\"]\n");
  EXPECT_THAT(errors, testing::IsEmpty());
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_EQ(runs[0].answer.run.id, runs[3].answer.run.id) << "1 / 1 and 2 / 2";
  EXPECT_NE(runs[0].answer.run.id, runs[2].answer.run.id);
  EXPECT_EQ(runs[3].answer.run.coordinates.front(), std::pair(std::string("width"), std::string("2")));
  EXPECT_THAT(plan("variables = \"width\"\n").second,
              testing::ElementsAre(testing::AllOf(
                  HasSubstr("g.toml:4: unknown setting \"head\"; if it is none of the program: variables = \"head\" "),
                  testing::EndsWith("g.toml"))));
}

constexpr const char* kPlain = R"(
seeds = [5, 7]
[axis]
"model.norm" = ["a", "b"]
)";

TEST(Plan, HasTheRunsOfDecodingsAfterThoseThatAreTrained) {
  const test::TempFolder folder;
  const auto planned = [&](const std::string& derivations) {
    test::write_text(folder / "g.toml", kPlain + derivations);
    const Grid grid = load_grid(folder / "g.toml");
    return plan_runs(grid, Only(), Program(test::program("fake-engine")));
  };
  const std::vector<PlannedRun> trained = planned("");
  const std::vector<PlannedRun> all =
      planned("[derived.mark]\nkind = \"score\"\noutputs = \"wide\"\n[derived.wide]\nbeam = 8\n");
  ASSERT_EQ(trained.size(), 4u);
  ASSERT_EQ(all.size(), 12u);
  for (size_t i = 0; i < 4; ++i) {
    const auto &run = all[i].answer.run, &wide = all[4 + i].answer.run, &mark = all[8 + i].answer.run;
    EXPECT_EQ(run.id, trained[i].answer.run.id);
    EXPECT_EQ(all[i].derivation, "");
    EXPECT_EQ(all[4 + i].derivation, "wide");
    EXPECT_EQ(derived_from(wide.settings), run.id);
    EXPECT_EQ(derived_from(mark.settings), wide.id);
    for (const auto* derived : {&wide, &mark}) EXPECT_EQ(derived->seed, run.seed);
    Labels labels = run.coordinates;
    labels.emplace_back("derived", "mark");
    EXPECT_EQ(mark.coordinates, labels);
    EXPECT_EQ(all[8 + i].combination.index, all[i].combination.index);
  }
}

TEST(Plan, HasDerivedRunsOnlyWhereTheirConditionsHold) {
  const test::TempFolder folder;
  const auto derived = [&](const std::string& derivations) {
    test::write_text(folder / "g.toml", kPlain + derivations);
    const Grid grid = load_grid(folder / "g.toml");
    const Grid again = parse_grid(grid.merged, folder / "merged.toml");
    std::vector<std::string> found;
    for (const Grid* one : {&grid, &again}) {
      found.clear();
      for (const PlannedRun& run : plan_runs(*one, Only(), Program(test::program("fake-engine")))) {
        if (run.derivation.empty()) continue;
        found.push_back(run.derivation + " " + run.answer.run.coordinates.front().second);
        EXPECT_EQ(run.answer.run.settings.find("when"), std::string::npos);
      }
    }
    return found;
  };
  const std::string wide = "[derived.wide]\nbeam = 8\nwhen = { \"model.norm\" = \"b\" }\n";
  EXPECT_THAT(derived(wide), testing::ElementsAre("wide b", "wide b"));
  EXPECT_THAT(derived(wide + "[derived.mark]\nkind = \"score\"\noutputs = \"wide\"\n"),
              testing::ElementsAre("wide b", "wide b", "mark b", "mark b"));
  EXPECT_THAT(derived(wide + "[derived.mark]\nkind = \"score\"\nwhen = { \"model.norm\" = [\"a\"] }\n"),
              testing::UnorderedElementsAre("wide b", "wide b", "mark a", "mark a"));
  EXPECT_THAT(
      derived(wide + "[derived.mark]\nkind = \"score\"\noutputs = \"wide\"\nwhen = { \"model.norm\" = \"a\" }\n"),
      testing::ElementsAre("wide b", "wide b"))
      << "of no combination";
  EXPECT_THAT(tearless::test::error_of([&] { derived("[derived.wide]\nwhen = { \"model.norm\" = \"c\" }\n"); }),
              HasSubstr("is not a value of the axis model.norm"));
}

TEST(Plan, SaysInWhichLineADecodingIsRefused) {
  const test::TempFolder folder;
  const auto errors = [&](const std::string& derivations) {
    test::write_text(folder / "g.toml", kPlain + derivations);
    const Grid grid = load_grid(folder / "g.toml");
    return errors_of(grid, plan_runs(grid, Only(), Program(test::program("fake-engine"))));
  };
  EXPECT_THAT(errors("[derived.x]\nbeam = 3\nbehaviour = \"refuse\"\n"),
              testing::ElementsAre(HasSubstr("g.toml:7: this behaviour is refused")));
  EXPECT_THAT(errors("[derived.x]\nbehaviour = \"refuse\"\n[derived.y]\noutputs = \"x\"\n"),
              testing::ElementsAre(HasSubstr("g.toml:6: this behaviour is refused")))
      << "of both, which have one cause";
}

// It answers the first question twice and the second not at all: the number of answers is right.
TEST(Plan, AnAnswerWithTheSeedOfAnotherQuestionIsRefused) {
  const test::TempFolder folder;
  test::write_text(folder / "g.toml", "seeds = [5, 7]\n[axis]\na = [1]\n");
  const Grid grid = load_grid(folder / "g.toml");
  const auto message = [&](const std::string& answers) {
    test::write_text(
        folder / "program",
        "#!/bin/bash\n[ $1 != probe ] || { echo '{\"program\": \"p\", \"version\": \"1\", \"numerics\": "
        "1}'; exit; }\nanswer() { id=$(printf \"seed = 1\\ntrain.seed = $1\\n\" | sha256sum | cut -c1-16)\n"
        "echo '{\"id\": \"'$id'\", \"canonical\": \"seed = 1\\ntrain.seed = '$1'\\n\"}'; }\n"
        "read -r line; read -r line\n" +
            answers);
    std::filesystem::permissions(folder / "program", std::filesystem::perms::owner_all);
    return test::error_of([&] { plan_runs(grid, Only(), Program(folder / "program")); });
  };
  EXPECT_EQ(message("answer 5; answer 7"), "");
  EXPECT_EQ(message("answer 5; answer 5"),
            "`" + (folder / "program").string() +
                " check` answered a question about train.seed = 7 with settings that have train.seed = 5; each "
                "question gets one answer, in their order");
  EXPECT_EQ(message("answer 5; answer 7.0"), "") << "in other words";
}

}  // namespace
}  // namespace tearless::harness::plan_test
