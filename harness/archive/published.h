// What a copy of results alone, which people commit and send, has of the harness's own files: names of environment
// variables and none of their values, no host, no absolute path of who trained. Of JSON it has the keys that are listed
// in published.cc, so that one which a later version adds is not published unseen. DONE, run.toml, grid.toml, and the
// labels of runs stay as they are: they are what ids and checksums are made of.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/runs/workspace.h"

namespace tearless::harness {

/// A text in which absolute paths of more than one part have only the last one: "no file c" of "no file /a/b/c".
std::string without_folders(std::string_view text);

/// Why a run or an attempt ended, without words that tell of who trained: its machines, the values of its environment,
/// and folders.
std::string published_reason(const RunDirectory& run, const std::string& reason);

/// The text of a file of JSON, without the values of secrets (runs/environment.h), which older builds have kept.
std::string without_secrets(const std::filesystem::path& file);

/// What a copy has of a file of a run; `name`: relative to its folder. UserError if the file is damaged.
std::string published_file(const RunDirectory& run, const std::filesystem::path& name);

/// Writes what a copy has of the folder of a sweep; grid.diff only if it is asked for. Returns the files in which an
/// absolute path stays. UserError if the folder is damaged.
std::vector<std::string> publish_sweep(const Workspace& from, const std::string& id, const Workspace& to,
                                       bool with_diff);

}  // namespace tearless::harness
