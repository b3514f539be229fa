// The results that the repository has as an archive give the tables of their page, in the layouts of the grids as they
// are now, without the training program and without data.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::committed_results_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

/// `tearless` on an archive of results, without a training program and without data.
class Committed {
 public:
  explicit Committed(const std::string& name) : archive_(test::source_root() / "results" / (name + ".tar.gz")) {
    EXPECT_LT(fs::file_size(archive_), 1000000u);
  }

  std::string operator()(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {test::program("tearless").string(), "--workspace", archive_.string()});
    const test::Finished finished =
        test::run({.arguments = std::move(arguments),
                   .environment = {{"XDG_CACHE_HOME", (folder_ / "cache").string()}, {"TEARLESS_ENGINE", "none"}},
                   .folder = folder_.path()});
    EXPECT_EQ(finished.code, 0) << finished.errors;
    EXPECT_EQ(finished.errors, "");
    return finished.output;
  }

  /// What a table's command prints. A claim that is contradicted ends check-table with 1, which is no mistake here.
  std::string as_markdown(const std::string& command, const std::string& name, const std::string& layout) const {
    const test::Finished printed =
        test::run({.arguments = {test::program("tearless").string(), "--workspace", archive_.string(), command, name,
                                 "--layout", layout, "--format", "markdown"},
                   .environment = {{"XDG_CACHE_HOME", (folder_ / "cache").string()}, {"TEARLESS_ENGINE", "none"}},
                   .folder = folder_.path()});
    EXPECT_EQ(printed.errors, "");
    EXPECT_FALSE(printed.output.empty());
    return printed.output;
  }

  /// A sweep's tables and claims stand in a page of results/, byte for byte.
  void expect_tables(const std::string& sweep, const std::string& layout, const std::string& page) const {
    const std::string text = test::read_text(test::source_root() / "results" / page);
    for (const std::string command : {"table", "check-table"})
      EXPECT_THAT(text, HasSubstr(as_markdown(command, sweep, layout)));
  }

  /// The CSV, the LaTeX and the SVG of a sweep's figures are files of a folder, byte for byte.
  void expect_figures(const std::string& sweep, const std::string& layout, const fs::path& committed,
                      const std::vector<std::string>& names) const {
    const std::string drawn = (folder_ / "drawn").string() + "/";
    for (const std::string format : {"csv", "pgfplots", "svg"})
      (*this)({"figure", sweep, "--layout", layout, "--format", format, "--out", drawn});
    for (const std::string& name : names) {
      for (const std::string ending : {".csv", ".tex", ".svg"}) {
        const std::string file = name + ending;
        EXPECT_EQ(test::read_text(drawn + file), test::read_text(committed / file)) << file;
      }
    }
  }

  const fs::path& archive() const { return archive_; }
  const test::TempFolder& folder() const { return folder_; }

 private:
  fs::path archive_;
  test::TempFolder folder_;
};

std::string layout_of(const std::string& name) { return (test::source_root() / "grids" / (name + ".toml")).string(); }

TEST(CommittedResults, OfTheSmallFiguresAreThoseOfTheirPageByteForByte) {
  const Committed tearless("twt_figures_small");
  const std::string name = "twt_figures_small", layout = layout_of(name);
  EXPECT_THAT(tearless({"verify"}), HasSubstr("18 runs and 1 sweep: no differences"));
  tearless.expect_figures(name, layout, test::source_root() / "results" / name,
                          {"figure_1", "figure_2", "figure_3", "figure_4"});
  tearless.expect_tables(name, layout, name + ".md");
}

TEST(CommittedResults, OfGradientsAtTheStartAreThoseOfTheirPageByteForByte) {
  const Committed tearless("ds");
  EXPECT_THAT(tearless({"verify"}), HasSubstr("36 runs and 2 sweeps: no differences"));
  for (const std::string part : {"table1", "figure1"})
    tearless.expect_tables("ds_" + part + "_small", layout_of("ds_" + part), "ds.md");
  tearless.expect_figures("ds_figure1_small", layout_of("ds_figure1"), test::source_root() / "results/ds",
                          {"ds_figure_1_encoder", "ds_figure_1_decoder"});
}

/// Means of a figure's CSV, by layer, of the lines with these labels.
std::vector<double> means_of_line(const std::string& csv, const std::string& labels) {
  std::vector<double> means;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("," + labels + ",");
    if (at == std::string::npos || !line.ends_with(",,")) continue;  // neither published nor diverged
    std::istringstream fields(line.substr(at + labels.size() + 2));
    std::string y, x, mean;
    std::getline(fields, y, ',');
    std::getline(fields, x, ',');
    std::getline(fields, mean, ',');
    means.push_back(std::stod(mean));
  }
  return means;
}

