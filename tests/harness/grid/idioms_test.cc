// The idioms of other tools in docs/grid_file.md: each is a grid as it stands there, with the number of runs that it
// says.
#include <gtest/gtest.h>

#include <regex>

#include "harness/grid/expand.h"
#include "harness/grid/paper.h"
#include "tests/support/paths.h"

namespace tearless::harness::idioms_test {
namespace {

TEST(Idioms, OfThePageAreGridsWithTheRunsThatItSays) {
  const test::TempFolder folder;
  for (const char* base : {"base.toml", "adam.toml", "sgd.toml"}) {
    test::write_text(folder / base, std::string("name = \"") + base + "\"\ntrain.momentum = 0.9\n");
  }
  std::string page = test::read_text(test::source_root() / "docs/grid_file.md");
  page.erase(0, page.find("## What you have"));
  static const std::regex kRow(R"(\n\| ([^|]+) \| ([^|]+) \| (\d+) \|)"), kLine("`([^`]+)`");
  int rows = 0;
  for (std::sregex_iterator row(page.begin(), page.end(), kRow), end; row != end; ++row, ++rows) {
    const std::string lines = (*row)[2].str();
    std::string grid;
    std::vector<std::string> set;
    for (std::sregex_iterator line(lines.begin(), lines.end(), kLine); line != end; ++line) {
      const std::string text = (*line)[1].str();
      text.starts_with("--set ") ? set.push_back(text.substr(6)) : void(grid += text + "\n");
    }
    SCOPED_TRACE((*row)[1].str() + "\n" + grid);
    test::write_text(folder / "grid.toml", grid);
    EXPECT_EQ(runs_of(load_grid(folder / "grid.toml", set)).size(), std::stoul((*row)[3].str()));
  }
  EXPECT_GE(rows, 15);
}

// The examples in boxes: whole grids, or sections that stand below an axis.
TEST(Idioms, OfTheBoxesAreReadAsWell) {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder / "base");
  for (const char* base : {"demo", "twt", "twt_en_vi", "pre"}) {
    test::write_text(folder / "base" / (std::string(base) + ".toml"),
                     "train.max_updates = 100\nmodel.dropout.word = 0.1\n");
  }
  const std::string page = test::read_text(test::source_root() / "docs/grid_file.md");
  static const std::regex kBox("```toml\n([\\s\\S]*?)```");
  int boxes = 0;
  for (std::sregex_iterator box(page.begin(), page.end(), kBox), end; box != end; ++box) {
    std::string text = (*box)[1].str();
    if (text.find("grids = ") != std::string::npos) continue;  // a paper
    if (text.find("axis") == std::string::npos) text += "[axis]\n\"model.placement\" = [\"post\", \"pre\"]\n";
    SCOPED_TRACE(text);
    test::write_text(folder / "grid.toml", text);
    EXPECT_GT(runs_of(load_grid(folder / "grid.toml")).size(), 1u);
    ++boxes;
  }
  EXPECT_GE(boxes, 6);
}

}  // namespace
}  // namespace tearless::harness::idioms_test
