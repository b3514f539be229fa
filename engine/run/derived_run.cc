#include "engine/run/derived_run.h"

#include <ATen/Parallel.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/words.h"
#include "engine/ops/memory.h"
#include "engine/train/phase.h"

namespace tearless::engine {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

Describe description_of(DerivedOptions& options) {
  return [&options](SettingsVisitor& v) { describe(v, options); };
}

DerivedOptions read_derivation(const WrittenSettings& written) {
  DerivedOptions options;
  read_settings(written, description_of(options));
  if (!is_plain_name(options.name)) {
    fail("{}: derived.name = \"{}\" must be letters, digits, \"_\" and \"-\"", written.location_of("derived.name"),
         options.name);
  }
  return options;
}

void check_consistent(const WrittenSettings& written, DerivedOptions& options, const TaskKind& task,
                      const DerivedKind* of) {
  try {
    options.chosen().check_consistent(task, of);
  } catch (const UserError& error) {
    fail("{}: {}", written.name, error.what());
  }
}

/// run.toml of a run. Throws UserError if it was changed.
WrittenSettings read_canonical(const RunDirectory& run, std::string& of) {
  const std::string text = read_file(run.settings());
  if (run_id(text) != run.id()) {
    fail("{} was changed: its settings hash to {}; restore the file, or delete the folder", run.settings().string(),
         run_id(text));
  }
  of = derived_from(text);
  WrittenSettings written = parse_toml_settings(text, run.settings().string());
  // Canonical text omits settings at their neutral value, and the default may be another.
  const auto kind = written.values.find("derived.kind");
  DerivedOptions any;
  if (kind != written.values.end() && kind->second.is_string()) any.kind = kind->second.get<std::string>();
  if (!of.empty() && derived_kinds().find(any.kind)) {
    for (const DescribedField& f : list_settings(description_of(any))) {
      if (f.field.neutral) written.values.emplace(f.key, *f.field.neutral);
    }
  }
  return written;
}

/// Moves the settings below derived. to another object.
WrittenSettings take_derived(WrittenSettings& local) {
  WrittenSettings taken{.values = {}, .locations = {}, .name = local.name};
  for (auto at = local.values.begin(); at != local.values.end();) {
    const auto next = std::next(at);
    if (at->first.starts_with("derived.")) taken.values.insert(local.values.extract(at));
    at = next;
  }
  taken.locations = local.locations;
  return taken;
}

}  // namespace

void describe(SettingsVisitor& v, DerivedOptions& o) {
  v.table_of("derived", [&] {
    v.word({.key = "of", .meaning = "id of the run that it derives from, filled in by check"}, o.of);
    v.word({.key = "name", .meaning = "its name; its scores are called name.test.bleu"}, o.name);
    static const std::vector<std::string_view> names = derived_kinds().names();
    v.word({.key = "kind", .meaning = "how it is made", .choices = names}, o.kind);
    o.chosen().describe(v);
  });
}

std::vector<DerivedOptions> read_derivations(const std::vector<WrittenSettings>& written, const RunOptions& trained,
                                             const fs::path& folder) {
  std::vector<DerivedOptions> chain;
  for (const WrittenSettings& one : written) {
    DerivedOptions options = read_derivation(one);
    for (const DataSet& set : options.chosen().data_files().sets) {
      for (const DataSetting& setting : set.settings) {
        if (!setting.path->empty()) *setting.path = fs::absolute(folder / *setting.path).lexically_normal().string();
      }
    }
    check_consistent(one, options, *trained.task, chain.empty() ? nullptr : &chain.back().chosen());
    chain.push_back(std::move(options));
  }
  return chain;
}

std::string canonical_text(DerivedOptions& options) {
  return canonical_settings(Identity::kResult, description_of(options));
}

std::string local_text(DerivedRun& run) {
  return canonical_settings(Identity::kLocal, description_of(run.chain.back())) + local_text(run.trained);
}

bool is_derived(const RunDirectory& run) { return !derived_from(read_file(run.settings())).empty(); }

RunDirectory origin_of(const RunDirectory& run, const std::string& of) {
  const fs::path folder = fs::absolute(run.root() / "").lexically_normal().parent_path();
  const RunDirectory beside(folder.parent_path() / of);
  return fs::exists(beside.root()) ? beside : RunDirectory(folder.parent_path().parent_path() / "runs" / of);
}