TEST(CommittedResults, OfGradientsAtTheStartAreWhatTheProseOfTheirPageSays) {
  const std::string page = test::read_text(test::source_root() / "results/ds.md"),
                    csv = test::read_text(test::source_root() / "results/ds/ds_figure_1_decoder.csv");
  const std::vector<double> base = means_of_line(csv, "Base,12"), scaled = means_of_line(csv, "DS-Init,12");
  ASSERT_EQ(base.size(), 12u);
  ASSERT_EQ(scaled.size(), 12u);
  EXPECT_THAT(page, HasSubstr(fmt::format("of twelve by\n{:.2f} on the geometric mean, where the paper has 1.46",
                                          std::pow(base.back() / base.front(), 1.0 / 11))));
  EXPECT_THAT(page, HasSubstr(fmt::format("the first decoder layer of twelve has {:.2f} of the last one's norm",
                                          scaled.front() / scaled.back())));
  EXPECT_THAT(page, HasSubstr(fmt::format(
                        "its first layer's norm falls from {:.2f} to {:.2f} and {:.2f} with 6, 12 and 18 "
                        "layers",
                        means_of_line(csv, "Base,6").front(), base.front(), means_of_line(csv, "Base,18").front())));
}

TEST(CommittedResults, OfDepthAreThoseOfTheirPageByteForByte) {
  const Committed tearless("ds_depth");
  EXPECT_THAT(tearless({"verify"}), HasSubstr("30 runs and 2 sweeps: no differences"));
  const std::string name = "ds_depth_small", page = test::read_text(test::source_root() / "results/ds.md");
  tearless.expect_tables(name, layout_of(name), "ds.md");
  const std::string csv = tearless({"table", name, "--layout", layout_of(name), "--format", "csv"});
  const auto norm_at = [&](const std::string& labels) {
    std::smatch mean;
    EXPECT_TRUE(std::regex_search(csv, mean, std::regex("\n" + labels + ",decoder_1_mean,([^,]*),")));
    return std::stod(mean[1]);
  };
  const std::string vanished = fmt::format("is {:.0e} and {:.0e}", norm_at("Base,18"), norm_at("Base,24"));
  EXPECT_THAT(page, HasSubstr(std::regex_replace(vanished, std::regex("e-0"), "e-") +
                              fmt::format(", where it is {:.2f} and {:.2f} with\n  DS-Init", norm_at("DS-Init,18"),
                                          norm_at("DS-Init,24"))));
  EXPECT_THAT(page, HasSubstr(tearless.as_markdown("table", "ds_depth_high_small", layout_of("ds_depth_high_small"))));
  tearless.expect_figures(name, layout_of(name), test::source_root() / "results/ds",
                          {"ds_depth_loss", "ds_depth_gradients", "ds_depth_ppl"});
}

TEST(CommittedResults, OfTheJoeyNmtExerciseAreThoseOfTheirPageByteForByte) {
  const Committed tearless("joey");
  EXPECT_THAT(tearless({"verify"}), HasSubstr("20 runs and 2 sweeps: no differences"));
  const fs::path pictures = test::source_root() / "results/joey";
  const std::string name = "joey_small", whole = "joey_end_small";
  tearless.expect_tables(name, layout_of(name), "joey.md");
  tearless.expect_figures(name, layout_of(name), pictures, {"joey_small_ppl", "joey_small_bleu"});
  EXPECT_THAT(test::read_text(test::source_root() / "results/joey.md"),
              HasSubstr(tearless.as_markdown("table", whole, layout_of(whole))));
  tearless.expect_figures(whole, layout_of("joey"), pictures, {"joey_ppl", "joey_bleu"});
}

TEST(CommittedResults, OfAdaNormOnStandInsAreThoseOfTheirPageByteForByte) {
  const Committed tearless("ada");
  EXPECT_THAT(tearless({"verify"}), HasSubstr("92 runs and 2 sweeps: no differences"));
  const std::string name = "ada_standins", choice = "ada_standins_choice";
  tearless.expect_tables(name, layout_of(name), "ada.md");
  tearless.expect_figures(name, layout_of(name), test::source_root() / "results/ada",
                          {"ada_translation", "ada_language_model", "ada_parser"});
  EXPECT_THAT(test::read_text(test::source_root() / "results/ada.md"),
              HasSubstr(tearless.as_markdown("table", choice, layout_of(choice))));
}

