// `tearless report --text PAGE.md`: fills the places of a page (report/text_page.h) with what their commands print as
// Markdown. The words of a place are
// - those of `table` or `check-table`;
// - those of `figure`: its files are written, and the place has a line for each picture;
// - `cell` and words of `table --cell`: one cell of the tables of the page. A word of their places, such as the sweep,
//   leaves those of other places out;
// - `claim` or `claims`, and words (check/named_claims.h): one claim of the page's `check-table`s, or how many have
//   each verdict; likewise;
// - `cost` and its words;
// - `--workspace W` alone: where the places after it find their sweeps.
// Paths in places are from the folder of the page. A workspace that is not named is looked for from there upwards, too;
// a table of which no run has a result is refused. Nothing is written before all places are carried out.
#pragma once

#include <filesystem>

#include "harness/commands/table_options.h"
#include "harness/console/globals.h"

namespace tearless::harness {

/// Fills `page`, and writes it to `options.out`, with its figures beside that, or in its place. Where there is no such
/// page, a first one is written of the grid or the sweep that `options` name. Returns the exit code. UserError, with
/// nothing written, that names file and line for a place that cannot be filled.
int text_report(const std::filesystem::path& page, const ViewOptions& options, const Globals& globals);

}  // namespace tearless::harness
