// Which scores cells are of, and by which rules those are made that stand in no table.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/results/row.h"
#include "harness/views/views.h"

namespace tearless::harness {

/// The names of the scores, and of the numbers measured, that the runs have.
std::set<std::string> scores_there(const std::vector<Replicate>& runs);

/// Those of `names` that match a pattern (base/pattern.h), in the order of the patterns, of each in version order:
/// layer 10 after layer 9. A pattern without a match is retained, so that its empty column is visible.
std::vector<std::string> names_matching(const std::vector<std::string>& patterns, const std::set<std::string>& names);

/// Those that a table shows: what it names, or all of the test sets.
const std::vector<std::string>& or_default(const std::vector<std::string>& scores);

/// Whether a run counts as failed by CellRules::fail_below. `fail_score`: that is compared with it.
bool is_below(const Replicate& run, const CellRules& rules, const std::string& fail_score);

/// What a table says of the runs of a cell. Bars and `diff` go by it, so that they agree with the table.
struct TableRules {
  CellRules rules = {};
  std::optional<Arrangement::Select> select = {};
  std::string fail_score = {};  // that fail_below is compared with
};

/// Of the first table, or of the first that shows `score`. Without one all runs count that are done. `there`:
/// the scores that the runs have.
TableRules rules_of_table(const std::vector<View>& views, const std::set<std::string>& there,
                          const std::string& score = "");

}  // namespace tearless::harness
