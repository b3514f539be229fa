// Every table of "Transformers without Tears" from runs of the fake engine, whose scores are known: each cell is
// computed once more here, from the ids of the runs that `plan` says have its labels.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
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

constexpr int64_t kSentences = 100;

// The next two: the same as in tests/support/fake_engine.cc.
double score_of(const std::string& name, const std::string& id) {
  return 10 + std::stoi(sha256(name + " " + id).substr(0, 6), nullptr, 16) % 1000 / 100.0;
}

// Right words of each sentence, of a thousand: BLEU of some sentences is a tenth of their mean.
std::vector<double> right_words_of(double score, const std::string& id) {
  const int64_t right = std::llround(score / 100 * 1000 * kSentences);
  const int64_t first = std::stoi(sha256(id).substr(0, 6), nullptr, 16);
  std::vector<double> words;
  for (int64_t i = 0; i < kSentences; ++i)
    words.push_back(static_cast<double>(right / kSentences + ((i + first) % kSentences < right % kSentences)));
  return words;
}

class PaperTables : public RunTest {
 protected:
  PaperTables() { fs::copy(test::source_root() / "grids", folder_ / "grids", fs::copy_options::recursive); }

  void of_table_3() const;
  void of_marks() const;
  void of_claims() const;
  void of_all_parts() const;

  std::string output_of(std::vector<std::string> arguments) const {
    test::Command asked = command(std::move(arguments));
    asked.environment["FAKE_SCORES"] = kScores;
    asked.environment["FAKE_SENTENCES"] = std::to_string(kSentences);
    const test::Finished finished = finish(asked);
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    return finished.output;
  }

  /// The table of a grid as JSON. Asked for once: its bootstrap takes seconds.
  const json& table_of(const std::string& part) const {
    if (!tables_.contains(part)) tables_[part] = json::parse(output_of({"table", grid_of(part), "--json"}));
    return tables_.at(part);
  }
  static std::string grid_of(const std::string& part) { return fmt::format("grids/twt_{}.toml", part); }

