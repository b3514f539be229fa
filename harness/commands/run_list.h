// The runs that `tearless runs` lists, and the columns that they have: fields, labels, scores, settings.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/results/result_set.h"

namespace tearless::harness {

using Rows = std::vector<Row>;

enum class ColumnKind { kField, kLabel, kScore, kSetting };

/// What can be printed of a run, and what it can be chosen and sorted by.
struct ColumnOfRuns {
  ColumnKind kind;
  std::string key;                                  // of the field, axis, score or setting
  std::string name;                                 // the same, made unique
  std::function<nlohmann::json(const Row&)> value;  // null: the run has none
};
using Columns = std::vector<ColumnOfRuns>;

/// "test.bleu", of any run, whether it has that score or not.
ColumnOfRuns score_column(const std::string& score);

/// Rows with all columns that they have. The scores of a derived run are shown with its trained run if the list has
/// that of the same sweep. A setting is left out where the labels of an axis of its name say the same.
class RunList {
 public:
  /// With `with_settings` reads the rows' settings, too.
  RunList(ResultSet runs, bool with_settings);

  const Rows& rows() const { return rows_; }
  const Columns& columns() const { return columns_; }
  /// The number of updates that the run has made.
  int64_t step(const Row& row) const { return steps_->at(row.run.id); }

  /// The columns that a name means, in which * stands for any text. UserError, naming the option, if no run has one.
  Columns named(const std::string& pattern, std::string_view option);
  /// The values of the only one; null for every run of an empty list.
  std::function<nlohmann::json(const Row&)> value_named(const std::string& name, std::string_view option);

  /// As harness::leave_out_derived().
  void leave_out_derived();
  void keep(const std::function<bool(const Row&)>& wanted);
  /// As std::stable_sort().
  void sort(const std::function<bool(const Row&, const Row&)>& before);

 private:
  using Settings = std::map<std::string, std::map<std::string, nlohmann::json>>;  // run → its settings

  Columns matching(const std::string& pattern) const;
  Columns columns_of_rows() const;
  void read_settings();

  Rows rows_;
  std::shared_ptr<std::map<std::string, int64_t>> steps_ = std::make_shared<std::map<std::string, int64_t>>();
  std::shared_ptr<class WordsOfSweeps> words_;
  std::shared_ptr<Settings> settings_ = std::make_shared<Settings>();  // empty until they are asked for
  Columns columns_;
};

}  // namespace tearless::harness
