// The results that the repository has as archives give its pages and their figures, in the layouts of the grids as they
// are now, without the training program and without data.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::committed_results_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

fs::path committed(const std::string& name) { return test::source_root() / "results" / name; }

/// What `tearless` prints, without a training program and without data.
std::string printed(std::vector<std::string> arguments, const fs::path& folder) {
  arguments.insert(arguments.begin(), test::program("tearless").string());
  const test::Finished finished =
      test::run({.arguments = std::move(arguments),
                 .environment = {{"XDG_CACHE_HOME", (folder / "cache").string()}, {"TEARLESS_ENGINE", "none"}},
                 .folder = folder});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.errors, "");
  return finished.output;
}

/// A page, how many places it has, and archives with what each has.
struct Page {
  const char* name;
  int places;
  std::map<std::string, const char*> archives;
};
void PrintTo(const Page& page, std::ostream* out) { *out << page.name; }
const std::vector<Page> kPages = {
    {"ada", 4, {{"ada", "92 runs and 2 sweeps"}}},
    {"ada_small", 6, {{"ada_small", "143 runs and 4 sweeps"}}},
    {"ds", 16, {{"ds", "36 runs and 2 sweeps"}, {"ds_depth", "30 runs and 2 sweeps"}}},
    {"joey", 7, {{"joey", "20 runs and 2 sweeps"}}},
    {"study",
     77,
     {{"study", "178 runs, 6 tables, 2 figures, 34 claims"}, {"study_2", "190 runs, 7 tables, 4 figures, 34 claims"}}},
    {"twt_figures_small", 3, {{"twt_figures_small", "18 runs and 1 sweep"}}},
};

class CommittedResults : public testing::TestWithParam<Page> {};

TEST_P(CommittedResults, MakeTheirPageAndItsFiguresAgainByteForByte) {
  const auto& [name, places, archives] = GetParam();
  const test::TempFolder folder;
  for (const auto& [archive, holds] : archives) {
    const fs::path file = committed(archive + ".tar.gz");
    EXPECT_LT(fs::file_size(file), 2'000'000u);
    EXPECT_THAT(printed({"--workspace", file.string(), "verify"}, folder.path()),
                AllOf(HasSubstr(std::string(holds) + ": "),
                      AnyOf(HasSubstr(": no differences"), HasSubstr(" files as they were packed"))));
  }
  const std::string page = std::string(name) + ".md", again = (folder / page).string();
  EXPECT_EQ(printed({"report", "--text", committed(page).string(), "--out", again}, folder.path()),
            fmt::format("{}: {} places, written\n", again, places));
  EXPECT_EQ(test::read_text(again), test::read_text(committed(page)));
  const auto figures_in = [&](const fs::path& pictures) {
    std::map<std::string, std::string> figures;
    std::error_code none;
    for (const auto& file : fs::directory_iterator(pictures, none))
      figures[file.path().filename()] = test::read_text(file.path());
    return figures;
  };
  EXPECT_EQ(figures_in(folder / name), figures_in(committed(name)));
}

INSTANTIATE_TEST_SUITE_P(OfEachPage, CommittedResults, testing::ValuesIn(kPages),
                         [](const auto& page) { return std::string(page.param.name); });

TEST(CommittedPages, AreAllMadeAgain) {
  std::set<std::string> names, there;
  for (const Page& page : kPages) names.insert(page.name);
  for (const auto& file : fs::directory_iterator(committed("")))
    if (file.path().extension() == ".md") there.insert(file.path().stem());
  EXPECT_EQ(there, names);
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

TEST(CommittedPages, SayOfGradientsAtTheStartWhatTheirCurvesHave) {
  const std::string page = test::read_text(committed("ds.md")),
                    csv = test::read_text(committed("ds/ds_figure_1_decoder.csv"));
  const std::vector<double> base = means_of_line(csv, "Base,12"), scaled = means_of_line(csv, "DS-Init,12");
  ASSERT_EQ(base.size(), 12u);
  ASSERT_EQ(scaled.size(), 12u);
  EXPECT_THAT(page, HasSubstr(fmt::format("of twelve by\n{:.2f} on the geometric mean, where the paper has 1.46",
                                          std::pow(base.back() / base.front(), 1.0 / 11))));
  EXPECT_THAT(page, HasSubstr(fmt::format("the first decoder layer of twelve has {:.2f} of the last one's norm",
                                          scaled.front() / scaled.back())));
}

TEST(CommittedArchives, TellNobodyWhoTrainedThemWhereAndWithWhichVariables) {
  const std::regex path(R"((^|[\s"'=:(\[])/[\w.-]+/)");
  size_t archives = 0, starts = 0;
  for (const auto& archive : fs::directory_iterator(committed(""))) {
    if (!archive.path().string().ends_with(".tar.gz")) continue;
    ++archives;
    const test::TempFolder folder;
    ASSERT_EQ(test::run({.arguments = {"/bin/tar", "xzf", archive.path().string(), "-C", folder.path().string()}}).code,
              0);
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      const std::string name = entry.path().filename(), where = archive.path().string() + ": " + entry.path().string();
      if (!entry.is_regular_file() || name.ends_with(".f32") || name == "metrics.jsonl") continue;  // numbers
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

TEST(CommittedArchives, HaveTheMeansOfTheFilesInThem) {
  const fs::path archive = committed("ada_small.tar.gz");
  const test::TempFolder folder;
  ASSERT_EQ(test::run({.arguments = {"/bin/tar", "xzf", archive.string(), "-C", folder.path().string()}}).code, 0);
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
  const json table =
      json::parse(printed({"--workspace", archive.string(), "table", "ada_small-c2782bcf", "--json"}, folder.path()));
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
