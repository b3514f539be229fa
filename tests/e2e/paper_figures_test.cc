// Figures 1 to 4 of "Transformers without Tears" from the grids of the repository, at a small size: each point is
// computed once more here, from the files of the runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/run_directory.h"
#include "tests/support/csv.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::paper_figures_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kUpdates = 30, kBins = 8;
constexpr const char* kGrids[] = {"twt_figures_1_2", "twt_figure3", "twt_figure4"};

void replace_all(std::string& text, const std::string& old, const std::string& by) {
  ASSERT_NE(text.find(old), std::string::npos) << old;
  for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + by.size()))
    text.replace(at, old.size(), by);
}

/// A point of a line: the name of the figure, the labels of the line, what it is of, and x.
using Key = std::tuple<std::string, std::string, std::string, double>;
using Points = std::map<Key, double>;

/// Of CSV with the columns figure, one axis, y, x, mean, low, high, runs, source, diverged.
Points points_of(const std::string& csv) {
  Points points;
  std::vector<std::vector<std::string>> lines = test::csv_cells(csv);
  lines.erase(lines.begin());  // the header
  for (const std::vector<std::string>& cells : lines) {
    EXPECT_THAT(cells, SizeIs(10));
    EXPECT_EQ(cells.at(9), "") << "none diverged";
    points[{cells.at(0), cells.at(1), cells.at(2), std::stod(cells.at(3))}] = std::stod(cells.at(4));
  }
  return points;
}

class PaperFigures : public testing::Test {
 protected:
  // Copies of the grids with one seed; their limits of updates and layers are those of a training of this length and a
  // model of three layers.
  PaperFigures() {
    fs::copy(test::source_root() / "grids", folder_ / "grids", fs::copy_options::recursive);
    const auto change = [&](const std::string& grid, const std::vector<std::pair<std::string, std::string>>& changes) {
      const fs::path file = folder_ / ("grids/" + grid + ".toml");
      std::string text = test::read_text(file);
      for (const auto& [old, by] : changes) replace_all(text, old, by);
      test::write_text(file, text);
    };
    change("twt_figures_1_2", {{"seeds = 3", "seeds = 1"},
                               {"from = 150000", "from = 10"},
                               {"take = \"spikes\"", "take = \"spikes\"\nwindow = 5"},
                               {"to   = 75000", "to   = 15"},
                               {"from   = 15000", "from   = 6"},
                               {"bins    = 200", fmt::format("bins    = {}", kBins)}});
    change("twt_figure3", {{"seeds = 3", "seeds = 1"}});
    change("base/twt_en_vi", {{"epoch_updates = 1500", "epoch_updates = 6"}});
    for (const char* base : {"base/twt_en_he", "base/twt_ar_en"})
      change(base, {{"epoch_updates = 2000", "epoch_updates = 6"}});
    change("twt_figure4", {{"seeds = 3", "seeds = 1"}, {"from = 4", "from = 2"}});
    for (const auto& [name, source, target, sentences] :
         {std::tuple("iwslt15-en-vi", "en", "vi", 40), std::tuple("ted-en-he", "en", "he", 60),
          std::tuple("ted-ar-en", "ar", "en", 80)}) {
      const fs::path folder = folder_ / "data" / name;
      fs::create_directories(folder);
      for (const auto& [set, count] : {std::pair("train", sentences), std::pair("dev", 4), std::pair("test", 4)}) {
        std::string sources, targets;
        for (int i = 0; i < count; ++i) {
          sources += fmt::format("uno dos tres {} cinco\n", i % 2 == 0 ? "rojo" : "verde");
          targets += fmt::format("one two three {} five\n", i % 2 == 0 ? "red" : "green");
        }
        test::write_text(folder / fmt::format("{}.{}", set, source), sources);
        test::write_text(folder / fmt::format("{}.{}", set, target), targets);
      }
    }
  }

