// grids/ada.toml, the tables of "Understanding and Improving Layer Normalization", with runs of the fake engine:
// published numbers and claimed cells are those of docs/spec, which is read here.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::ada_tables_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kScores =
    "test.bleu,dev.bleu,atat.test.multi_bleu,test.bpc,long.test.bpc,test.accuracy,dev.accuracy,test.uas_no_punct";
constexpr const char* kTasks[] = {"En-De", "De-En", "En-Vi", "enwik8", "RT", "SST-5", "MNIST", "PTB"};

/// The cells of a row of a table in Markdown, without blanks at their ends.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream parts(line);
  for (std::string cell; std::getline(parts, cell, '|');) {
    const size_t begin = cell.find_first_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, cell.find_last_not_of(' ') - begin + 1));
  }
  if (!cells.empty()) cells.erase(cells.begin());  // before the first bar
  return cells;
}

/// The rows that have so many cells between two headings of a page of docs/spec, by their first cell.
std::map<std::string, std::vector<std::string>> rows_of_spec(const std::string& page, const std::string& begin,
                                                             const std::string& end, size_t cells) {
  const std::string text = test::read_text(test::source_root() / "docs/spec" / page);
  const size_t from = text.find(begin), to = text.find(end, from);
  EXPECT_NE(to, std::string::npos) << page << " lacks " << begin << " or " << end;
  std::map<std::string, std::vector<std::string>> rows;
  std::istringstream lines(text.substr(from, to - from));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> row = cells_of(line);
    if (row.size() != cells) continue;
    const std::string name = row.front();
    row.erase(row.begin());
    rows[name] = row;
  }
  return rows;
}

class AdaTables : public RunTest {
 protected:
  AdaTables() { fs::copy(test::source_root() / "grids", folder_ / "grids", fs::copy_options::recursive); }

  void of_numbers() const;
  void of_claims() const;

  test::Finished asked(std::vector<std::string> arguments) const {
    test::Command asked = command(std::move(arguments));
    asked.environment["FAKE_SCORES"] = kScores;
    return finish(asked);
  }
};

TEST_F(AdaTables, HaveThePublishedNumbersAndTheClaimsOfTheSpecification) {
  EXPECT_EQ(asked({"run", "grids/ada.toml", "--only", "seed=1", "--only", "seed=2"}).code, 0);
  of_numbers();
  of_claims();
}

void AdaTables::of_numbers() const {
  const std::map<std::string, std::string> kNames = {{"none", "none"},
                                                     {"layernorm", "layer_norm"},
                                                     {"ln_simple", "ln_simple"},
                                                     {"detachnorm", "detach_norm"},
                                                     {"detach_mean", "detach_mean"},
                                                     {"detach_var", "detach_var"},
                                                     {"adanorm", "ada_norm"}};
  std::map<std::string, std::vector<std::optional<double>>> spec;
  for (const auto& [name, row] : rows_of_spec("tables.md", "### Tables 1–4", "* **Table 1**", 9)) {
    const auto kind = kNames.find(name.substr(0, name.find(' ')));
    if (kind == kNames.end()) continue;
    for (const std::string& value : row)
      spec[kind->second].push_back(value == "Div" ? std::nullopt : std::optional(std::stod(value)));
  }
  ASSERT_EQ(spec.size(), 7u);
  const auto difference = [&](const std::string& a, const std::string& b, size_t c) -> std::optional<double> {
    if (!spec[a][c] || !spec[b][c]) return std::nullopt;
    return *spec[a][c] - *spec[b][c];
  };

  const json tables = json::parse(asked({"table", "grids/ada.toml", "--json"}).output);
  std::map<std::string, std::set<std::string>> kinds_of;
  size_t cells = 0;
  for (const json& table : tables) {
    const std::string title = table.at("title");
    if (table.at("columns").size() != 8 || title.find("loss") != std::string::npos) continue;
    for (const json& row : table.at("rows")) {
      const std::string label = row.at("labels").at("model.norm.kind");
      kinds_of[title].insert(label);
      for (size_t c = 0; c < 8; ++c) {
        SCOPED_TRACE(fmt::format("{}: {}, {}", title, label, kTasks[c]));
        EXPECT_EQ(table.at("columns").at(c).at("labels").at("task"), kTasks[c]);
        const json& cell = row.at("cells").at(c);
        std::optional<double> expected;
        if (spec.contains(label)) {
          expected = spec[label][c];
          EXPECT_EQ(cell.at("n"), 2) << "its score is the one of its task";
        } else {
          const bool is_first = title.find("above:") != std::string::npos || label.starts_with("DetachNorm");
          expected = is_first ? difference("detach_norm", "none", c) : difference("ln_simple", "detach_norm", c);
        }
        ASSERT_EQ(cell.at("published").is_number(), expected.has_value());
        if (expected) {
          EXPECT_NEAR(cell.at("published"), *expected, 1e-9);
        }
        ++cells;
      }
    }
  }
  using Set = std::set<std::string>;
  const auto kinds = [&](const std::string& part) {
    for (const auto& [title, labels] : kinds_of)
      if (title.find(part) != std::string::npos) return labels;
    return Set{};
  };
  EXPECT_EQ(kinds("Table 1:"), (Set{"none", "layer_norm", "ln_simple"}));
  EXPECT_EQ(kinds("Table 2, above"), (Set{"none", "detach_norm", "Improvement"}));
  EXPECT_EQ(kinds("Table 2, below"), (Set{"detach_norm", "ln_simple", "Improvement"}));
  EXPECT_EQ(kinds("Table 3:"), (Set{"ln_simple", "detach_mean", "detach_var"}));
  EXPECT_EQ(kinds("Table 4:"), (Set{"none", "layer_norm", "ln_simple", "ada_norm"}));
  EXPECT_EQ(cells, (9 + 3 + 3 + 3 + 3 + 4) * 8u);

  const std::string text = asked({"table", "grids/ada.toml", "--final"}).output;
  EXPECT_THAT(text, HasSubstr("[Div]")) << "as it was printed";
}