TEST(CommittedResults, TellNobodyWhoTrainedThemWhereAndWithWhichVariables) {
  const std::regex path(R"((^|[\s"'=:(\[])/[\w.-]+/)");
  size_t archives = 0, starts = 0;
  for (const auto& archive : fs::directory_iterator(test::source_root() / "results")) {
    if (!archive.path().string().ends_with(".tar.gz")) continue;
    ++archives;
    const test::TempFolder folder;
    ASSERT_EQ(test::run({.arguments = {"/bin/tar", "xzf", archive.path().string(), "-C", folder.path().string()}}).code,
              0);
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (!entry.is_regular_file() || entry.path().extension() == ".f32") continue;
      const std::string name = entry.path().filename(), where = archive.path().string() + ": " + entry.path().string();
      const std::string text = std::regex_replace(test::read_text(entry.path()), std::regex("https?://"), "");
      EXPECT_FALSE(std::regex_search(text, path)) << where;
      if (!name.ends_with(".json")) continue;
      const json record = json::parse(text);
      for (const char* key : {"host", "supervisor", "cuda_device", "cores"})
        EXPECT_FALSE(record.contains(key)) << where;
      if (name == "sweep.json") {
        EXPECT_EQ(record.value(json::json_pointer("/policy/environment/variables"), json::object()), json::object())
            << where;
      }
      if (name != "start.json") continue;
      ++starts;
      const json environment = record.value("environment", json::object());
      for (const auto& [variable, value] : environment.items()) EXPECT_TRUE(value.is_null()) << where << variable;
    }
  }
  EXPECT_GE(archives, 6u);
  EXPECT_GT(starts, 100u);
}

TEST(CommittedResults, OfAdaSmallAreTheTablesOfTheirPage) {
  const Committed tearless("ada_small");
  const fs::path& committed = tearless.archive();
  const test::TempFolder& folder = tearless.folder();
  EXPECT_THAT(tearless({"verify"}), HasSubstr("143 runs and 4 sweeps: no differences"));
  const std::string page = test::read_text(test::source_root() / "results/ada_small.md");
  for (const std::string name : {"ada_small", "ada_small_choice", "ada_small_xavier", "ada_small_none"}) {
    const std::string layout = (test::source_root() / "grids" / (name + ".toml")).string();
    EXPECT_THAT(page, HasSubstr(tearless({"table", name, "--layout", layout, "--format", "markdown"})));
    EXPECT_THAT(page, HasSubstr(" table " + name + " --layout grids/" + name + ".toml --format markdown\n"));
  }

  for (const std::string name : {"ada_small", "ada_small_xavier"}) {
    const std::string layout = (test::source_root() / "grids" / (name + ".toml")).string();
    EXPECT_THAT(page, HasSubstr(tearless({"check-table", name, "--layout", layout, "--format", "markdown"})));
    EXPECT_THAT(page, HasSubstr(" check-table " + name + " --layout grids/" + name + ".toml --format markdown\n"));
  }

  // The means once more, from the files as tar unpacks them.
  ASSERT_EQ(test::run({.arguments = {"/bin/tar", "xzf", committed.string(), "-C", folder.path().string()}}).code, 0);
  std::map<std::string, std::pair<double, int>> sums;
  std::istringstream runs(test::read_text(folder / "sweeps/ada_small-c2782bcf/runs.jsonl"));
  for (std::string line; std::getline(runs, line);) {
    const json run = json::parse(line);
    const json scores = json::parse(test::read_text(folder.path() / "runs" / run.at("id") / "scores.json"));
    const json& at = run.at("coordinates");
    auto& [sum, count] = sums[at.at("task").get<std::string>() + " " + at.at("model.norm.kind").get<std::string>()];
    sum += scores.at("test.accuracy").get<double>();
    ++count;
  }
  const json table = json::parse(tearless({"table", "ada_small-c2782bcf", "--json"}));
  size_t cells = 0;
  for (const json& row : table.at("rows")) {
    for (size_t i = 0; i < row.at("cells").size(); ++i) {
      const json& column = table.at("columns").at(i);
      if (column.at("score") != "test.accuracy") continue;
      const auto& [sum, count] = sums.at(column.at("labels").at("task").get<std::string>() + " " +
                                         row.at("labels").at("model.norm.kind").get<std::string>());
      EXPECT_EQ(count, 5);
      EXPECT_NEAR(row.at("cells").at(i).at("mean").get<double>(), sum / count, 1e-9);
      EXPECT_TRUE(row.at("cells").at(i).at("published").is_number());
      ++cells;
    }
  }
  EXPECT_EQ(cells, 21u);
}

}  // namespace
}  // namespace tearless::committed_results_test
