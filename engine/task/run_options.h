// All settings of a run, and the two texts they make: the canonical one, whose hash is the run's id, and the local one.
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

/// Goes up by hand whenever the same settings would give other results; cells of older numbers are then stale.
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

/// What describes `options`, as base/settings.h wants it; `options` must outlive it.
Describe description_of(RunOptions& options);

/// Reads settings; the data paths among them are made absolute: relative ones start at folders[key] where given, else
/// at `folder`. UserError for anything wrong in one setting or between several.
RunOptions read_run_options(const WrittenSettings& written, const std::filesystem::path& folder,
                            const std::map<std::string, std::string>& folders);

/// The settings in dir/run.toml and dir/local.toml. UserError where run.toml was changed since it was written (where
/// the folder's name is not its hash).
RunOptions read_run_directory(const std::filesystem::path& dir);

std::string canonical_text(RunOptions& options);
std::string local_text(RunOptions& options);

/// The same run cut down to a few updates and one evaluation, to show that its settings work.
RunOptions smoke(RunOptions options);

}  // namespace tearless::engine