 private:
  mutable std::map<std::string, json> tables_;
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

/// Others are those that the grids take from curves, which these runs lack (tests/e2e/paper_figures_test.cc has them).
bool is_of_the_runs(const std::string& score) {
  return ("," + std::string(kScores) + ",").find("," + score + ",") != std::string::npos;
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

TEST_F(PaperTables, HaveInEveryCellTheMeanAndSpreadOfItsRunsAndClaimsWithTheirVerdicts) {
  const std::string paper = "grids/twt.toml";
  const json parts = json::parse(output_of({"plan", paper, "--json"})).at("parts");
  output_of({"run", paper});
  const json tables = json::parse(output_of({"table", paper, "--json"}));
  size_t at = 0, cells = 0, published = 0, added = 0;
  for (const json& part : parts) {
    const Ids ids = ids_of(part);
    static const std::map<std::string, size_t> kSeveral = {{"figures_1_2", 2}, {"figure3", 3}, {"figure4", 2}};
    const auto several = kSeveral.find(part.at("part").get<std::string>());
    const size_t own = several == kSeveral.end() ? 1 : several->second;
    for (size_t i = 0; i < own; ++i) {
      const json& table = tables.at(at++);
      for (const json& row : table.at("rows")) {
        for (size_t c = 0; c < table.at("columns").size(); ++c) {
          const json &column = table.at("columns").at(c), &cell = row.at("cells").at(c);
          SCOPED_TRACE(fmt::format("{} {} {}", table.at("title").dump(), row.at("labels").dump(), column.dump()));
          std::map<std::string, std::string> labels = row.at("labels");
          labels.merge(column.at("labels").get<std::map<std::string, std::string>>());
          if (!is_of_the_runs(column.at("score"))) continue;
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
  of_marks();
  of_claims();
}

// The differences of the mean over three seeds in the words right of each sentence: BLEU is linear in them, so the
// bootstrap of Table 3 draws sentences of these.
double bootstrap_p(const std::vector<double>& differences, std::mt19937_64& random) {
  constexpr int kSamples = 10'000;
  const double n = static_cast<double>(differences.size());
  const double delta = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
  int as_far = 0;
  for (int i = 0; i < kSamples; ++i) {
    double sum = 0;
    for (size_t k = 0; k < differences.size(); ++k) sum += differences[random() % differences.size()];
    as_far += std::abs(sum / n - delta) >= std::abs(delta) - 1e-9;
  }
  return (as_far + 1.0) / (kSamples + 1);
}

// Every cell of a table with a baseline has a p, that of Table 3 is computed again, and marks and bold follow from it.
void PaperTables::of_marks() const {
  for (const std::string name : {"table3", "table4", "table6", "table7"}) {
    SCOPED_TRACE(name);
    const json& table = table_of(name);
    size_t without = 0, bold = 0;
    for (const json& row : table.at("rows")) {
      for (const json& cell : row.at("cells")) {
        without += cell.at("p").is_null() && cell.at("n") > 0;
        bold += cell.at("bold").get<bool>();
      }
    }
    // Without: the baseline's cells; of Table 3 the column of differences.
    EXPECT_EQ(without, name == "table3" ? 5 + 4u : table.at("columns").size());
    EXPECT_GE(bold, name == "table3" ? 5 : table.at("columns").size());
  }

  std::mt19937_64 random(7);
  const json part = json::parse(output_of({"plan", "grids/twt_table3.toml", "--json"}));
  const Ids ids = ids_of(part.contains("parts") ? part.at("parts").at(0) : part);
  const json& table = table_of("table3");
  const auto words_of = [&](const json& row, size_t c) {
    std::map<std::string, std::string> labels = row.at("labels");
    labels.merge(table.at("columns").at(c).at("labels").get<std::map<std::string, std::string>>());
    std::vector<double> sum(kSentences);
    for (const auto& [seed, id] : ids.at(labels)) {
      const std::vector<double> words = right_words_of(score_of("test.bleu", id), id);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += words[i] / 3;
    }
    return sum;
  };
  std::vector<double> p;
  for (size_t r = 2; r < 5; ++r) {
    for (size_t c = 0; c < 5; ++c) {
      std::vector<double> differences = words_of(table.at("rows").at(r), c);
      const std::vector<double> baseline = words_of(table.at("rows").at(1), c);
      for (size_t i = 0; i < differences.size(); ++i) differences[i] -= baseline[i];
      p.push_back(table.at("rows").at(r).at("cells").at(c).at("p"));
      const double again = bootstrap_p(differences, random);
      EXPECT_NEAR(p.back(), again, 5 * std::sqrt(2 * std::max(again, 1e-4) / 10'000)) << r << " " << c;
    }
  }
  // Bold: the best of its column, and those whose p against it, corrected over the column, is above 0.01.
  for (size_t c = 0; c < 5; ++c) {
    std::vector<std::pair<double, size_t>> order;  // mean, row
    for (size_t r = 1; r < 5; ++r) order.emplace_back(table.at("rows").at(r).at("cells").at(c).at("mean"), r);
    const size_t best = std::ranges::max(order).second;
    const auto is_bold = [&](size_t r) { return table.at("rows").at(r).at("cells").at(c).at("bold").get<bool>(); };
    EXPECT_TRUE(is_bold(best));
    std::vector<std::pair<double, size_t>> against;  // p, row
    for (size_t r = 1; r < 5; ++r) {
      if (r == best) continue;
      std::vector<double> differences = words_of(table.at("rows").at(r), c);
      const std::vector<double> of_best = words_of(table.at("rows").at(best), c);
      for (size_t i = 0; i < differences.size(); ++i) differences[i] -= of_best[i];
      against.emplace_back(bootstrap_p(differences, random), r);
    }
    std::ranges::sort(against);
    double corrected = 0;
    for (size_t i = 0; i < against.size(); ++i) {
      corrected = std::max(corrected, against[i].first * static_cast<double>(against.size() - i));
      const bool is_near = std::abs(corrected - 0.01) < 0.005;  // two drawings of samples may disagree
      EXPECT_TRUE(is_near || is_bold(against[i].second) == (corrected > 0.01)) << c << " " << against[i].second;
    }
  }
  std::ranges::sort(p);
  // Holm: a cell is marked if its p, times how many are as large or larger, and those of all smaller ones are at most
  // 0.01.
  size_t marked = 0;
  while (marked < p.size() && p[marked] * static_cast<double>(p.size() - marked) <= 0.01) ++marked;
  const std::string text = output_of({"table", "grids/twt_table3.toml", "--final"});
  size_t marks = 0;
  for (size_t at = text.find("†"); at != std::string::npos; at = text.find("†", at + 1)) ++marks;
  EXPECT_EQ(marks, marked + 2) << "one is the paper's own, one is in the note";
  EXPECT_THAT(text,
              HasSubstr("† p ≤ 0.01: different from the baseline, paired bootstrap over sentences (10000 samples, "
                        "seed 1), corrected for 15 comparisons (Holm)"));
}

// The column Δavg, and the table as a paper has it.
void PaperTables::of_table_3() const {
  const json& table = table_of("table3");
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
  const std::string latex = output_of({"table", grid_of("table3"), "--format", "latex", "--final"});
  EXPECT_THAT(latex, HasSubstr("\\label{tab:twt-table-3}"));
  EXPECT_THAT(latex, HasSubstr(" & gl$\\rightarrow$en & sk$\\rightarrow$en & en$\\rightarrow$vi & en$\\rightarrow$he & "
                               "ar$\\rightarrow$en & $\\Delta$avg \\\\\n"));
  EXPECT_THAT(latex, HasSubstr("published & {[}16.2{]} & {[}24.0{]} & {[}29.09{]}"));
  EXPECT_THAT(latex, HasSubstr("{[}20.91$^{\\ddagger}$$^{*}$, "));
  EXPECT_THAT(latex, testing::Not(HasSubstr("tearless")));
  EXPECT_THAT(output_of({"table", grid_of("table3")}), testing::AllOf(HasSubstr("[−4.05]"), HasSubstr("[18.47, ")))
      << "what is computed of published numbers has their digits";
}

// --- the paper's claims ----------------------------------------------------------------------------------------------

/// Student's t of probability 0.975 and 0.95 for two degrees of freedom: three seeds.
constexpr double kT975 = 4.302652729911275, kT95 = 2.919985580353726;

/// The values of a cell of a table's JSON, by seed; of an added one, too.
std::map<std::string, double> values_at(const json& table, const std::map<std::string, std::string>& labels,
                                        const std::string& score) {
  for (const json& row : table.at("rows")) {
    for (size_t c = 0; c < table.at("columns").size(); ++c) {
      const json& column = table.at("columns").at(c);
      std::map<std::string, std::string> own = row.at("labels");
      own.merge(column.at("labels").get<std::map<std::string, std::string>>());
      if (own == labels && column.at("score") == score) return row.at("cells").at(c).at("values");
    }
  }
  return {};
}

std::map<std::string, double> minus(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  std::map<std::string, double> differences;
  for (const auto& [seed, value] : a) differences[seed] = value - b.at(seed);
  return differences;
}

/// What a claim compares: of what kind, the labels of the axis of its cells, the limit, and whether low is better.
struct Expected {
  std::string text, kind, axis;
  std::vector<std::string> labels;
  double delta = 0;
  bool lowest = false;
};

// The verdicts of claims about two cells, computed once more from their values.
void PaperTables::of_claims() const {
  const std::string system = "system", schedule = "schedule", norm = "model.norm.kind";
  const std::string fixed = "ScaleNorm (g=√d) + FixNorm (learned)";
  const std::vector<std::string> of = {"(1) post + layer_norm", "(2) pre + layer_norm",
                                       "(3) pre + fix_norm + layer_norm", "(4) pre + fix_norm + scale_norm"};
  const std::map<std::string, std::vector<Expected>> expected = {
      {"table3",
       {{"PreNorm is as good as PostNorm or better", "not_worse", system, {of[1], of[0]}, 0.3},
        {"FixNorm is as good as none or better", "not_worse", system, {of[2], of[1]}, 0.3},
        {"FixNorm is better than none", "better", system, {of[2], of[1]}},
        {"PreNorm is better on average", "better", system, {of[1], of[0]}},
        {"ScaleNorm is better than LayerNorm", "better", system, {of[3], of[2]}},
        {"ScaleNorm is as good as LayerNorm", "equivalent", system, {of[3], of[2]}, 0.5},
        {"all three changes together are better", "better", system, {of[3], of[0]}}}},
      {"table4",
       {{"NoWarmup is worse than InvSqrtDecay", "worse", schedule, {"NoWarmup", "InvSqrtDecay"}},
        {"ValDecay is as good as InvSqrtDecay", "equivalent", schedule, {"ValDecay", "InvSqrtDecay"}, 0.8}}},
      {"table7",
       {{"ScaleNorm is as good as RMSNorm or better",
         "not_worse",
         system,
         {"ScaleNorm + FixNorm", "RMSNorm + FixNorm"},
         0.3},
        {"a fixed g is as good as a learned one", "equivalent", system, {fixed, "ScaleNorm + FixNorm"}, 0.3},
        {"with a fixed g ValDecay collapses", "worse", system, {fixed + " + ValDecay", fixed}}}},
      {"table8",
       {{"with ScaleNorm the perplexity of train falls", "better", norm, {"ScaleNorm", "LayerNorm"}, 0, true},
        {"with ScaleNorm the perplexity of test falls", "better", norm, {"ScaleNorm", "LayerNorm"}, 0, true}}}};
  const std::set<std::string> not_claimed = {
      "PreNorm is as good as PostNorm or better en→vi",  "PreNorm is better on average Δavg",
      "ScaleNorm is as good as RMSNorm or better gl→en", "ScaleNorm is as good as RMSNorm or better sk→en",
      "with a fixed g ValDecay collapses en→vi",         "with a fixed g ValDecay collapses en→he",
      "with a fixed g ValDecay collapses ar→en"};
  std::map<std::string, int> verdicts;
  size_t checked = 0;
  for (const auto& [part, claims] : expected) {
    test::Command asked = command({"check-table", grid_of(part), "--json"});
    asked.environment["FAKE_SCORES"] = kScores;
    const test::Finished finished = finish(asked);
    const json &table = table_of(part), all = json::parse(finished.output);
    EXPECT_EQ(finished.code, all.at("counts").at("claims").at("contradicted") > 0 ? 1 : 0);
    for (const json& record : all.at("claims")) {
      const auto claim = std::ranges::find(claims, record.at("text").get<std::string>(), &Expected::text);
      if (claim == claims.end()) continue;
      ++checked;
      std::map<std::string, std::string> labels = record.at("place");
      const std::string place = labels.at("corpus");
      std::vector<std::map<std::string, double>> values;
      for (const std::string& label : claim->labels) {
        labels[claim->axis] = label;
        values.push_back(values_at(table, labels, record.at("score")));
      }
      const bool turned = (claim->kind == "worse") != claim->lowest;
      const Moments moments = moments_of(turned ? minus(values[1], values[0]) : minus(values[0], values[1]));
      const bool is_order = claim->kind == "better" || claim->kind == "worse";
      const double half = (is_order ? kT975 : kT95) * moments.spread / std::sqrt(3);
      const double low = moments.mean - half, high = moments.mean + half;
      SCOPED_TRACE(fmt::format("{} {}: {} … {}", claim->text, place, low, high));
      EXPECT_NEAR(record.at("estimate"), moments.mean, 1e-9);
      EXPECT_NEAR(record.at("low"), low, 1e-9);
      EXPECT_NEAR(record.at("high"), high, 1e-9);
      const double d = claim->delta;
      const bool held = is_order ? low > 0 : claim->kind == "not_worse" ? low > -d : low > -d && high < d;
      const bool contradicted = is_order ? high < 0 : high < -d || (claim->kind == "equivalent" && low > d);
      const std::string verdict = not_claimed.contains(claim->text + " " + place) ? "not claimed"
                                  : held                                          ? "held"
                                  : contradicted                                  ? "contradicted"
                                                                                  : "cannot tell";
      EXPECT_EQ(record.at("verdict"), verdict);
      ++verdicts[verdict];
    }
  }
  // Table 3: 5 + 5 + 1 + 1 + 2 + 3 + 5, Table 4: 1 + 5, Table 7: 5 + 5 + 3, Table 8: 3 + 4.
  EXPECT_EQ(checked, 22 + 6 + 13 + 7u);
  EXPECT_GT(verdicts["cannot tell"], 0);
  EXPECT_EQ(verdicts["not claimed"], 7);
  of_all_parts();
}

// Every part with claims, and what three seeds, or one, cannot decide.
void PaperTables::of_all_parts() const {
  test::Command asked = command({"check-table", "grids/twt.toml", "--json"});
  asked.environment["FAKE_SCORES"] = kScores;
  const json all = json::parse(finish(asked).output);
  std::set<std::string> names;
  for (const json& record : all.at("claims")) {
    names.insert(record.at("name"));
    if (record.at("kind") == "trains" || record.at("kind") == "fails") {
      EXPECT_EQ(record.at("verdict"), "cannot tell") << record;
      EXPECT_EQ(record.at("reason"), record.at("text") == "twice the learning rate trains"
                                         ? "InvSqrtDecay + 2×LR: 3 seeds cannot decide: it takes 5 or more"
                                         : "3 seeds cannot decide: it takes 5 or more");
      EXPECT_EQ(record.at("estimate"), record.at("kind") == "trains" ? 1 : 0);
    }
    if (record.at("name") == "T7" && record.at("verdict") != "not claimed") {
      EXPECT_EQ(record.at("reason"), "1 seed cannot decide: it takes 2 or more");
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12",
                                          "T13", "T14"}));
  for (const char* format : {"text", "markdown", "latex", "html", "csv"}) {
    test::Command printed = command({"check-table", "grids/twt.toml", "--format", format});
    printed.environment["FAKE_SCORES"] = kScores;
    EXPECT_THAT(finish(printed).output, HasSubstr("cannot tell")) << format;
  }
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
