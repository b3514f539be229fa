#include <algorithm>

#include "base/error.h"
#include "harness/grid/expand.h"
#include "harness/table/table.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

namespace tearless::fuzz {
namespace {

using namespace tearless::harness;

void expect_no_control_characters(const std::string& text) {
  const auto control = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F; };
  require(std::none_of(text.begin(), text.end(), control), "a table has control characters");
}

void print_empty_tables(const Grid& grid) {
  for (const View& view : views_of(grid)) {
    const Table table = fill(grid, view.title, view.table(), {});
    for (const char* format : {"text", "markdown", "latex", "html", "csv", "json"}) {
      expect_no_control_characters(render(table, table_format(format)));
    }
  }
}

}  // namespace

int fuzz_grid(const uint8_t* data, size_t size) {
  static const test::TempFolder folder;
  static const bool with_base = (test::write_text(folder / "base.toml", "x = 1\n[model]\nd = 2\n"), true);
  require(with_base, "the folder has a base file");
  write_new(folder / "grid.toml", text_of(data, size));
  std::string merged;
  try {
    const Grid grid = load_grid(folder / "grid.toml");
    if (grid.size() > 1000) return 0;  // more of the same
    for (const Combination& point : runs_of(grid)) {
      require(materialise(grid, point).settings.contains(grid.seed_key), "a run lacks its seed");
      describe_combination(grid, point);
    }
    print_empty_tables(grid);
    merged = grid.merged;
  } catch (const UserError&) {
    return 0;
  }
  require(parse_grid(merged, folder / "merged.toml").merged == merged, "a merged grid is read as another");
  return 0;
}

}  // namespace tearless::fuzz