DerivedRun read_derived_run(const RunDirectory& run) {
  WrittenSettings local = read_toml_settings(run.local());
  const WrittenSettings own_local = take_derived(local);
  std::vector<WrittenSettings> written;  // the run's own first
  std::string of;
  RunDirectory at = run;
  for (WrittenSettings one = read_canonical(at, of); !of.empty(); one = read_canonical(at, of)) {
    if (written.empty()) {
      one.values.insert(own_local.values.begin(), own_local.values.end());
      one.locations.insert(own_local.locations.begin(), own_local.locations.end());
    }
    written.push_back(std::move(one));
    at = origin_of(at, of);
    if (!fs::exists(at.settings())) {
      fail("{} derives from the run {}, which is not there: {} is missing", run.root().string(), of,
           at.root().string());
    }
  }
  DerivedRun derived{.trained = read_run_directory(at.root(), std::move(local)), .chain = {}};
  std::reverse(written.begin(), written.end());
  derived.chain = read_derivations(written, derived.trained, run.root());
  return derived;
}

namespace {

std::string score_name(const DerivedOptions& own, const std::string& number) { return own.name + "." + number; }

}  // namespace

std::vector<std::string> DerivedRun::score_names() const {
  std::vector<std::string> names;
  for (const std::string& number : kind().score_names(*trained.task)) names.push_back(score_name(chain.back(), number));
  return names;
}

namespace {

/// Writes outputs, scores.json and DONE. Returns kExitStopped, and writes no DONE, if a newer attempt has begun.
ExitCode publish(const RunDirectory& run, int64_t attempt, const DerivedOptions& own, const Derivation& made) {
  json scores = json::object();
  for (const auto& [name, value] : made.results.numbers) scores[score_name(own, name)] = value;
  if (run.newest_attempt() != attempt) return kExitStopped;
  write_phase(run, attempt, Phase::kPublishing);
  const std::vector<std::string> files = write_results(run, scores, made.results.files);
  if (run.newest_attempt() != attempt) return kExitStopped;
  write_done(run, "done", 0, own.kind, files, made.inputs);
  return kExitDone;
}

}  // namespace

ExitCode derive(DerivedRun& derived, const RunDirectory& run, int64_t attempt) {
  const auto start = std::chrono::steady_clock::now();
  const DerivedOptions& own = derived.chain.back();
  const RunDirectory of = origin_of(run, own.of);
  const std::optional<Done> done = read_done(of);
  if (!done) fail("the run {} has no result yet, from which {} derives: train it first", of.root().string(), own.name);
  const bool diverged = done->outcome == "diverged" && own.chosen().reads() != DerivedKind::Reads::kSettings;
  // By this the harness knows whether that run was trained again since, with another result.
  const std::pair<std::string, std::string> result_of_origin(own.of + "/DONE", sha256_of_file(of.done()));
  write_phase(run, attempt, Phase::kEvaluating);
  Derivation made = diverged ? Derivation()
                             : own.chosen().derive({.task = *derived.trained.task,
                                                    .train = derived.trained.train,
                                                    .execution = derived.trained.run,
                                                    .of = of,
                                                    .say = [](const std::string& line) { spdlog::info("{}", line); }});
  made.inputs.insert(result_of_origin);
  try {
    if (diverged) {
      if (run.newest_attempt() != attempt) return kExitStopped;
      write_done(run, "diverged", done->step, fmt::format("the run {} diverged", own.of), {}, made.inputs);
      return kExitDiverged;
    }
    const ExitCode outcome = publish(run, attempt, own, made);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    json measured = {{"peak_memory_bytes", peak_memory_bytes()},
                     {"seconds", seconds},
                     {"threads", at::get_num_threads()},
                     {"updates", 0}};
    measured.update(made.results.time.measured());
    write_atomically(run.attempt(attempt) / "measured.json", measured.dump(2) + "\n");
    return outcome;
  } catch (const MachineError&) {
    throw;
  } catch (const UserError& error) {  // a folder that cannot be written, for example: not the settings' fault
    throw std::runtime_error(error.what());
  }
}

}  // namespace tearless::engine
