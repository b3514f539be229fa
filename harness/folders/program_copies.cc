#include "harness/folders/program_copies.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder)) names.push_back(entry.filename());
  return names;
}

bool is_copy(const Workspace& workspace, const fs::path& program) {
  return program.parent_path().parent_path().lexically_normal() ==
         fs::absolute(workspace.programs()).lexically_normal();
}

}  // namespace

LockFile lock_programs(const Workspace& workspace) {
  make_folders(workspace.root());
  return LockFile::acquire(workspace.programs_lock());
}

std::optional<LockFile> try_lock_programs(const Workspace& workspace) {
  return LockFile::try_acquire(workspace.programs_lock());
}

std::string program_hash(const std::map<std::string, std::string>& sums) {
  Sha256 hash;
  for (const auto& [name, sum] : sums) hash.update(name + " " + sum + "\n");
  return hash.hex().substr(0, 16);
}

std::string fault_of_program(const Workspace& workspace, const fs::path& program) {
  if (!fs::exists(program)) {
    return fmt::format("the training program {} is gone; submit the grid again", program.string());
  }
  if (!is_copy(workspace, program)) return "";
  const fs::path folder = program.parent_path();
  try {
    std::map<std::string, std::string> sums;
    for (const std::string& name : names_in(folder)) sums[name] = sha256_of_file(folder / name);
    if (program_hash(sums) == folder.filename()) return "";
  } catch (const UserError& unreadable) {
    return unreadable.what();
  }
  return fmt::format("the training program {} was changed after it was copied; submit the grid again",
                     program.string());
}

std::string ProgramCheck::fault_of(const Workspace& workspace, const fs::path& program) {
  FileStamps now;
  if (is_copy(workspace, program) && fs::exists(program)) {
    const fs::path folder = program.parent_path();
    for (const std::string& name : names_in(folder)) now.emplace(name, stamp_of(folder / name));
    const auto sound = sound_.find(program);
    if (sound != sound_.end() && sound->second == now) return "";
  }
  std::string fault = fault_of_program(workspace, program);
  if (fault.empty()) sound_[program] = std::move(now);
  return fault;
}

}  // namespace tearless::harness
