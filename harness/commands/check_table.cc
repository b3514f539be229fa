// `tearless check-table [GRID | SWEEP]`: prints the verdicts of a grid's claims, and the cells that are further from
// their published numbers than the grid file tolerates. The exit code says whether all is as claimed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/print.h"
#include "harness/commands/commands.h"
#include "harness/commands/printed_views.h"
#include "harness/commands/table_options.h"

namespace tearless::harness {
namespace {

struct CheckOptions : TableOptions {
  bool is_strict = false;
};

bool has_caveats(const std::vector<GridChecks>& all) {
  const auto has = [](const Check& check) { return !check.caveats.empty(); };
  return std::ranges::any_of(all, [&](const GridChecks& grid) {
    return std::ranges::any_of(grid.claims, has) || std::ranges::any_of(grid.cells, has);
  });
}

ViewOutput check_table(const CheckOptions& options, const Globals& globals) {
  const TableFormat format = options.chosen_format(globals);
  std::vector<GridState> states = options.states(globals);
  std::vector<GridChecks> all;
  for (GridState& state : states) {
    read_for_views(state);
    all.push_back(checks_of(state));
  }
  if (std::ranges::all_of(all, [](const GridChecks& grid) { return grid.claims.empty() && grid.cells.empty(); })) {
    fail("{} has neither claims ([[claim]]) nor published numbers with a tolerance: there is nothing to check",
         states.front().grid.file.string());
  }
  if (format == TableFormat::kLatex) notice_what_is_too_wide(sheets_of(all));
  ViewOutput output = options.output(format == TableFormat::kCsv    ? render_csv(all, options.formulas)
                                     : format == TableFormat::kJson ? json_text(json_of(all))
                                                                    : render(sheets_of(all), format, options.width()));
  const CheckCounts counts = counts_of(all);
  const auto has = [&](ClaimVerdict verdict) { return counts.of(verdict) > 0; };
  const bool is_open = has(ClaimVerdict::kCannotTell) || has(ClaimVerdict::kNotTested) || has_caveats(all);
  if (has(ClaimVerdict::kContradicted) || (options.is_strict && is_open)) output.code = kSomethingFailed;
  output.checks = std::move(all);
  return output;
}

}  // namespace

ViewMaker define_check_table(CLI::App& app) {
  const auto options = std::make_shared<CheckOptions>();
  options->add_to(app);
  app.add_flag("--strict", options->is_strict,
               "exit with 1 also if a claim cannot be decided, was not tested, or has a caveat (docs/claims.md)");
  return [options](const Globals& globals) { return check_table(*options, globals); };
}

Action command_check_table(CLI::App& app, const Globals& globals) { return printing(define_check_table(app), globals); }

}  // namespace tearless::harness
