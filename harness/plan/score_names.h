// The names of the scores that runs will have, and what a grid's views may therefore name. A mistyped name would give
// an empty table, or one whose cells were chosen by nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/plan/plan.h"
#include "harness/results/row.h"
#include "harness/views/views.h"

namespace tearless::harness {

/// The names, and patterns of names, of all scores that the runs of a plan can have, as the training program has
/// answered; unset if it did not say them of every run.
std::optional<std::vector<std::string>> scores_of(const std::vector<PlannedRun>& plan);

/// The same of the metrics that are of windows (ResultSet::windows).
std::optional<std::vector<std::string>> windows_of(const std::vector<PlannedRun>& plan);

/// Tables that name no scores show all, where none that the runs can have, or those that are done have, is one of
/// "test.*".
void show_all_without_default(const Grid& grid, const std::optional<std::vector<std::string>>& known,
                              const std::vector<Row>& rows, std::vector<View>& views);

/// A sentence for each score that a table names for one label, with `scores.AXIS`, and that no run with this label can
/// have. None where the scores of these runs are not known.
std::vector<std::string> errors_of_scores_by_label(const Grid& grid, const std::vector<View>& views,
                                                   const std::vector<PlannedRun>& plan);

/// A sentence, with the nearest names, for each score that a view names and that no run can have. Without `known` the
/// names are those that the runs have which are done; before the first is done there are no mistakes.
std::vector<std::string> errors_of_scores(const Grid& grid, const std::vector<View>& views,
                                          const std::optional<std::vector<std::string>>& known,
                                          const std::vector<Row>& rows);

/// Whether each label of each axis has a row. With --only, and in a sweep that was submitted so, runs that are not
/// there may have the scores that the others lack.
bool have_all_labels(const Grid& grid, const std::vector<Row>& rows);

/// A sentence for each score of curves whose part lies outside of the updates of all runs. None where a label has no
/// row, or the training program does not say how many updates its runs make, or what they report.
std::vector<std::string> errors_of_parts(const Grid& grid, const std::vector<PlannedRun>& plan,
                                         const std::vector<Row>& rows);

/// What views name and no run of a plan can have: scores, and metrics of figures, claims and scores of curves. `rows`
/// are those of the plan. Where they lack labels, only what a table takes of one label is looked at.
std::vector<std::string> errors_of_names(const Grid& grid, const std::vector<View>& views,
                                         const std::vector<PlannedRun>& plan, const std::vector<Row>& rows);

}  // namespace tearless::harness
