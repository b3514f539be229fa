// Every grid in the repository is one that the real engine accepts, corpora there or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "tests/e2e/table_three.h"
#include "tests/support/paths.h"

namespace tearless::shipped_grids_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TableThree;
using testing::HasSubstr;

/// The answer of `tearless --json plan GRID` on an empty workspace.
json plan_of(const fs::path& grid) {
  const test::TempFolder folder;
  const std::string out = folder / "plan.json";
  const std::string command = test::program("tearless").string() + " --engine " +
                              test::program("tearless-engine").string() + " --workspace " +
                              (folder / "results").string() + " --json plan " + grid.string() + " > " + out;
  EXPECT_EQ(std::system(command.c_str()), 0) << grid;
  return json::parse(test::read_text(out), nullptr, /*allow_exceptions=*/false);
}

TEST(ShippedGrids, AllGoThroughPlan) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(test::source_root() / "grids")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path());
    const json plan = plan_of(entry.path());
    ASSERT_TRUE(plan.is_object());
    for (const json& grid : plan.contains("parts") ? plan.at("parts") : json::array({plan})) {
      EXPECT_TRUE(grid.at("errors").empty());
      for (const json& one : grid.at("no_effect")) {
        EXPECT_THAT(one.at("axis").get<std::string>(), HasSubstr("grids/base/joey.toml"))
            << "has α beside greedy search";
      }
      EXPECT_GT(grid.at("runs").size(), 0u);
    }
    ++count;
  }
  EXPECT_GE(count, 5);
}

// docs/spec/tables.md §5 counts 83 runs, two of which Tables 2 and 3 share.
TEST(ShippedGrids, TransformersWithoutTearsHasEightyOneRunsASeed) {
  const json plan = plan_of(test::source_root() / "grids/twt.toml");
  std::map<int64_t, std::set<std::string>> of_seed;
  std::set<std::string> all;
  for (const json& part : plan.at("parts")) {
    for (const json& run : part.at("runs")) {
      if (run.at("coordinates").contains("derived")) continue;  // Table 6 scores its outputs once more
      of_seed[run.at("seed").get<int64_t>()].insert(run.at("id").get<std::string>());
      all.insert(run.at("id").get<std::string>());
    }
  }
  EXPECT_EQ(of_seed.at(1).size(), 81u);
  EXPECT_EQ(of_seed.at(2).size(), 77u) << "Table 6 has one seed";
  int64_t counted = 0;
  for (const auto& [state, count] : plan.at("counts").items()) counted += count.get<int64_t>();
  EXPECT_EQ(counted, std::ssize(all));
  EXPECT_THAT(plan.at("shared"), testing::Contains(json{{"parts", {"table2", "table3", "figures_1_2"}}, {"runs", 6}}));
}

// The tasks of grids/ada_standins.toml have scores of their own: what a parser reports, a language model does not.
TEST(ShippedGrids, AScoreThatTheTaskOfItsColumnLacksIsRefused) {
  const test::TempFolder folder;
  fs::copy(test::source_root() / "grids", folder / "grids", fs::copy_options::recursive);
  const fs::path grid = folder / "grids/ada_standins.toml";
  std::string text = test::read_text(grid);
  const std::string good = "\"text8\" = [\"test.bpc\", \"dev.bpc\"]";
  ASSERT_NE(text.find(good), std::string::npos);
  text.replace(text.find(good), good.size(), "\"text8\" = [\"test.las\", \"dev.bpc\"]");
  test::write_text(grid, text);
  for (const std::string command : {"plan", "table", "submit"}) {
    const test::Finished refused =
        test::run({.arguments = {test::program("tearless"), "--workspace", folder / "results", command, grid},
                   .environment = {{"TEARLESS_ENGINE", test::program("tearless-engine")}}});
    EXPECT_NE(refused.code, 0) << command;
    EXPECT_THAT(refused.output + refused.errors, HasSubstr("scores.task: no run with task = text8 has a score test.las "
                                                           "(did you mean \"test.loss\"?); they have: dev.bpc"));
  }
}

// The tables name scores of other tasks.
TEST(ShippedGrids, OneTaskOfSeveralCanBeSubmitted) {
  const test::TempFolder folder;
  const fs::path grid = test::source_root() / "grids/ada.toml";
  const auto tearless = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {test::program("tearless"), "--workspace", folder / "results"});
    const test::Finished finished = test::run(
        {.arguments = arguments, .environment = {{"TEARLESS_ENGINE", test::program("tearless-engine").string()}}});
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    return finished.output;
  };
  EXPECT_THAT(tearless({"plan", grid, "--only", "task=MNIST"}), HasSubstr("35"));
  tearless({"submit", grid, "--only", "task=MNIST"});
  EXPECT_THAT(tearless({"table", "last"}), HasSubstr("99.35"));
}

