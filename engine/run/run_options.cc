#include "engine/run/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/files.h"
#include "base/run_directory.h"
#include "base/toml.h"
#include "engine/train/observe.h"

namespace tearless::engine {
namespace fs = std::filesystem;

std::string program_version() {
  std::string version(build_stamp());
  const char* const wheel = std::getenv("TEARLESS_WHEEL");  // by engine/starter.sh
  return wheel ? version.insert(version.size() - 1, fmt::format(", wheel {}", wheel)) : version;
}

namespace {

constexpr int64_t kSmokeUpdates = 20;

/// The name of the task that is written, or the default.
std::string task_in(const WrittenSettings& written) {
  const auto task = written.values.find("task");
  return task != written.values.end() && task->second.is_string() ? task->second.get<std::string>()
                                                                  : std::string(kDefaultTask);
}

/// The keys of the settings of a task; null if there is no such task. Listed once: `check` reads thousands of
/// configurations.
const std::set<std::string>* keys_of(std::string_view task) {
  static const auto keys_of_task = [] {
    std::map<std::string, std::set<std::string>, std::less<>> all;
    for (const auto& kind : task_kinds()) {
      RunOptions any(kind->name);
      for (const DescribedField& f : list_settings(description_of(any))) all[std::string(kind->name)].insert(f.key);
    }
    return all;
  }();
  const auto keys = keys_of_task.find(task);
  return keys == keys_of_task.end() ? nullptr : &keys->second;
}

/// Throws UserError if a written setting belongs to another task and not to this one.
void refuse_settings_of_other_tasks(const WrittenSettings& written, std::string_view task) {
  const std::set<std::string>* const own = keys_of(task);
  if (!own) return;  // the reader names the legal ones
  for (const auto& [key, value] : written.values) {
    if (own->contains(key)) continue;
    for (const auto& other : task_kinds()) {
      if (!keys_of(other->name)->contains(key)) continue;
      fail("{}: {} is a setting of task = \"{}\", but the task is \"{}\"; remove it, or set the task",
           written.location_of(key), key, other->name, task);
    }
  }
}

/// Canonical text omits settings at their neutral value. Adds those values, because the default may be another.
void add_neutral_values(WrittenSettings& canonical) {
  const std::string task = task_in(canonical);
  if (!make_task_kind(task)) return;
  RunOptions any(task);
  for (const DescribedField& f : list_settings(description_of(any))) {
    if (f.field.neutral) canonical.values.emplace(f.key, *f.field.neutral);
  }
}

}  // namespace

void describe_common(SettingsVisitor& v, RunOptions& o) {
  static const std::vector<std::string_view> names = task_kinds().names();
  static const std::string meaning = "what is trained: " + task_kinds().meanings();
  std::string name(o.task->name);
  v.word({.key = "task", .meaning = meaning, .choices = names, .neutral = kDefaultTask}, name);
  if (name != o.task->name) o = RunOptions(name);  // nothing else has been read yet
  v.table_of("train", [&] { describe(v, o.train, o.task->data_follow_seed()); });
  v.table("run", o.run);
  v.table("observe", o.run.observe);
}

void describe(SettingsVisitor& v, RunOptions& o) {
  describe_common(v, o);  // first: it reads which task it is
  o.task->describe_own(v);
}

Describe description_of(RunOptions& options) {
  return [&options](SettingsVisitor& v) { describe(v, options); };
}

RunOptions read_run_options(const WrittenSettings& written, const fs::path& folder,
                            const std::map<std::string, std::string>& folders) {
  refuse_settings_of_other_tasks(written, task_in(written));
  RunOptions options;
  read_settings(written, description_of(options));
  // Another learning rate than the default of the task is asked for, and the kind has but one.
  const auto is_written = [&](const char* key) { return written.values.contains(key); };
  if (ScheduleOptions& schedule = options.train.schedule;
      schedule.chosen().height == ScheduleKind::Height::kNone && !is_written("train.schedule.peak_lr") &&
      (is_written("train.schedule.lr") || is_written("train.schedule.scale"))) {
    schedule.peak_lr.reset();
  }
  try {
    options.task->check_consistent(options.train);
    check_consistent(options.train);
    check_consistent(options.run);
    check_observed_groups(options.run.observe, *options.task->model_parameters());
  } catch (const UserError& error) {
    fail("{}: {}", written.name, error.what());
  }
  for (const DataSet& set : options.task->data_files().sets) {
    for (const DataSetting& setting : set.settings) {
      std::string& path = *setting.path;
      if (path.empty()) continue;
      const auto own = folders.find(setting.key);
      path = fs::absolute((own == folders.end() ? folder : fs::path(own->second)) / path).lexically_normal().string();
    }
  }
  return options;
}

RunOptions read_run_directory(const fs::path& dir, std::optional<WrittenSettings> other_local) {
  const RunDirectory run(dir);
  const std::string canonical = read_file(run.settings());
  WrittenSettings local = other_local ? *std::move(other_local) : read_toml_settings(run.local());
  if (const std::string of = derived_from(canonical); !of.empty()) {
    fail("{} has no model of its own: it derives from the run {}; name that one", dir.string(), of);
  }
  if (run_id(canonical) != run.id()) {
    fail(
        "{} was changed: the folder is named {}, its settings hash to {}; restore the file, or delete the folder and "
        "run the grid again",
        run.settings().string(), run.id(), run_id(canonical));
  }
  WrittenSettings written = parse_toml_settings(canonical, run.settings().string());
  add_neutral_values(written);
  written.values.merge(local.values);
  written.locations.merge(local.locations);
  return read_run_options(written, dir, {});
}

std::string canonical_text(RunOptions& options) {
  return canonical_settings(Identity::kResult, description_of(options));
}
std::string local_text(RunOptions& options) { return canonical_settings(Identity::kLocal, description_of(options)); }

RunOptions smoke(RunOptions options) {
  options.train.max_updates = kSmokeUpdates;
  options.train.epoch_updates = kSmokeUpdates;
  options.train.evaluate_updates = 0;
  options.train.max_epochs = 1;
  options.train.select.count = 1;  // there is one evaluation
  if (ScheduleOptions& schedule = options.train.schedule; schedule.chosen().falls_to_end) {
    schedule.warmup_updates = std::min(schedule.warmup_updates, kSmokeUpdates / 2);
  }
  return options;
}

}  // namespace tearless::engine