  test::Finished tearless(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), test::program("tearless").string());
    return test::run({.arguments = std::move(arguments),
                      .environment = {{"TEARLESS_CACHE", (folder_ / "cache").string()},
                                      {"XDG_CACHE_HOME", (folder_ / "cache").string()},
                                      {"TEARLESS_ENGINE", test::program("tearless-engine").string()}},
                      .folder = folder_.path()});
  }
  std::string output_of(const std::vector<std::string>& arguments) const {
    const test::Finished finished = tearless(arguments);
    EXPECT_EQ(finished.code, 0) << testing::PrintToString(arguments) << finished.output << finished.errors;
    return finished.output;
  }

  /// As a sweep of its own name.
  void train(const std::string& grid) const {
    std::vector<std::string> arguments = {"run", "grids/" + grid + ".toml", "--name", grid, "--jobs", "2"};
    for (const std::string set :
         {"model.encoder_layers=3", "model.decoder_layers=3", "model.d_model=16", "model.d_ff=16", "model.heads=2",
          "train.max_epochs=5", "train.early_stop=0", "train.batch.tokens=100", "train.schedule.warmup_updates=10",
          "decode.beam=1", "decode.max_extra=3", "text.merges=20"})
      arguments.insert(arguments.end(), {"--set", set});
    output_of(arguments);
  }

  /// The label of each run of a sweep on its only axis, and its folder.
  std::map<std::string, RunDirectory> runs_of(const std::string& sweep) const {
    std::map<std::string, RunDirectory> runs;
    for (const json& run : json::parse(output_of({"--json", "runs", sweep}))) {
      EXPECT_EQ(run.at("state"), "done");
      runs.emplace(run.at("coordinates").begin().value(),
                   RunDirectory(folder_ / ("results/runs/" + run.at("run").get<std::string>())));
    }
    return runs;
  }

  /// Metric → update → value.
  static std::map<std::string, std::map<int64_t, double>> metrics_of(const RunDirectory& run) {
    std::map<std::string, std::map<int64_t, double>> metrics;
    std::istringstream lines(test::read_text(run.metrics()));
    for (std::string line; std::getline(lines, line);) {
      const json one = json::parse(line);
      metrics[one.at("name")][one.at("step")] = one.at("value");
    }
    return metrics;
  }

  /// Dev BLEU at the epoch of its evaluation.
  Points figure_1() const {
    Points points;
    for (const auto& [label, run] : runs_of("twt_figures_1_2")) {
      auto metrics = metrics_of(run);
      EXPECT_THAT(metrics.at("dev.bleu"), SizeIs(5)) << "one for each epoch";
      for (const auto& [update, bleu] : metrics.at("dev.bleu"))
        points[{"twt_figure_1", label, "dev.bleu", metrics.at("epoch").at(update)}] = bleu;
    }
    return points;
  }

  /// The mean norm in each of equal parts of the updates, at its middle.
  Points figure_2() const {
    Points points;
    for (const auto& [label, run] : runs_of("twt_figures_1_2")) {
      const std::string bytes = test::read_text(run.gradient_norms());
      std::vector<float> norms(bytes.size() / sizeof(float));
      std::memcpy(norms.data(), bytes.data(), bytes.size());
      EXPECT_THAT(norms, SizeIs(kUpdates));
      constexpr double kWidth = (kUpdates - 1.0) / kBins;
      for (int bin = 0; bin < kBins; ++bin) {
        double sum = 0;
        int count = 0;
        for (int update = 1; update <= kUpdates; ++update) {
          const bool is_last = update == kUpdates && bin == kBins - 1;
          const bool is_inside = update >= 1 + bin * kWidth && (update < 1 + (bin + 1) * kWidth || is_last);
          if (!is_inside) continue;
          sum += norms.at(static_cast<size_t>(update) - 1);
          ++count;
        }
        EXPECT_GE(count, 3);
        points[{"twt_figure_2", label, "gradient_norms", 1 + (bin + 0.5) * kWidth}] = sum / count;
      }
    }
    return points;
  }

  /// Of Figure 3 or 4: g of each sublayer at the number of its layer, and that of the output behind the last.
  Points learned_lengths(const std::string& sweep, const std::string& figure) const {
    Points points;
    for (const auto& [label, run] : runs_of(sweep)) {
      const json scores = json::parse(test::read_text(run.scores()));
      for (int layer = 1; layer <= 3; ++layer) {
        for (const auto& [side, part, sublayer] :
             {std::tuple("left", "encoder", "self_attention"), std::tuple("left", "decoder", "self_attention"),
              std::tuple("left", "decoder", "cross_attention"), std::tuple("right", "encoder", "ffn"),
              std::tuple("right", "decoder", "ffn")}) {
          points[{fmt::format("{}_{}", figure, side), label, fmt::format("g.{}.*.{}", part, sublayer), layer}] =
              scores.at(fmt::format("g.{}.{}.{}", part, layer, sublayer));
        }
      }
      points[{figure + "_right", label, "g.decoder.final", 4}] = scores.at("g.decoder.final");
    }
    return points;
  }

  /// With room for the order of additions.
  static void expect_equal(const Points& drawn, const Points& expected) {
    EXPECT_EQ(drawn.size(), expected.size());
    std::set<double> different;
    for (const auto& [key, value] : expected) {
      const auto& [figure, label, y, x] = key;
      const auto point = drawn.find(key);
      ASSERT_NE(point, drawn.end()) << fmt::format("{}, {}, {} at {}", figure, label, y, x);
      EXPECT_NEAR(point->second, value, 1e-9 * std::abs(value)) << fmt::format("{}, {}, {} at {}", figure, label, y, x);
      different.insert(value);
    }
    EXPECT_GT(different.size(), 1u) << "points that are all the same prove nothing";
  }

  test::TempFolder folder_;
};