TEST(ShippedGrids, TheDemoHasItsCorpusInTheRepository) {
  const json plan = plan_of(test::source_root() / "grids/demo.toml");
  EXPECT_EQ(plan.at("counts").at("to_run"), 16);
}

TEST(ShippedGrids, TheSweepOfTheDemoKeepsItsId) {
  const test::TempFolder folder;
  const test::Finished submitted =
      test::run({.arguments = {test::program("tearless"), "--workspace", folder / "results", "submit",
                               test::source_root() / "grids/demo.toml"},
                 .environment = {{"TEARLESS_ENGINE", test::program("tearless-engine")}}});
  EXPECT_EQ(submitted.code, 0) << submitted.errors;
  EXPECT_TRUE(fs::exists(folder / "results/sweeps/demo-02c0d88d")) << submitted.output;
}

// `--smoke` of three runs, which together have every point of every axis.
TEST(ShippedGrids, AllAxesTrainsAtEveryPointOfEachAxis) {
  const fs::path grid = test::source_root() / "grids/all_axes.toml";
  const json plan = plan_of(grid);
  // Of 96 points, 16 are post-norm without norms, and 4 are Xavier + post-norm at six layers without warm-up.
  EXPECT_EQ(plan.at("counts").at("left_out"), 20);
  EXPECT_EQ(plan.at("counts").at("to_run"), 76);

  const std::vector<std::vector<std::string>> runs = {
      {"model.norm.kind=layer_norm", "model.placement=post", "model.init=xavier_uniform",
       "train.schedule.peak_lr=0.004", "depth=1+1", "warm-up=none"},
      {"model.norm.kind=scale_norm", "model.placement=pre", "model.init=small_init", "train.schedule.peak_lr=0.001",
       "depth=6+6", "warm-up=100 updates"},
      {"model.norm.kind=none", "model.placement=pre", "model.init=small_init", "train.schedule.peak_lr=0.001",
       "depth=1+1", "warm-up=none"}};
  std::set<std::string> points, trained;
  for (const json& axis : plan.at("axes")) {
    for (const json& point : axis.at("points")) {
      points.insert(axis.at("name").get<std::string>() + "=" + point.at("label").get<std::string>());
    }
  }
  const test::TempFolder folder;
  for (const std::vector<std::string>& labels : runs) {
    std::vector<std::string> arguments = {
        test::program("tearless"), "--workspace", folder / "results", "run", grid, "--smoke"};
    for (const std::string& label : labels) arguments.insert(arguments.end(), {"--only", label});
    const test::Finished finished = test::run({.arguments = std::move(arguments),
                                               .environment = {{"TEARLESS_CACHE", (folder / "cache").string()},
                                                               {"TEARLESS_ENGINE", test::program("tearless-engine")}}});
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    EXPECT_THAT(finished.output, HasSubstr("1 run: 1 done")) << labels.front();
    trained.insert(labels.begin(), labels.end());
  }
  EXPECT_EQ(trained, points);
}

// `--smoke` of the narrower width with small batches: 20 updates each.
TEST(ShippedGrids, TheTimesOfNormsAreATableOfWhatTheirRunsMeasured) {
  const test::TempFolder folder;
  const fs::path results = folder / "results";
  const auto tearless = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::program("tearless"));
    return test::run({.arguments = std::move(arguments),
                      .environment = {{"TEARLESS_CACHE", (folder / "cache").string()},
                                      {"TEARLESS_ENGINE", test::program("tearless-engine")}}});
  };
  const test::Finished finished =
      tearless({"--workspace", results, "run", test::source_root() / "grids/twt_speed.toml", "--smoke", "--jobs", "1",
                "--only", "width=d = 128", "--set", "train.batch.tokens=256"});
  ASSERT_EQ(finished.code, 0) << finished.output << finished.errors;
  EXPECT_THAT(finished.output, HasSubstr("3 runs: 3 done"));

  const std::string smoke = results / "smoke";
  const json runs = json::parse(tearless({"--workspace", smoke, "--json", "runs", "--scores", "measured.*"}).output);
  std::map<std::string, double> milliseconds;
  for (const json& run : runs) {
    const RunDirectory folder_of_run(fs::path(smoke) / "runs" / run.at("run").get<std::string>());
    const json measured = json::parse(test::read_text(folder_of_run.attempt(1) / "measured.json"));
    const double seconds = measured.at("training_seconds").get<double>() / measured.at("updates").get<double>();
    EXPECT_EQ(run.at("scores").at("measured.seconds_per_update"), seconds);
    EXPECT_EQ(run.at("scores").at("measured.sentences_per_second"),
              measured.at("decoded_sentences").get<double>() / measured.at("decoding_seconds").get<double>());
    milliseconds[run.at("coordinates").at("model.norm.kind")] = 1000 * seconds;
  }
  EXPECT_EQ(milliseconds.size(), 3u);
  const json table = json::parse(tearless({"--workspace", smoke, "--json", "table", "last"}).output);
  for (const json& row : table.at("rows")) {
    const double mean = row.at("cells")[0].at("mean").get<double>();
    EXPECT_DOUBLE_EQ(mean, milliseconds.at(row.at("labels").at("model.norm.kind").get<std::string>()));
  }
  EXPECT_THAT(table.at("notes").dump(), HasSubstr("Measured on: cpu, "));
}

