// Every table of "Transformers without Tears" from runs of the fake engine, whose scores are known: each cell is
// computed once more here, from the ids of the runs that `plan` says have its labels.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/hash.h"
#include "base/utf8.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/terminal.h"

namespace tearless::harness::paper_tables_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// All that the tables show; of patterns one that matches.
constexpr const char* kScores =
    "test.bleu,dev.bleu,selected_step,train.grad_norm_mean,train.grad_norm_max,train.ppl_smoothed,test.ppl_smoothed,"
    "g.encoder.1.self_attention,g.decoder.1.self_attention,g.decoder.1.cross_attention,g.encoder.1.ffn,g.decoder.1.ffn,"
    "g.decoder.final,atat.test.multi_bleu";

// The same as in tests/support/fake_engine.cc.
double score_of(const std::string& name, const std::string& id) {
  return 10 + std::stoi(sha256(name + " " + id).substr(0, 6), nullptr, 16) % 1000 / 100.0;
}

class PaperTables : public RunTest {
 protected:
  PaperTables() { fs::copy(test::source_root() / "grids", folder_ / "grids", fs::copy_options::recursive); }

  void of_table_3() const;

  std::string output_of(std::vector<std::string> arguments) const {
    test::Command asked = command(std::move(arguments));
    asked.environment["FAKE_SCORES"] = kScores;
    const test::Finished finished = finish(asked);
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    return finished.output;
  }
};

/// Of each grid of the paper: labels and derivation → seed → id.
using Ids = std::map<std::map<std::string, std::string>, std::map<int64_t, std::string>>;
Ids ids_of(const json& part) {
  Ids ids;
  for (const json& run : part.at("runs")) {
    ids[run.at("coordinates").get<std::map<std::string, std::string>>()][run.at("seed").get<int64_t>()] = run.at("id");
  }
  return ids;
}

/// The score of the run of each seed with these labels; of an added row or column none.
std::map<std::string, double> expected_values(const Ids& ids, std::map<std::string, std::string> labels,
                                              const std::string& score) {
  if (score.starts_with("atat.")) labels["derived"] = "atat";
  std::map<std::string, double> values;
  const auto found = ids.find(labels);
  if (found == ids.end()) return values;
  for (const auto& [seed, id] : found->second) values[std::to_string(seed)] = score_of(score, id);
  return values;
}

struct Moments {
  double mean = 0, spread = 0;
};
Moments moments_of(const std::map<std::string, double>& values) {
  Moments moments;
  for (const auto& [seed, value] : values) moments.mean += value / static_cast<double>(values.size());
  for (const auto& [seed, value] : values) moments.spread += std::pow(value - moments.mean, 2);
  moments.spread = std::sqrt(moments.spread / static_cast<double>(values.size() - 1));
  return moments;
}

TEST_F(PaperTables, HaveInEveryCellTheMeanAndSpreadOfItsRuns) {
  const std::string paper = "grids/twt.toml";
  const json parts = json::parse(output_of({"plan", paper, "--json"})).at("parts");
  output_of({"run", paper});
  const json tables = json::parse(output_of({"table", paper, "--json"}));
  size_t at = 0, cells = 0, published = 0, added = 0;
  for (const json& part : parts) {
    const Ids ids = ids_of(part);
    const size_t own =
        part.at("part") == "figure3" || part.at("part") == "figure4" || part.at("part") == "figures_1_2" ? 2 : 1;
    for (size_t i = 0; i < own; ++i) {
      const json& table = tables.at(at++);
      for (const json& row : table.at("rows")) {
        for (size_t c = 0; c < table.at("columns").size(); ++c) {
          const json &column = table.at("columns").at(c), &cell = row.at("cells").at(c);
          SCOPED_TRACE(fmt::format("{} {} {}", table.at("title").dump(), row.at("labels").dump(), column.dump()));
          std::map<std::string, std::string> labels = row.at("labels");
          labels.merge(column.at("labels").get<std::map<std::string, std::string>>());
          const auto expected = expected_values(ids, labels, column.at("score"));
          if (expected.empty()) {
            ++added;
            continue;
          }
          ++cells;
          EXPECT_EQ((cell.at("values").get<std::map<std::string, double>>()), expected);
          const Moments moments = moments_of(expected);
          EXPECT_NEAR(cell.at("mean"), moments.mean, 1e-12);
          EXPECT_TRUE(expected.size() == 1 || std::abs(cell.at("spread").get<double>() - moments.spread) < 1e-12);
          if (!cell.at("published").is_number()) continue;
          ++published;
          EXPECT_NEAR(cell.at("difference"), moments.mean - cell.at("published").get<double>(), 1e-12);
        }
      }
    }
  }
  EXPECT_EQ(at, tables.size());
  // 12 of Table 2, 20 of 3, 25 of 4, 6 of 5, 4 of 6, 25 of 7, 20 of 8; of the figures 5 × 4, 3 × 6 and 2 × 6.
  EXPECT_EQ(cells, 12 + 20 + 25 + 6 + 4 + 25 + 20 + 20 + 18 + 12u);
  EXPECT_EQ(published, 10 + 20 + 25 + 4 + 4 + 25 + 20u) << "two cells of Tables 2 and 5 each are \"fail\"";
  // The row of the published results and the column of differences of Table 3, and the published row of Table 6.
  EXPECT_EQ(added, 6 + 4 + 1u);
  of_table_3();
}

