#include "harness/commands/run_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/settings.h"
#include "harness/table/columns.h"
#include "harness/table/table.h"

namespace tearless::harness {
using nlohmann::json;
namespace {

int64_t updates_made(const Store& store, const RunRecord& run) {
  if (run.step) return *run.step;
  int64_t step = 0;
  if (run.state == RunState::kRunning) {
    for (const auto& [name, line] : store.newest_metrics(run.id)) step = std::max(step, line.step);
  } else if (const std::vector<AttemptRecord> attempts = store.attempts_of(run.id); !attempts.empty()) {
    const AttemptRecord& last = attempts.back();
    step = last.checkpoint + last.lost.value_or(LostWork()).updates;
  }
  return step;
}

Columns fields() {
  const auto field = [](const char* name, std::function<json(const RunOfList&)> value) {
    return ColumnOfRuns{ColumnKind::kField, name, "", std::move(value)};
  };
  using Row = RunOfList;
  return {field("run", [](const Row& row) { return json(row.at.run.id); }),
          field("sweep", [](const Row& row) { return json(row.at.sweep_id()); }),
          field("name", [](const Row& row) { return json(row.at.sweep ? row.at.sweep->name : ""); }),
          field("place", [](const Row& row) { return row.at.sweep ? json(row.at.place()) : json(); }),
          field("seed", [](const Row& row) { return row.at.sweep ? json(row.at.run.seed) : json(); }),
          field("state", [](const Row& row) { return json(name_of(row.at.run.state)); }),
          field("class", [](const Row& row) { return json(name_of(row.at.run.failure)); }),
          field("reason", [](const Row& row) { return json(row.at.run.reason); }),
          field("step", [](const Row& row) { return json(row.step); }),
          field("updates", [](const Row& row) { return json(row.at.run.updates); }),
          field("resume", [](const Row& row) { return row.resume ? json(row.resume->outcome) : json(); }),
          field("progress", [](const Row& row) {
            return row.at.run.updates == 0 ? json() : json(fmt::format("{}/{}", row.step, row.at.run.updates));
          })};
}

template <class Value>
json value_in(const std::map<std::string, Value>& values, const std::string& key) {
  const auto value = values.find(key);
  return value == values.end() ? json() : json(value->second);
}

std::string text_in(const ColumnOfRuns& column, const RunOfList& row) { return value_text(column.value(row)); }

Columns columns_of(const Rows& rows) {
  std::set<std::string> axes, scores, settings;
  for (const RunOfList& row : rows) {
    for (const auto& [axis, label] : row.at.run.coordinates) axes.insert(axis);
    for (const auto& [name, value] : row.scores) scores.insert(name);
    for (const auto& [key, value] : row.settings) settings.insert(key);
  }
  Columns columns = fields();
  for (const std::string& axis : axes) {
    columns.push_back({ColumnKind::kLabel, axis, "", [axis](const RunOfList& row) {
                         const std::string& label = label_on(row.at.run.coordinates, axis);
                         return label.empty() ? json() : json(label);
                       }});
  }
  for (const std::string& score : scores) columns.push_back(score_column(score));
  for (const std::string& key : settings) {
    const ColumnOfRuns setting = {ColumnKind::kSetting, key, "",
                                  [key](const RunOfList& row) { return value_in(row.settings, key); }};
    const bool is_axis = axes.contains(key) && std::all_of(rows.begin(), rows.end(), [&](const RunOfList& row) {
                           return text_in(setting, row) == label_on(row.at.run.coordinates, key);
                         });
    if (!is_axis) columns.push_back(setting);
  }
  std::vector<std::string> names;
  for (const ColumnOfRuns& column : columns) names.push_back(column.key);
  names = distinct_names(std::move(names));
  for (size_t i = 0; i < columns.size(); ++i) columns[i].name = names[i];
  return columns;
}

}  // namespace

ColumnOfRuns score_column(const std::string& score) {
  return {ColumnKind::kScore, score, score, [score](const RunOfList& row) { return value_in(row.scores, score); }};
}

RunList::RunList(const Store& store, std::vector<SelectedRun> runs, bool with_settings) {
  const std::multimap<std::string, std::string> derivations = store.derivations();
  const std::function<void(const std::string&, RunResult&)> add_derived = [&](const std::string& id,
                                                                              RunResult& result) {
    for (auto [at, end] = derivations.equal_range(id); at != end; ++at) {
      result.scores.merge(store.result_of(at->second).scores);
      add_derived(at->second, result);
    }
  };
  for (SelectedRun& at : runs) {
    const int64_t step = updates_made(store, at.run);
    RunResult result = store.result_of(at.run.id);
    if (derived_from(at.run.settings).empty()) {
      add_derived(at.run.id, result);
    } else {
      result.scores.clear();  // they are shown with the trained run
    }
    rows_.push_back({std::move(at), step, std::move(result.scores), std::move(result.resume)});
  }
  columns_ = columns_of(rows_);
  if (with_settings) read_settings();
}

Columns RunList::named(const std::string& pattern, std::string_view option) {
  Columns found = matching(pattern);
  if (found.empty() && !has_settings_) {
    read_settings();
    found = matching(pattern);
  }
  if (!found.empty() || rows_.empty()) return found;
  std::vector<std::string> names, listed;
  for (const ColumnOfRuns& column : columns_) {
    names.push_back(column.name);
    if (column.kind != ColumnKind::kSetting) listed.push_back(column.name);
  }
  fail("{}: no selected run has \"{}\"{}; they have {}, and their settings (tearless diff RUN RUN)", option, pattern,
       did_you_mean(pattern, names), fmt::join(listed, ", "));
}

std::function<json(const RunOfList&)> RunList::value_named(const std::string& name, std::string_view option) {
  const Columns found = named(name, option);
  if (found.size() > 1) fail("{}: \"{}\" means {} columns; name one of them", option, name, found.size());
  return found.empty() ? [](const RunOfList&) { return json(); } : found.front().value;
}

void RunList::keep(const std::function<bool(const RunOfList&)>& wanted) {
  std::erase_if(rows_, [&](const RunOfList& row) { return !wanted(row); });
}

void RunList::sort(const std::function<bool(const RunOfList&, const RunOfList&)>& before) {
  std::stable_sort(rows_.begin(), rows_.end(), before);
}

Columns RunList::matching(const std::string& pattern) const {
  Columns found;
  std::copy_if(columns_.begin(), columns_.end(), std::back_inserter(found),
               [&](const ColumnOfRuns& column) { return matches_pattern(pattern, column.name); });
  return found;
}

void RunList::read_settings() {
  for (RunOfList& row : rows_) {
    row.settings = parse_toml_settings(row.at.run.settings, "run " + row.at.run.id).values;
  }
  has_settings_ = true;
  columns_ = columns_of(rows_);
}

}  // namespace tearless::harness
