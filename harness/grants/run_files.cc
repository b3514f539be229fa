#include "harness/grants/run_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/settings.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// What is of an attempt or a machine, or may change when the run is done.
bool is_listed(const fs::directory_entry& entry) {
  constexpr std::array<std::string_view, 6> kOthers = {"DONE",       "attempts", "damaged",
                                                       "local.toml", "lock",     "resume.json"};
  const std::string name = entry.path().filename();
  return std::ranges::find(kOthers, name) == kOthers.end() && !is_temporary(name) && !entry.is_symlink();
}

void list_files(const fs::path& folder, const fs::path& name, std::map<std::string, int64_t>& bytes) {
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (!is_listed(entry)) continue;
    const fs::path inside = name / entry.path().filename();
    if (entry.is_directory()) {
      list_files(entry, inside, bytes);
    } else {
      bytes[inside.string()] = static_cast<int64_t>(entry.file_size());
    }
  }
}

bool has_size(const fs::path& file, int64_t bytes) {
  std::error_code unreadable;
  return fs::file_size(file, unreadable) == static_cast<uintmax_t>(bytes) && !unreadable;
}

}  // namespace

RunFiles files_of(const RunDirectory& run) {
  RunFiles files{.done = sha256_of_file(run.done())};
  list_files(run.root(), "", files.bytes);
  return files;
}

std::string unseen_file(const RunDirectory& run, const RunFiles& files) {
  for (const auto& [name, bytes] : files.bytes) {
    if (!has_size(run.root() / name, bytes)) return (run.root() / name).string();
  }
  try {
    if (sha256_of_file(run.done()) != files.done) return run.done().string();
    const std::string changed = changed_result_file(run, read_done(run).value());
    return changed.empty() ? "" : (run.root() / changed).string();
  } catch (const UserError&) {  // it is not there yet
    return run.done().string();
  }
}

std::map<std::string, RunFiles> origins_of(const Workspace& workspace, std::string settings) {
  std::map<std::string, RunFiles> origins;
  for (std::string of = derived_from(settings); !of.empty(); of = derived_from(settings)) {
    origins[of] = files_of(workspace.run(of));
    settings = read_file(workspace.run(of).settings());
  }
  return origins;
}

}  // namespace tearless::harness