// The column Δavg, and the table as a paper has it.
void PaperTables::of_table_3() const {
  const std::string grid = "grids/twt_table3.toml";
  const json table = json::parse(output_of({"table", grid, "--json"}));
  const auto row = [&](size_t i) { return table.at("rows").at(i).at("cells"); };
  ASSERT_EQ(table.at("rows").size(), 5u);
  const std::vector<double> kPublished = {-4.046, 0, 0.272, 0.61, 1.104};  // tables.md: −4.05, 0, +0.27, +0.61, +1.10
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(row(i).at(5).at("published"), kPublished[i], 1e-9);
    if (i == 0) continue;
    double ours = 0;
    for (size_t c = 0; c < 5; ++c)
      ours += row(i).at(c).at("mean").get<double>() - row(1).at(c).at("mean").get<double>();
    EXPECT_NEAR(row(i).at(5).at("mean"), ours / 5, 1e-12);
  }
  EXPECT_EQ(row(0).at(0).at("state"), "published");
  EXPECT_EQ(row(0).at(0).at("n"), 0);
  const std::string latex = output_of({"table", grid, "--format", "latex", "--final"});
  EXPECT_THAT(latex, HasSubstr("\\label{tab:twt-table-3}"));
  EXPECT_THAT(latex, HasSubstr(" & gl$\\rightarrow$en & sk$\\rightarrow$en & en$\\rightarrow$vi & en$\\rightarrow$he & "
                               "ar$\\rightarrow$en & $\\Delta$avg \\\\\n"));
  EXPECT_THAT(latex, HasSubstr("published & {[}16.2{]} & {[}24.0{]} & {[}29.09{]}"));
  EXPECT_THAT(latex, HasSubstr("{[}20.91$^{\\ddagger}$$^{*}$, "));
  EXPECT_THAT(latex, testing::Not(HasSubstr("tearless")));
}

TEST_F(PaperTables, InATerminalAreNoWiderThanItAndWithFinalAdviseNothing) {
  const std::vector<std::string> asked = {"table", "grids/twt_table3.toml"};
  EXPECT_THAT(output_of(asked), HasSubstr("To continue: tearless run"));
  EXPECT_THAT(output_of({asked[0], asked[1], "--final"}), testing::Not(HasSubstr("tearless")));
  test::Command shown = command({asked[0], asked[1], "--final"});
  shown.environment["FAKE_SCORES"] = kScores;
  test::Terminal terminal(shown);
  EXPECT_EQ(terminal.wait(), 0);
  size_t parts = 0;
  std::istringstream lines(terminal.shown());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("published ")) ++parts;
    EXPECT_TRUE(!line.starts_with("─") || display_width(line.substr(0, line.find('\r'))) <= 80);
  }
  EXPECT_GT(parts, 1u) << "a part for some of the columns";
}

}  // namespace
}  // namespace tearless::harness::paper_tables_test
