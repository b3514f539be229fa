#include "base/fault.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "base/process_name.h"

namespace tearless::fault {
namespace fs = std::filesystem;
namespace {

uint32_t own_role = kProgram;

// Adds a process to the plan's list of processes. A process that is listed already (its parent listed it, or it has
// exec'd another program) changes its role, unless it has called begin() before its parent came to list it.
void enlist(pid_t pid, uint32_t role) {
  if (!detail::plan) return;
  const int64_t start_ticks = process_start_ticks(pid).value_or(0);
  const int known = std::min(detail::plan->processes.load(), FaultPlan::kMaxProcesses);
  for (int i = 0; i < known; ++i) {
    FaultPlan::Process& entry = detail::plan->process[i];
    if (entry.pid != pid || entry.start_ticks != start_ticks) continue;
    if (role != kStarting) entry.role = role;
    return;
  }
  const int place = detail::plan->processes.fetch_add(1);
  if (place >= FaultPlan::kMaxProcesses) return;
  FaultPlan::Process& entry = detail::plan->process[place];
  entry.role = role;
  entry.start_ticks = start_ticks;
  entry.pid = pid;
}

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

void kill_victims() {
  const uint32_t victims = detail::plan->victims;
  const int count = std::min(detail::plan->processes.load(), FaultPlan::kMaxProcesses);
  for (int i = 0; i < count; ++i) {
    const FaultPlan::Process& entry = detail::plan->process[i];
    const int32_t pid = entry.pid;
    if (pid == 0 || pid == ::getpid() || (entry.role & victims) == 0) continue;
    // The pid may have been reused since; the start time tells the processes apart.
    if (process_start_ticks(pid) == std::optional(entry.start_ticks.load())) ::kill(pid, SIGKILL);
  }
  if ((victims & (kCallingProcess | own_role)) != 0) die();
}

// --- the shadow folder ---------------------------------------------------------------------------------------------
//
//   names-INODE  the directory entries of a folder as of its last fsync: a line "d INODE NAME", "f INODE NAME" or
//                "l INODE NAME" (a symbolic link) each
//   to-INODE     where a symbolic link leads
//   bytes-INODE  the content and the permissions of a file as of its last fsync
//   keep-INODE   a hard link to the file
//
// INODE is the number, of a folder with the time at which it was made: the number of one that is gone may become that
// of another, which would have its names.

std::string inode_name(const struct statx& info) {
  const std::string number = std::to_string(info.stx_ino);
  if (!S_ISDIR(info.stx_mode)) return number;
  return number + "." + std::to_string(info.stx_btime.tv_sec) + "." + std::to_string(info.stx_btime.tv_nsec);
}

bool look_at(int folder, const fs::path& path, int flags, struct statx& info) {
  return ::statx(folder, path.c_str(), flags, STATX_BASIC_STATS | STATX_BTIME, &info) == 0;
}

void copy_bytes(int from, const fs::path& to) {
  const fs::path temporary = to.string() + "." + std::to_string(::getpid());
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    char buffer[1 << 16];
    off_t offset = 0;
    for (ssize_t n; (n = ::pread(from, buffer, sizeof buffer, offset)) > 0; offset += n) out.write(buffer, n);
  }
  fs::rename(temporary, to);
}

void copy_target(const fs::path& link, const fs::path& to) {
  std::error_code gone;
  const fs::path target = fs::read_symlink(link, gone);
  if (gone) return;
  const fs::path temporary = to.string() + "." + std::to_string(::getpid());
  std::ofstream(temporary, std::ios::trunc) << target.string();
  fs::rename(temporary, to);
}

void copy_names(const fs::path& folder, const fs::path& to) {
  const fs::path temporary = to.string() + "." + std::to_string(::getpid());
  {
    std::ofstream out(temporary, std::ios::trunc);
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(folder, gone)) {
      struct statx info {};
      if (!look_at(AT_FDCWD, entry.path(), AT_SYMLINK_NOFOLLOW, info)) continue;
      const char type = S_ISDIR(info.stx_mode) ? 'd' : S_ISLNK(info.stx_mode) ? 'l' : 'f';
      if (type == 'l') copy_target(entry.path(), to.parent_path() / ("to-" + inode_name(info)));
      out << type << ' ' << inode_name(info) << ' ' << entry.path().filename().string() << '\n';
    }
  }
  fs::rename(temporary, to);
}

