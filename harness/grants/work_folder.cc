#include "harness/grants/work_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/settings.h"
#include "base/sys.h"
#include "harness/runs/attempt_files.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Of our own unfinished files: of a killed process the next one replaces them, and others take them for temporary.
constexpr const char* kUnfinished = ".tmp0";

void link_to(const fs::path& target, const fs::path& link) {
  if (sys::symlink(target.c_str(), link.c_str()) != 0) fail_errno("make the link", link);
}

bool has_sealed_manifest(const fs::path& checkpoint) {
  try {
    const json manifest = json::parse(read_file(checkpoint / "manifest.json"));
    return manifest.is_object() && manifest.contains("sha256");
  } catch (const std::exception&) {
    return false;
  }
}

void copy_bytes(const fs::path& from, const fs::path& to) {
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0 && errno == ENOENT) return;
  if (in < 0) fail_errno("read", from);
  const std::unique_ptr<const int, void (*)(const int*)> close_in(&in, [](const int* fd) { ::close(*fd); });
  const int out = sys::open_for_writing(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  if (out < 0) fail_errno("write", to);
  const std::unique_ptr<const int, void (*)(const int*)> close_out(&out, [](const int* fd) { ::close(*fd); });
  std::vector<char> buffer(1 << 20);
  while (true) {
    const ssize_t n = ::read(in, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("read", from);
    if (n == 0) break;
    for (ssize_t written = 0; written < n;) {
      const ssize_t more = sys::write(out, buffer.data() + written, static_cast<size_t>(n - written));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) fail_errno("write", to);
      written += more;
    }
  }
  struct stat info {};  // when metrics.jsonl was written tells what an attempt has lost
  if (::fstat(in, &info) != 0) return;
  const std::array<timespec, 2> times = {info.st_atim, info.st_mtim};
  ::futimens(out, times.data());
}

void copy_tree(const fs::path& from, const fs::path& to, bool link) {
  std::error_code gone;
  const fs::file_type type = fs::symlink_status(from, gone).type();
  if (type == fs::file_type::regular) return put_file(from, to, link);
  if (type != fs::file_type::directory) return;
  make_folders_unsynced(to);
  for (const fs::path& entry : entries_of(from)) {
    if (!is_temporary(entry.filename().string())) copy_tree(entry, to / entry.filename(), link);
  }
}

// A folder appears whole: a checkpoint that a kill cut in half must not have its name.
void replace_tree(const fs::path& from, const fs::path& to, bool link) {
  if (!fs::is_directory(from)) return copy_tree(from, to, link);
  const fs::path fresh = to.string() + kUnfinished;
  remove_recursively(fresh);
  copy_tree(from, fresh, link);
  remove_recursively(to);
  rename_file(fresh, to);
}

}  // namespace

bool stays_behind(const fs::path& entry) {
  constexpr std::array<std::string_view, 5> kAttemptsOwn = {"run.toml", "local.toml", "lock", "attempts", "DONE"};
  const std::string name = entry.filename();
  std::error_code gone;
  return std::ranges::find(kAttemptsOwn, name) != kAttemptsOwn.end() || is_temporary(name) ||
         fs::is_symlink(entry, gone);
}

void put_file(const fs::path& from, const fs::path& to, bool link) {
  struct stat old {
  }, there{};
  if (::lstat(from.c_str(), &old) != 0) return;
  // rename() of one name of a file to another of its names does nothing, and would leave the first.
  const bool is_it = ::lstat(to.c_str(), &there) == 0 && old.st_dev == there.st_dev && old.st_ino == there.st_ino;
  if (is_it) return;
  const fs::path fresh = to.string() + kUnfinished;
  remove_file(fresh);
  if (!link || sys::link(from.c_str(), fresh.c_str()) != 0) copy_bytes(from, fresh);
  if (fs::exists(fresh)) rename_file(fresh, to);
}

void copy_state(const RunDirectory& from, const RunDirectory& to) {
  make_folders_unsynced(to.checkpoints());
  for (const fs::path& checkpoint : entries_of(from.checkpoints())) {
    if (!checkpoint.filename().string().starts_with("step-")) continue;  // tmp-: of a writer that was killed
    replace_tree(checkpoint, to.checkpoints() / checkpoint.filename(), has_sealed_manifest(checkpoint));
  }
  for (const fs::path& entry : entries_of(from.root())) {
    if (stays_behind(entry) || entry == from.checkpoints()) continue;
    replace_tree(entry, to.root() / entry.filename(), /*link=*/false);
  }
}

std::string absolute_paths_in(const std::string& local, const fs::path& folder) {
  std::map<std::string, json> values = parse_toml_settings(local, "local.toml").values;
  bool changed = false;
  for (auto& [key, value] : values) {
    if (!value.is_string() || value == "") continue;
    const fs::path path = value.get<std::string>();
    std::error_code unreadable;
    if (path.is_absolute() || !fs::exists(folder / path, unreadable)) continue;
    value = fs::absolute(folder / path).lexically_normal().string();
    changed = true;
  }
  if (!changed) return local;
  std::string text;
  for (const auto& [key, value] : values) text += fmt::format("{} = {}\n", key, toml_value(value));
  return text;
}

RunDirectory make_work_folder(const Workspace& workspace, const Grant& grant, std::string_view who,
                              const fs::path& lock) {
  const RunDirectory run = workspace.run(grant.id);
  const fs::path attempt = run.attempt(grant.attempt), fresh = attempt / fmt::format("making.{}", who),
                 work = attempt / fmt::format("work.{}", who);
  const RunDirectory inside(fresh / grant.id);
  remove_recursively(fresh);
  make_folders_unsynced(inside.attempts());
  copy_state(grant.from == 0 ? run : work_of(run, grant.from), inside);
  write_atomically(inside.settings(), grant.settings);
  replace_unsynced(inside.local(), absolute_paths_in(grant.local, run.root()));
  link_to(fs::absolute(lock), inside.lock());
  link_to("../../..", inside.attempt(grant.attempt));
  for (const auto& [id, origin] : grant.origins) link_to(fs::path("../../../..") / id, fresh / id);
  // What the program will sync in it must not be lost with its name, nor be of a run without settings.
  sync_folder(inside.root());
  sync_folder(fresh);
  rename_file(fresh, work);
  sync_folder(attempt);
  return RunDirectory(work / grant.id);
}

}  // namespace tearless::harness
