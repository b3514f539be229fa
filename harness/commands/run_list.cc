#include "harness/commands/run_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/settings.h"
#include "harness/console/columns.h"
#include "harness/folders/sweep_directory.h"
#include "harness/runs/measured.h"
#include "harness/table/table.h"

namespace tearless::harness {
using nlohmann::json;

/// The tags and the note of a row's sweep, read from the sweep's folder when they are asked for.
class WordsOfSweeps {
 public:
  explicit WordsOfSweeps(std::filesystem::path root) : workspace_(std::move(root)) {}

  json tags(const Row& row) {
    const SweepWords& words = of(row);
    return words.tags.empty() ? json() : json(words.tags);
  }
  json note(const Row& row) {
    const SweepWords& words = of(row);
    return words.note.empty() ? json() : json(words.note);
  }

 private:
  const SweepWords& of(const Row& row) {
    const auto [words, is_new] = known_.try_emplace(row.sweep_id());
    if (is_new && !row.sweep_id().empty()) words->second = read_words(workspace_, row.sweep_id());
    return words->second;
  }

  Workspace workspace_;
  std::map<std::string, SweepWords> known_;
};

namespace {

int64_t updates_made(const Store& store, const RunResult& run) {
  if (run.step) return *run.step;
  int64_t step = 0;
  if (run.state == RunState::kRunning) {
    for (const auto& [name, line] : store.newest_metrics(run.id)) step = std::max(step, line.step);
  } else if (!run.attempts.empty()) {
    const AttemptRecord& last = run.attempts.back();
    step = last.checkpoint + last.lost.value_or(LostWork()).updates;
  }
  return step;
}

using Steps = std::map<std::string, int64_t>;

Columns fields(const std::shared_ptr<const Steps>& steps, const std::shared_ptr<WordsOfSweeps>& words) {
  const auto field = [](const char* name, std::function<json(const Row&)> value) {
    return ColumnOfRuns{ColumnKind::kField, name, "", std::move(value)};
  };
  return {field("run", [](const Row& row) { return json(row.run.id); }),
          field("sweep", [](const Row& row) { return json(row.sweep_id()); }),
          field("name", [](const Row& row) { return json(row.sweep ? row.sweep->name : ""); }),
          field("tag", [words](const Row& row) { return words->tags(row); }),
          field("note", [words](const Row& row) { return words->note(row); }),
          field("place", [](const Row& row) { return row.sweep ? json(row.place) : json(); }),
          field("seed", [](const Row& row) { return row.sweep ? json(row.run.seed) : json(); }),
          field("state", [](const Row& row) { return json(name_of(row.result.state)); }),
          field("class", [](const Row& row) { return json(name_of(row.result.failure)); }),
          field("reason", [](const Row& row) { return json(row.result.reason); }),
          field("step", [steps](const Row& row) { return json(steps->at(row.run.id)); }),
          field("updates", [](const Row& row) { return json(row.run.updates); }),
          field("resume", [](const Row& row) { return row.result.resume ? json(row.result.resume->outcome) : json(); }),
          field("stale", [](const Row& row) { return json(row.result.stale); }),
          field("mixed", [](const Row& row) { return json(row.result.is_mixed()); }),
          field("progress", [steps](const Row& row) {
            return row.run.updates == 0 ? json() : json(fmt::format("{}/{}", steps->at(row.run.id), row.run.updates));
          })};
}

template <class Value>
json value_in(const std::map<std::string, Value>& values, const std::string& key) {
  const auto value = values.find(key);
  return value == values.end() ? json() : json(value->second);
}

std::string text_in(const ColumnOfRuns& column, const Row& row) { return value_text(column.value(row)); }

// Moves the scores of derived runs to the row of their trained run, if the list has it of the same sweep.
void show_scores_with_trained_runs(ResultSet& runs) {
  using Trained = std::tuple<std::string, std::string, int64_t>;  // sweep, run, seed
  const auto trained_of = [](const Row& row) { return Trained(row.sweep_id(), row.trained, row.run.seed); };
  std::map<Trained, std::vector<Row*>> listed;
  for (Row& row : runs.rows) {
    if (row.is_trained()) listed[trained_of(row)].push_back(&row);
  }
  for (std::vector<Row>* rows : {&runs.rows, &runs.beside}) {
    for (Row& row : *rows) {
      const auto trained = listed.find(trained_of(row));
      if (row.is_trained() || trained == listed.end()) continue;
      for (Row* of : trained->second) {
        of->result.scores.insert(row.result.scores.begin(), row.result.scores.end());
        of->result.measured.insert(row.result.measured.begin(), row.result.measured.end());
      }
      row.result.scores.clear();
      row.result.measured.clear();
    }
  }
}

}  // namespace

ColumnOfRuns score_column(const std::string& score) {
  return {ColumnKind::kScore, score, score, [score](const Row& row) {
            const std::optional<double> value = row.number(score);
            return value ? json(*value) : json();
          }};
}

RunList::RunList(ResultSet runs, bool with_settings) {
  read_results(runs.store.get(), runs.beside);
  words_ = std::make_shared<WordsOfSweeps>(runs.store ? runs.store->root() : std::filesystem::path());
  for (const Row& row : runs.rows) (*steps_)[row.run.id] = updates_made(*runs.store, row.result);
  show_scores_with_trained_runs(runs);
  rows_ = std::move(runs.rows);
  if (with_settings) read_settings();
  columns_ = columns_of_rows();
}

Columns RunList::named(const std::string& pattern, std::string_view option) {
  Columns found = matching(pattern);
  if (found.empty() && settings_->empty()) {
    read_settings();
    columns_ = columns_of_rows();
    found = matching(pattern);
  }
  if (!found.empty() || rows_.empty()) return found;
  std::vector<std::string> names, listed;
  for (const ColumnOfRuns& column : columns_) {
    names.push_back(column.name);
    if (column.kind != ColumnKind::kSetting && !is_measured(column.name)) listed.push_back(column.name);
  }
  fail("{}: no selected run has \"{}\"{}; they have {}, and their settings (tearless diff RUN RUN)", option, pattern,
       did_you_mean(pattern, names), fmt::join(listed, ", "));
}

std::function<json(const Row&)> RunList::value_named(const std::string& name, std::string_view option) {
  const Columns found = named(name, option);
  if (found.size() > 1) fail("{}: \"{}\" means {} columns; name one of them", option, name, found.size());
  return found.empty() ? [](const Row&) { return json(); } : found.front().value;
}

void RunList::leave_out_derived() {
  harness::leave_out_derived(rows_);
  columns_ = columns_of_rows();
}

void RunList::keep(const std::function<bool(const Row&)>& wanted) {
  std::erase_if(rows_, [&](const Row& row) { return !wanted(row); });
}

void RunList::sort(const std::function<bool(const Row&, const Row&)>& before) {
  std::stable_sort(rows_.begin(), rows_.end(), before);
}

Columns RunList::matching(const std::string& pattern) const {
  Columns found;
  std::copy_if(columns_.begin(), columns_.end(), std::back_inserter(found),
               [&](const ColumnOfRuns& column) { return matches_score(pattern, column.name); });
  return found;
}

void RunList::read_settings() {
  for (const Row& row : rows_) {
    settings_->try_emplace(row.run.id, parse_toml_settings(row.run.settings, "run " + row.run.id).values);
  }
}

Columns RunList::columns_of_rows() const {
  std::set<std::string> scores, settings;
  std::vector<std::string> axes;  // in the order of the grids
  const auto is_axis = [&](const std::string& name) { return std::ranges::find(axes, name) != axes.end(); };
  for (const Row& row : rows_) {
    for (const auto& [axis, label] : row.run.coordinates) {
      if (!is_axis(axis)) axes.push_back(axis);
    }
    for (const auto* numbers : {&row.result.scores, &row.result.measured}) {
      for (const auto& [name, value] : *numbers) scores.insert(name);
    }
  }
  for (const auto& [run, values] : *settings_) {
    for (const auto& [key, value] : values) settings.insert(key);
  }
  Columns columns = fields(steps_, words_);
  for (const std::string& axis : axes) {
    columns.push_back({ColumnKind::kLabel, axis, "", [axis](const Row& row) {
                         const std::string& label = label_on(row.run.coordinates, axis);
                         return label.empty() ? json() : json(label);
                       }});
  }
  for (const std::string& score : scores) columns.push_back(score_column(score));
  for (const std::string& key : settings) {
    const ColumnOfRuns setting = {ColumnKind::kSetting, key, "", [key, settings = settings_](const Row& row) {
                                    return value_in(settings->at(row.run.id), key);
                                  }};
    const bool is_shown = is_axis(key) && std::ranges::all_of(rows_, [&](const Row& row) {
                            return text_in(setting, row) == label_on(row.run.coordinates, key);
                          });
    if (!is_shown) columns.push_back(setting);
  }
  std::vector<std::string> names;
  for (const ColumnOfRuns& column : columns) names.push_back(column.key);
  names = distinct_names(std::move(names));
  for (size_t i = 0; i < columns.size(); ++i) columns[i].name = names[i];
  return columns;
}

}  // namespace tearless::harness