TEST_F(TableThree, Table1CountsItsFiveCorporaAndRefusesAScoreThatIsNone) {
  const fs::path grid = folder_ / "grids/twt_table1.toml";
  const std::string good = test::read_text(grid);
  std::string misspelt = good;
  misspelt.replace(misspelt.find("corpus.train.words"), 18, "corpus.train.wrods");
  test::write_text(grid, misspelt);
  const test::Finished refused = tearless({"plan", grid});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.errors, HasSubstr("did you mean \"corpus.train.words\"?"));
  test::write_text(grid, good);

  const test::Finished finished = tearless({"run", grid});
  ASSERT_EQ(finished.code, 0) << finished.output << finished.errors;
  const json tables = json::parse(tearless({"table", grid, "--json"}).output);
  std::map<std::string, std::multiset<double>> means;  // of five corpora with the same few sentences
  for (const json& table : tables) {
    for (const json& row : table.at("rows")) {
      for (size_t c = 0; c < table.at("columns").size(); ++c) {
        means[table.at("columns").at(c).at("score")].insert(row.at("cells").at(c).at("mean").get<double>());
      }
    }
  }
  const auto five = [](double count) { return std::multiset<double>{count, count, count, count, count}; };
  EXPECT_EQ(means, (std::map<std::string, std::multiset<double>>{{"corpus.train.sentences", five(2)},
                                                                 {"corpus.dev.sentences", five(2)},
                                                                 {"corpus.test.sentences", five(2)},
                                                                 {"corpus.train.batches", five(1)},
                                                                 {"corpus.train.words", five(6)},
                                                                 {"corpus.train.subwords", five(6)},
                                                                 {"corpus.source_types", five(3)},
                                                                 {"corpus.target_types", five(2)}}));
}

TEST(ShippedGrids, Table3IsTwentySettingsAndSaysHowToGetWhatIsMissing) {
  const json plan = plan_of(test::source_root() / "grids/twt_table3.toml");
  EXPECT_EQ(plan.at("runs").size(), 60u);
  for (const json& run : plan.at("runs")) {
    if (run.at("plan") != "waiting_for_data") continue;
    const std::string sentence = run.at("waiting_for");
    EXPECT_NE(sentence.find("data/"), std::string::npos) << sentence;
  }
}

TEST(ShippedGrids, Table6IsFourSettingsWhoseOutputsAreScoredWithCompoundsSplit) {
  const json plan = plan_of(test::source_root() / "grids/twt_table6.toml");
  EXPECT_EQ(plan.at("runs").size(), 8u) << "each is trained, and scored";
  EXPECT_EQ(plan.at("derived").at(0).at("name"), "atat");
  for (const json& run : plan.at("runs")) {
    if (run.at("plan") != "waiting_for_data") continue;
    EXPECT_THAT(run.at("waiting_for").get<std::string>(), HasSubstr("data/wmt16-en-de"));
  }
}

// `plan` has the engine check each run; that one also trains is tried here. All twenty are trained in tests/e2e/long.
TEST_F(TableThree, AllTwentySettingsPassCheckAndOnePassesSmoke) {
  const test::Finished plan = tearless({"plan", "grids/twt_table3.toml", "--json"});
  ASSERT_EQ(plan.code, 0) << plan.output << plan.errors;
  EXPECT_EQ(json::parse(plan.output).at("counts").at("to_run"), 60);  // of three seeds each

  const test::Finished finished = smoke({"corpus=gl→en", "system=(4) pre + fix_norm + scale_norm"});
  EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
  EXPECT_THAT(finished.output, HasSubstr("1 run: 1 done"));
}

}  // namespace
}  // namespace tearless::shipped_grids_test