void note_durable(int descriptor) {
  const fs::path shadow = detail::plan->shadow;
  struct statx info {};
  if (!look_at(descriptor, "", AT_EMPTY_PATH, info)) return;
  const std::string name = inode_name(info);
  const std::string opened = "/proc/self/fd/" + std::to_string(descriptor);
  if (S_ISDIR(info.stx_mode)) return copy_names(opened, shadow / ("names-" + name));
  // The hard link keeps the inode number from being reused for another file.
  ::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, (shadow / ("keep-" + name)).c_str(), AT_SYMLINK_FOLLOW);
  const int readable = ::open(opened.c_str(), O_RDONLY | O_CLOEXEC);
  if (readable < 0) return;
  copy_bytes(readable, shadow / ("bytes-" + name));
  ::chmod((shadow / ("bytes-" + name)).c_str(), info.stx_mode & 07777);  // copy_file() keeps it
  ::close(readable);
}

// `made`: files by their inode, of which there may be several names.
void rebuild_folder(const fs::path& shadow, const std::string& inode, const fs::path& to,
                    std::map<std::string, fs::path>& made) {
  fs::create_directories(to);
  std::ifstream names(shadow / ("names-" + inode));
  char type = 0;
  std::string child, name;
  while (names >> type >> child && names.get() == ' ' && std::getline(names, name)) {
    if (type == 'd') {
      rebuild_folder(shadow, child, to / name, made);
    } else if (type == 'l') {
      std::string target;
      std::getline(std::ifstream(shadow / ("to-" + child)), target);
      if (!target.empty()) fs::create_symlink(target, to / name);
    } else if (const auto [other, is_first] = made.try_emplace(child, to / name); !is_first) {
      fs::create_hard_link(other->second, to / name);
    } else if (fs::exists(shadow / ("bytes-" + child))) {
      fs::copy_file(shadow / ("bytes-" + child), to / name);
    } else {
      std::ofstream(to / name);  // the name is durable, the content never was
    }
  }
}

}  // namespace

FaultPlan* detail::plan = nullptr;

int detail::at_point(Kind kind, const char* what) {
  if ((plan->kinds & kind) == 0 || (plan->roles & own_role) == 0) return 0;
  if (plan->phase[0] != 0 && (kind != kPhase || std::strcmp(plan->phase, what) != 0)) return 0;
  const int64_t number = plan->points.fetch_add(1) + 1;
  if (plan->action == kCount || number < plan->first || number > plan->last) return 0;
  plan->hits.fetch_add(1);
  if (plan->action == kFail) return plan->error;
  if (plan->action == kAsk) {
    ::kill(::getppid(), SIGTERM);
    ::usleep(50'000);  // the supervisor must handle SIGTERM before this process ends
  }
  if (plan->action == kSignal || plan->action == kAsk) {
    ::kill(::getpid(), plan->error);
    return 0;
  }
  kill_victims();
  return 0;
}

void begin(Role role) {
  own_role = role;
  if (detail::plan) return enlist(::getpid(), role);
  const char* file = std::getenv(kPlanVariable);
  if (!file || !*file) return;
  const int fd = ::open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* mapped = ::mmap(nullptr, sizeof(FaultPlan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) return;
  detail::plan = static_cast<FaultPlan*>(mapped);
  enlist(::getpid(), role);
  point(kPhase, "starting");
}

void note_child() {
  own_role = kProgram;
  enlist(::getpid(), kProgram);
}

void note_spawned(pid_t pid) { enlist(pid, kStarting); }

void synced(int descriptor) {
  if (!detail::plan || detail::plan->shadow[0] == 0) return;
  note_durable(descriptor);
}

void synced(const fs::path& path) {
  if (!detail::plan || detail::plan->shadow[0] == 0) return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  synced(fd);
  ::close(fd);
}

void power_cut(const fs::path& shadow, const fs::path& from, const fs::path& to) {
  struct statx info {};
  std::map<std::string, fs::path> made;
  if (look_at(AT_FDCWD, from, 0, info)) rebuild_folder(shadow, inode_name(info), to, made);
}

}  // namespace tearless::fault
