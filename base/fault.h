// Faults on purpose: what the tests for crashes and failing disks act through. Every system call that changes something
// outside the process goes through base/sys.h, and sys.h reports it here first. Without the environment variable
// TEARLESS_FAULTS that costs one branch a call and does nothing.
//
// With it, the variable names a plan: a file that all processes of one test map into memory (FaultPlan below).
//   1. Each call takes the next number of one counter that all processes share: its point.
//   2. At the point that the plan names, the plan's action happens: processes die (SIGKILL), or the call fails.
//   3. With a shadow folder, each fsync copies what it made durable there: what a power cut leaves.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

namespace tearless::fault {

inline constexpr const char* kPlanVariable = "TEARLESS_FAULTS";

/// Who a process is, for plans that kill or fail one kind only.
enum Role : uint32_t { kHarness = 1, kSupervisor = 2, kProgram = 4, kEverybody = 7 };

/// What a call does. One bit each: a plan can count some kinds and pass over others.
enum Kind : uint32_t {
  kOpen = 1,
  kWrite = 2,
  kSync = 4,
  kRename = 8,
  kRemove = 16,
  kMakeFolder = 32,
  kCut = 64,
  kFork = 128,
  kExec = 256,
  kKill = 512,
  kWait = 1024,
  kLock = 2048,
  kCommit = 4096,
  kPhase = 8192,
  kEveryKind = 16383,
};

enum Action : int32_t {
  kCount = 0,   // number the points and do nothing
  kDie = 1,     // kill `victims`
  kFail = 2,    // the calls from `first` to `last` fail with `error`
  kSignal = 3,  // the process sends itself the signal `error`, and goes on if it can
  kAsk = 4,     // the same, after it has sent its parent, the supervisor, SIGTERM
};

/// Victims besides the roles: the process that comes to the point.
inline constexpr uint32_t kWhoIsThere = 8;

struct FaultPlan {
  static constexpr int kMostProcesses = 512;
  struct Process {
    std::atomic<int32_t> pid;
    std::atomic<uint32_t> role;
    std::atomic<int64_t> start_ticks;
  };

  std::atomic<int64_t> points;  // taken so far
  std::atomic<int64_t> hits;    // how often the action happened
  int64_t first, last;          // points, from 1, at which it happens
  uint32_t kinds;               // that are counted
  uint32_t roles;               // whose calls are counted
  int32_t action;
  int32_t error;     // errno, or a signal
  uint32_t victims;  // roles, or kWhoIsThere
  char phase[32];    // kPhase: only where this phase begins; "" any
  char shadow[512];  // "" or the folder for what was made durable
  std::atomic<int32_t> processes;
  Process process[kMostProcesses];
};

namespace detail {
extern FaultPlan* plan;
int at_point(Kind kind, const char* what);
}  // namespace detail

/// Makes the plan known. Called by main before anything else; a second call changes the role.
void begin(Role role);

/// A point: 0 to go on, else the errno with which the call fails. May not return. `what`: a path or a phase.
inline int point(Kind kind, const char* what) { return detail::plan ? detail::at_point(kind, what) : 0; }

/// True where a plan is active: a write is then made in two halves, with a point between them.
inline bool is_active() { return detail::plan != nullptr; }

/// After a fork, in the child, which is about to become a program.
void note_child();

/// What is now durable: the bytes of a file, or the names in a folder.
void synced(const std::filesystem::path& path);
void synced(int descriptor);

/// Rebuilds in `to` what a power cut leaves of the folder `from`: of each folder the names, of each file the bytes, as
/// of its last fsync. For tests; no process may be at work.
void power_cut(const std::filesystem::path& shadow, const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tearless::fault
