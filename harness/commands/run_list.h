// The runs that `tearless runs` lists, and the columns that they have: fields, labels, scores, settings.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/store/selected_runs.h"

namespace tearless::harness {

struct RunOfList {
  SelectedRun at;
  int64_t step = 0;  // updates made
  std::map<std::string, double> scores;
  std::optional<ResumeCheck> resume;
  std::map<std::string, nlohmann::json> settings = {};  // read only where they are asked for
};
using Rows = std::vector<RunOfList>;

enum class ColumnKind { kField, kLabel, kScore, kSetting };

/// What can be printed of a run, and what it can be chosen and sorted by.
struct ColumnOfRuns {
  ColumnKind kind;
  std::string key;                                        // of the field, axis, score or setting
  std::string name;                                       // the same, made unique
  std::function<nlohmann::json(const RunOfList&)> value;  // null: the run has none
};
using Columns = std::vector<ColumnOfRuns>;

/// "test.bleu", of any run, whether it has that score or not.
ColumnOfRuns score_column(const std::string& score);

/// Runs with all columns that they have. A setting is left out where the labels of an axis of its name say the same.
class RunList {
 public:
  /// Reads the results of the runs; with `with_settings` their settings, too.
  RunList(const Store& store, std::vector<SelectedRun> runs, bool with_settings);

  const Rows& rows() const { return rows_; }
  const Columns& columns() const { return columns_; }

  /// The columns that a name means, in which * stands for any text. UserError, naming the option, if no run has one.
  Columns named(const std::string& pattern, std::string_view option);
  /// The values of the only one; null for every run of an empty list.
  std::function<nlohmann::json(const RunOfList&)> value_named(const std::string& name, std::string_view option);

  void keep(const std::function<bool(const RunOfList&)>& wanted);
  /// As std::stable_sort().
  void sort(const std::function<bool(const RunOfList&, const RunOfList&)>& before);

 private:
  Columns matching(const std::string& pattern) const;
  void read_settings();

  Rows rows_;
  bool has_settings_ = false;
  Columns columns_;
};

}  // namespace tearless::harness
