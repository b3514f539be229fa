// The settings of a derived run (engine/derived/derived_kind.h), and the derived run as an attempt makes it.
//
// A derived run names the run that it derives from: `derived.of` is that run's id, and both folders are in one folder.
// That run is a trained one, or derives itself from one: a score of a decoding.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "base/settings.h"
#include "engine/derived/derived_kind.h"
#include "engine/run/run_options.h"

namespace tearless::engine {

struct DerivedOptions {
  std::string of;    // the id of the run that it derives from
  std::string name;  // its scores begin with it
  std::string kind = "decode";

  /// The chosen kind, with the values of its settings.
  DerivedKind& chosen() const { return *kinds_.find(kind); }

 private:
  Kinds<DerivedKind> kinds_ = derived_kinds();
};
void describe(SettingsVisitor& visitor, DerivedOptions& options);

/// A derived run and the runs that it derives from.
struct DerivedRun {
  RunOptions trained;
  std::vector<DerivedOptions> chain;  // the first derives from the trained run, each other one from the one before

  DerivedKind& kind() const { return chain.back().chosen(); }
  /// The names that its scores.json will have.
  std::vector<std::string> score_names() const;
  /// The device and threads that it needs.
  ExecutionOptions execution() const { return kind().needs_device() ? trained.run : ExecutionOptions(); }
};

/// Reads the settings of runs that derive one from another, `written.front()` from a trained run with the settings
/// `trained`, and makes their paths absolute: a relative path starts at `folder`. Their `of` is not known yet. Throws
/// UserError for any invalid setting or combination of settings.
std::vector<DerivedOptions> read_derivations(const std::vector<WrittenSettings>& written, const RunOptions& trained,
                                             const std::filesystem::path& folder);

std::string canonical_text(DerivedOptions& options);
/// The settings that results do not depend on: those of the trained run, and paths.
std::string local_text(DerivedRun& run);

bool is_derived(const RunDirectory& run);
/// The run from which the derived run in this folder derives: beside it, or for a copy in another folder of the
/// workspace (`tearless verify-resume`) in ../../runs.
RunDirectory origin_of(const RunDirectory& run, const std::string& of);
/// The settings in the run's folder and in those of the runs that it derives from. Throws UserError if one of these is
/// not there, or its run.toml was changed.
DerivedRun read_derived_run(const RunDirectory& run);

/// Derives the run's result and writes it: outputs, scores.json, DONE; that of a run that diverged is diverged, too,
/// unless its kind reads nothing of what the training left.
/// Throws UserError if something that it reads is gone or changed; nothing is written then.
ExitCode derive(DerivedRun& derived, const RunDirectory& run, int64_t attempt);

}  // namespace tearless::engine
