#include "harness/cells/scores.h"

#include <string.h>  // strverscmp

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/runs/measured.h"
#include "harness/statistics/rounding.h"

namespace tearless::harness {

std::set<std::string> scores_there(const std::vector<Replicate>& runs) {
  std::set<std::string> there;
  const auto add = [&](const Row& row) {
    for (const auto* numbers : {&row.result.scores, &row.result.measured}) {
      for (const auto& [name, value] : *numbers) there.insert(name);
    }
  };
  for (const Replicate& run : runs) {
    add(*run.trained);
    for (const Row* row : run.derived) add(*row);
  }
  return there;
}

std::vector<std::string> names_matching(const std::vector<std::string>& patterns, const std::set<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& pattern : patterns) {
    std::vector<std::string> found;
    std::copy_if(names.begin(), names.end(), std::back_inserter(found),
                 [&](const std::string& name) { return matches_score(pattern, name); });
    std::sort(found.begin(), found.end(),
              [](const std::string& a, const std::string& b) { return strverscmp(a.c_str(), b.c_str()) < 0; });
    if (found.empty()) found.push_back(pattern);
    for (std::string& name : found) {
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
    }
  }
  return all;
}

const std::vector<std::string>& or_default(const std::vector<std::string>& scores) {
  static const std::vector<std::string> kDefault = {"test.*"};
  return scores.empty() ? kDefault : scores;
}

bool is_below(const Replicate& run, const CellRules& rules, const std::string& fail_score) {
  if (!rules.fail_below) return false;
  const std::optional<double> compared = run.row_of(fail_score).number(fail_score);
  return compared && is_less(*compared, *rules.fail_below);
}

TableRules rules_of_table(const std::vector<View>& views, const std::set<std::string>& there,
                          const std::string& score) {
  const auto shows = [&](const TableSpec& table) {
    std::vector<std::string> scores = or_default(table.scores);
    for (const auto& [label, own] : table.scores_of_label) scores.insert(scores.end(), own.begin(), own.end());
    return std::ranges::any_of(scores, [&](const std::string& pattern) { return matches_score(pattern, score); });
  };
  for (const View& view : views) {
    const auto* table = std::get_if<TableSpec>(&view.spec);
    if (!table || (!score.empty() && !shows(*table))) continue;
    return {.rules = table->rules,
            .select = table->arrangement.select,
            .fail_score = names_matching(or_default(table->scores), there).front()};
  }
  return {};
}

}  // namespace tearless::harness