TEST_F(PaperFigures, AreDrawnFromTheFilesOfTheirRunsAndAgainWithTheSameBytes) {
  for (const char* grid : kGrids) train(grid);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "results/runs"), {}), 8)
      << "ScaleNorm with FixNorm on en→vi is one run of all three grids";

  Points first = figure_1();
  first.merge(figure_2());
  expect_equal(points_of(output_of({"figure", "twt_figures_1_2", "--format", "csv"})), first);
  expect_equal(points_of(output_of({"figure", "twt_figure3", "--format", "csv"})),
               learned_lengths("twt_figure3", "twt_figure_3"));
  expect_equal(points_of(output_of({"figure", "twt_figure4", "--format", "csv"})),
               learned_lengths("twt_figure4", "twt_figure_4"));

  output_of({"copy", "alone.tar.gz"});
  for (const std::string sweep : kGrids) {
    for (const std::string format : {"csv", "pgfplots"}) {
      const std::vector<std::string> figure = {"figure", sweep, "--format", format};
      const std::string bytes = output_of(figure);
      EXPECT_EQ(output_of(figure), bytes) << sweep << " " << format;
      std::vector<std::string> of_archive = {"--workspace", "alone.tar.gz"};
      of_archive.insert(of_archive.end(), figure.begin(), figure.end());
      EXPECT_EQ(output_of(of_archive), bytes) << sweep << " " << format;
    }
  }

  // With one seed there is no interval: a claim whose numbers are all there cannot be told.
  std::map<std::string, std::vector<std::string>> verdicts;
  for (const char* sweep : kGrids) {
    const json checked = json::parse(output_of({"--json", "check-table", sweep}));
    for (const json& claim : checked.at("claims")) verdicts[claim.at("name")].push_back(claim.at("verdict"));
  }
  EXPECT_THAT(verdicts, SizeIs(4));
  for (const char* name : {"T8", "T9", "T12", "T13"}) EXPECT_THAT(verdicts[name], Each("cannot tell")) << name;
}

}  // namespace
}  // namespace tearless::paper_figures_test
