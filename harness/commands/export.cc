// `tearless export [WORDS] --to FOLDER --format tensorboard|csv`: metrics, scores and settings of runs for other
// programs. The folder is written beside its name and renamed when it is whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/pattern.h"
#include "base/print.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/event_file.h"
#include "harness/commands/run_list.h"
#include "harness/console/columns.h"
#include "harness/plan/grid_state.h"
#include "harness/results/curves.h"

namespace tearless::harness {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::vector<std::string> words, metrics;
  fs::path to;
  std::string format;
};

/// What was written.
struct Written {
  int64_t runs = 0, values = 0;
};

/// The metrics that the run has reported, and the norm of every update, that are wanted.
std::vector<std::string> metrics_of(const ResultSet& results, const Row& row, const ExportOptions& options) {
  std::vector<std::string> names = results.store->metric_names_of(row.run.id);
  names.emplace_back(kGradientNorms);
  if (options.metrics.empty()) return names;
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::none_of(options.metrics, [&](const auto& pattern) { return matches_pattern(pattern, name); });
  });
  return names;
}

/// A new file that is written a megabyte at a time.
class LargeFile {
 public:
  explicit LargeFile(const fs::path& path) : file_(path, 0) {}
  void add(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() > 1 << 20) finish();
  }
  void finish() {
    file_.append(buffer_);
    buffer_.clear();
  }

 private:
  AppendFile file_;
  std::string buffer_;
};

// --- TensorBoard -----------------------------------------------------------------------------------------------------

/// "model.norm.kind=layer_norm,seed=1"; the run's id where that is longer than the name of a folder may be.
std::string folder_name(const Row& row) {
  std::vector<std::string> parts;
  for (const auto& [axis, label] : row.run.coordinates) parts.push_back(axis + "=" + label);
  parts.push_back(fmt::format("seed={}", row.run.seed));
  std::string name = fmt::format("{}", fmt::join(parts, ","));
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < ' '; }, '_');
  constexpr size_t kLongest = 200;
  return name.size() > kLongest ? row.run.id : name;
}

/// A folder for each run. All values have the time at which the run began: metrics have none.
Written write_event_files(const RunList& list, const ResultSet& results, const ExportOptions& options,
                          const fs::path& folder) {
  Written written;
  std::set<fs::path> names;
  for (const Row& row : list.rows()) {
    fs::path name = folder_name(row);
    if (!names.insert(name).second) name += "," + row.run.id;
    double began = 0;
    for (const AttemptRecord& attempt : row.result.attempts) {
      if (const auto seconds = seconds_of_utc(attempt.started_at))
        began = began == 0 ? static_cast<double>(*seconds) : std::min(began, static_cast<double>(*seconds));
    }
    make_folders(folder / name);
    LargeFile file(folder / name / fmt::format("events.out.tfevents.{:010.0f}.{}", began, row.run.id));
    file.add(event_file_header(began));
    const auto add = [&](const std::string& tag, int64_t step, double value) {
      file.add(event_record(began, step, tag, value));
      ++written.values;
    };
    const std::vector<std::string> metrics = metrics_of(results, row, options);
    read_curves(results, row, metrics,
                [&](size_t metric, int64_t update, double value) { add(metrics[metric], update, value); });
    for (const auto& [score, value] : row.result.scores) add("score/" + score, row.result.step.value_or(0), value);
    file.finish();
    ++written.runs;
  }
  return written;
}

// --- CSV -------------------------------------------------------------------------------------------------------------

std::string runs_csv(const RunList& list) {
  std::vector<std::string> names;
  for (const ColumnOfRuns& column : list.columns()) names.push_back(column.name);
  std::string text = csv_header(names, Formulas::kAsTheyAre);
  for (const Row& row : list.rows()) {
    std::vector<std::string> cells;
    for (const ColumnOfRuns& column : list.columns()) cells.push_back(value_text(column.value(row)));
    text += csv_line(cells, Formulas::kAsTheyAre);
  }
  return text;
}

/// runs.csv, with every score, label and setting, and metrics.csv.
Written write_csv(const RunList& list, const ResultSet& results, const ExportOptions& options, const fs::path& folder) {
  Written written{.runs = std::ssize(list.rows())};
  LargeFile file(folder / "metrics.csv");
  file.add(csv_line({"run", "step", "name", "value"}, Formulas::kAsTheyAre));
  for (const Row& row : list.rows()) {
    const std::vector<std::string> metrics = metrics_of(results, row, options);
    read_curves(results, row, metrics, [&](size_t metric, int64_t update, double value) {
      file.add(csv_line({row.run.id, std::to_string(update), metrics[metric], fmt::format("{}", value)},
                        Formulas::kAsTheyAre));
      ++written.values;
    });
  }
  file.finish();
  write_atomically(folder / "runs.csv", runs_csv(list));
  return written;
}

// ---------------------------------------------------------------------------------------------------------------------

int export_runs(const ExportOptions& options, const Globals& globals) {
  constexpr std::string_view kTensorboard = "tensorboard", kCsv = "csv";
  if (options.format != kTensorboard && options.format != kCsv)
    fail("--format {} is not known; it must be {} or {}", options.format, kTensorboard, kCsv);
  if (fs::exists(options.to) || fs::is_symlink(options.to))
    fail("--to {}: it is there already; delete it, or name another folder", options.to.string());
  fs::path target = fs::absolute(options.to).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "folder/"
  if (!fs::is_directory(target.parent_path()))
    fail("--to {}: there is no folder {}", options.to.string(), target.parent_path().string());
  std::unique_ptr<const Store> store = require_store(globals);
  const Selection selection = select_or_last(*store, options.words);
  RunList list(selected_rows(std::move(store), selection, Duplicates::kNewest, Read::kResults),
               /*with_settings=*/options.format == kCsv);
  list.leave_out_derived();  // their scores are in the rows of the runs that they derive from
  list.keep([](const Row& row) { return !row.result.attempts.empty(); });
  if (list.rows().empty()) fail("none of these runs has begun, so there is nothing to export");
  const ResultSet results{.store = require_store(globals)};
  const fs::path partial = target.string() + ".partial";
  remove_recursively(partial);
  make_folders(partial);
  Written written;
  try {
    written = options.format == kCsv ? write_csv(list, results, options, partial)
                                     : write_event_files(list, results, options, partial);
    publish_folder(partial, target);
  } catch (const std::exception&) {
    remove_what_is_left_of(partial);
    throw;
  }
  if (globals.json) {
    print_json({{"target", options.to.string()}, {"runs", written.runs}, {"values", written.values}});
    return kOk;
  }
  print("{}: {}, {}\n", options.to.string(), counted(written.runs, "run"), counted(written.values, "value"));
  if (options.format == kTensorboard) print("Next: tensorboard --logdir {}\n", shell_word(options.to.string()));
  return kOk;
}

}  // namespace

Action command_export(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<ExportOptions>();
  app.add_option("what", options->words,
                 "sweeps (ids, names, grid files, last, all) or runs (ids, places, states, axis=label); default: last");
  app.add_option("--to", options->to, "the folder to make")->required()->type_name("FOLDER");
  app.add_option("--format", options->format,
                 "tensorboard: an event file a run, which TensorBoard and other trackers read; csv: runs.csv and "
                 "metrics.csv")
      ->required();
  app.add_option("--metrics", options->metrics,
                 "only these; * stands for any text (repeat for more; default: all, gradient_norms too)")
      ->allow_extra_args(false);
  return [options, &globals] { return export_runs(*options, globals); };
}

}  // namespace tearless::harness
