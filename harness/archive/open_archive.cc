#include "harness/archive/open_archive.h"

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "harness/archive/archive.h"
#include "harness/folders/rebuild.h"
#include "harness/runs/workspace.h"
#include "harness/store/workspace_format.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

fs::path cache_of_archives() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (cache && *cache) return fs::path(cache) / "tearless/archives";
  if (home && *home) return fs::path(home) / ".cache/tearless/archives";
  fail("an archive is unpacked into the user's cache, and there is none: set XDG_CACHE_HOME");
}

void make_workspace(const fs::path& archive, const fs::path& folder) {
  unpack(archive, folder);
  const RebuildReport report = rebuild(Workspace(folder));
  if (!report.passed_over.empty()) fail("{} is damaged: {}", archive.string(), report.passed_over.front());
  if (report.runs + report.sweeps == 0) fail("{} holds no results", archive.string());
}

fs::path open_archive(const fs::path& archive) {
  const fs::path cache = cache_of_archives();
  const fs::path folder = cache / sha256_of_file(archive).substr(0, 16);
  const fs::path name = folder / kArchiveName;
  make_folders(cache);
  const LockFile alone = LockFile::acquire(cache / "lock");
  if (!fs::exists(name) || has_earlier_database(Workspace(folder))) {  // the name is written last
    remove_recursively(folder);
    try {
      make_workspace(archive, folder);
    } catch (const std::exception&) {
      remove_recursively(folder);
      throw;
    }
  }
  const std::string path = fs::absolute(archive).lexically_normal().string();
  if (read_if_there(name) != path) replace_unsynced(name, path);
  return folder;
}

}  // namespace

bool is_archive(const fs::path& workspace) {
  std::error_code unreachable;  // who opens it says so
  return fs::is_regular_file(workspace, unreachable);
}

fs::path open_workspace(const fs::path& named) {
  if (is_archive(named)) return open_archive(named);
  std::error_code unreachable;
  if (!fs::exists(named, unreachable) && has_archive_name(named)) fail("{}: there is no such archive", named.string());
  return named;
}

void with_unpacked(const fs::path& archive, const std::function<void(const fs::path&)>& use) {
  const fs::path cache = cache_of_archives(), folder = cache / "verifying";
  make_folders(cache);
  const LockFile alone = LockFile::acquire(cache / "verifying.lock");
  remove_recursively(folder);  // of one that was killed
  try {
    unpack(archive, folder);
    use(folder);
  } catch (const std::exception&) {
    remove_recursively(folder);
    throw;
  }
  remove_recursively(folder);
}

}  // namespace tearless::harness