TEST_F(AdaTables, HaveTheRunsOfAdaSmall) {
  const auto ids_of = [&](const std::string& grid) {
    std::set<std::string> ids;
    const json plan = json::parse(asked({"plan", grid, "--json"}).output);
    for (const json& run : plan.at("runs")) ids.insert(run.at("id"));
    return ids;
  };
  const std::set<std::string> all = ids_of("grids/ada.toml"), small = ids_of("grids/ada_small.toml");
  EXPECT_EQ(small.size(), 3 * 7 * 5u);
  EXPECT_TRUE(std::ranges::includes(all, small));
}

void AdaTables::of_claims() const {
  // The rows of the matrix of claims.md, and the sentences of the grid that say the same.
  const std::map<std::string, std::vector<std::string>> kTexts = {
      {"A1 layer_norm better than none", {"LayerNorm is better than no norm"}},
      {"A1 ln_simple better than layer_norm",
       {"LayerNorm-simple is better than LayerNorm", "LayerNorm-simple is as good as LayerNorm"}},
      {"A2 layer_norm: training loss lower, validation loss higher than ln_simple",
       {"LayerNorm has a lower training loss than LayerNorm-simple",
        "LayerNorm has a higher validation loss than LayerNorm-simple"}},
      {"A3 detachnorm worse than none", {"DetachNorm is worse than no norm"}},
      {"A3 ln_simple better than detachnorm", {"LayerNorm-simple is better than DetachNorm"}},
      {"A3 ln_simple's gain over detachnorm exceeds detachnorm's over none",
       {"LayerNorm-simple gains more over DetachNorm than DetachNorm over no norm"}},
      {"A4 detachnorm: worse loss than ln_simple",
       {"DetachNorm ends at a higher training loss than LayerNorm-simple",
        "DetachNorm ends at a higher validation loss than LayerNorm-simple"}},
      {"A5 detach_var worse than ln_simple", {"Detach Variance is worse than LayerNorm-simple"}},
      {"A5 detach_mean ≈ ln_simple", {"Detach Mean is as good as LayerNorm-simple"}},
      {"A6 adanorm better than layer_norm", {"AdaNorm is better than LayerNorm"}},
      {"A7 layer_norm: training loss lower, validation loss higher than adanorm",
       {"LayerNorm has a lower training loss than AdaNorm", "LayerNorm has a higher validation loss than AdaNorm"}}};
  std::map<std::string, std::map<std::string, std::string>> verdicts;  // text → task → verdict
  const json all = json::parse(asked({"check-table", "grids/ada.toml", "--json"}).output);
  for (const json& record : all.at("claims"))
    verdicts[record.at("text")][record.at("place").at("task")] = record.at("verdict");

  size_t rows = 0, claimed = 0;
  for (const auto& [name, row] : rows_of_spec("claims.md", "Cells of A1–A7", "A1's and A3's cells", 9)) {
    const auto texts = std::ranges::find_if(kTexts, [&](const auto& one) { return name.starts_with(one.first); });
    if (texts == kTexts.end()) continue;
    ++rows;
    for (size_t c = 0; c < 8; ++c) {
      for (const std::string& text : texts->second) {
        SCOPED_TRACE(text + ", " + kTasks[c]);
        const bool is_equal = row[c].starts_with("="), says_equal = text.find("as good as") != std::string::npos;
        const bool is_claimed = name.find("better than layer_norm") != std::string::npos && name.starts_with("A1 ln")
                                    ? (is_equal ? says_equal : row[c].starts_with("c") && !says_equal)
                                    : row[c].starts_with("c");
        ASSERT_TRUE(verdicts.contains(text) && verdicts[text].contains(kTasks[c]));
        EXPECT_EQ(verdicts[text][kTasks[c]] != "not claimed", is_claimed);
        claimed += is_claimed;
      }
    }
  }
  EXPECT_EQ(rows, kTexts.size());
  EXPECT_EQ(verdicts.size(), 15u) << "no sentence of the grid is left";
  EXPECT_EQ(claimed, 6 + 4 + 2 + 2 * 2 + 5 + 6 + 5 + 2 * 2 + 4 + 4 + 7 + 2 * 3u);
}

}  // namespace
}  // namespace tearless::harness::ada_tables_test
