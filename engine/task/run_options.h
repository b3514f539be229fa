// All settings of a run, and the two texts made of them: the canonical text, whose hash is the run's id, and the local
// text.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/settings.h"
#include "engine/data/options.h"
#include "engine/decode/options.h"
#include "engine/model/options.h"
#include "engine/train/options.h"

namespace tearless::engine {

/// Increase it by hand whenever the same settings would give other results. Stored results with older numbers are then
/// stale.
inline constexpr int64_t kNumerics = 1;

struct RunOptions {
  DataOptions data;
  TextOptions text;
  ModelOptions model;
  TrainOptions train;
  DecodeOptions decode;
  ExecutionOptions run;
};
void describe(SettingsVisitor& visitor, RunOptions& options);

/// The description of `options` for base/settings.h. Borrows `options`.
Describe description_of(RunOptions& options);

/// Reads settings and makes the data paths absolute: a relative path starts at folders[key] if given, else at `folder`.
/// Throws UserError for any invalid setting or combination of settings.
RunOptions read_run_options(const WrittenSettings& written, const std::filesystem::path& folder,
                            const std::map<std::string, std::string>& folders);

/// The settings in dir/run.toml and dir/local.toml. Throws UserError if run.toml was changed (its hash is not the
/// folder's name).
RunOptions read_run_directory(const std::filesystem::path& dir);

/// The settings that results depend on.
std::string canonical_text(RunOptions& options);
/// The settings that results do not depend on: paths, threads, logging.
std::string local_text(RunOptions& options);

/// The same run with a few updates and one evaluation, to test that its settings work.
RunOptions smoke(RunOptions options);

}  // namespace tearless::engine
