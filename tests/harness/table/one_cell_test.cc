// Which cell words mean, what is shown of it, and what is said where they mean none or several.
#include "harness/table/one_cell.h"

#include <gtest/gtest.h>

#include "tests/harness/table/example_table.h"
#include "tests/support/error_of.h"

namespace tearless::harness::one_cell_test {
namespace {

constexpr const char* kGrid = R"(seeds = 2
[names]
depth = "Depth"
"depth=6" = "six layers"
"test.bleu" = "BLEU"
[axis]
norm  = ["layer_norm", "none"]
depth = [6, 0.001]
[table]
caption = "A table"
scores  = ["test.bleu", "test.loss"]
[[table.row]]
label      = "gain"
difference = ["layer_norm", "none"]
[[table.published]]
source = "A paper"
values = [[20.5, 1], ["", 2]]
)";

// 20 for norms, 10 without, 1 more with 6 layers; seeds differ by 1. The loss is a thousandth of that.
std::vector<Table> tables() {
  return {example::table_of(kGrid, [](const auto& labels, int64_t seed) {
    const double bleu =
        (labels.at("norm") == "none" ? 10 : 20) + (labels.at("depth") == "6" ? 1 : 0) + static_cast<double>(seed) - 1.5;
    return example::done({{"test.bleu", bleu}, {"test.loss", bleu / 1e9}});
  })};
}

std::string cell(const std::vector<std::string>& words, TableFormat format = TableFormat::kText) {
  return one_cell(tables(), words, format, "--cell").text;
}
std::string refusal_of(const std::vector<std::string>& words, TableFormat format = TableFormat::kText) {
  return test::error_of([&] { cell(words, format); });
}

TEST(OneCell, IsNamedAsInTheGridOrInPrintInAnyOrder) {
  EXPECT_EQ(cell({"norm=layer_norm", "depth=6", "test.bleu"}), "21.00 ± 0.71");
  EXPECT_EQ(cell({"BLEU", "Depth=six layers", "norm=none"}), "11.00 ± 0.71");
  EXPECT_EQ(cell({"norm=none", "depth=1e-3", "BLEU"}), "10.00 ± 0.71") << "another spelling of the number";
  EXPECT_EQ(cell({"norm=gain", "depth=6", "BLEU"}), "+10.00 ± 0.00") << "a row that the grid file adds";
}

TEST(OneCell, ShowsWhatIsAskedFor) {
  EXPECT_EQ(cell({"norm=layer_norm", "depth=6", "BLEU", "{mean}"}), "21.00");
  EXPECT_EQ(cell({"{mean:.1f} of {n}", "norm=layer_norm", "depth=6", "BLEU"}), "21.0 of 2");
  EXPECT_EQ(cell({"norm=layer_norm", "depth=6", "BLEU", "{published}"}), "20.5");
  EXPECT_EQ(cell({"norm=layer_norm", "depth=6", "BLEU", "{difference}"}), "+0.50");
  EXPECT_EQ(refusal_of({"norm=none", "depth=6", "BLEU", "{difference}"}), "--cell: the cell has no {difference}");
  EXPECT_EQ(refusal_of({"norm=none", "depth=6", "test.loss", "{published}"}), "--cell: the cell has no {published}");
  EXPECT_EQ(refusal_of({"{mean}", "{n}"}), "--cell: it shows {mean} and {n}; choose one");
  EXPECT_EQ(refusal_of({"norm=none", "depth=6", "BLEU", "{maen}"}).substr(0, 60),
            "--cell: show has no statistic {maen} (did you mean \"mean\"?);");
}

TEST(OneCell, HasTheEscapesOfItsFormat) {
  EXPECT_EQ(cell({"norm=none", "depth=6", "test.loss", "[{mean}]"}, TableFormat::kText), "[1.100e-08]");
  EXPECT_EQ(cell({"norm=none", "depth=6", "test.loss", "[{mean}]"}, TableFormat::kMarkdown), "\\[1.100e-08\\]");
  EXPECT_EQ(cell({"norm=none", "depth=6", "test.loss", "{mean}"}, TableFormat::kLatex), "$1.100\\times10^{-8}$");
  EXPECT_EQ(cell({"norm=none", "depth=6", "test.loss", "{mean} < 1"}, TableFormat::kHtml), "1.100e-08 &lt; 1");
  EXPECT_EQ(refusal_of({"norm=none", "depth=6", "test.loss"}, TableFormat::kCsv),
            "--cell: --format csv is of whole tables; choose text, markdown, latex or html");
}

TEST(OneCell, IsNeitherNoneNorSeveral) {
  EXPECT_EQ(refusal_of({"norm=none", "depth=6", "test.blue"}),
            "--cell: no cell that is meant has the score \"test.blue\" (did you mean \"test.bleu\"?); they have: "
            "test.bleu, test.loss");
  EXPECT_EQ(refusal_of({"nrom=none"}),
            "--cell: no cell that is meant has the axis \"nrom\" (did you mean \"norm\"?); they have: norm, depth");
  EXPECT_EQ(
      refusal_of({"norm=nine"}),
      "--cell: no cell that is meant has the norm \"nine\" (did you mean \"none\"?); they have: layer_norm, none, "
      "gain");
  EXPECT_EQ(refusal_of({"BLEU"}), "--cell: 6 cells are meant; add norm=LABEL, of layer_norm, none, gain");
  EXPECT_EQ(refusal_of({"norm=none", "depth=6"}), "--cell: 2 cells are meant; add a score, of test.bleu, test.loss");
  std::vector<Table> two = tables();
  two.push_back(two.front());
  two.back().title = {"Another"};
  EXPECT_EQ(test::error_of([&] {
              one_cell(two, {"norm=none", "depth=6", "BLEU"}, TableFormat::kText, "--cell");
            }),
            "--cell: 2 cells are meant; they are of the tables \"A table\", \"Another\"");
}

}  // namespace
}  // namespace tearless::harness::one_cell_test
