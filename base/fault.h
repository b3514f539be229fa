// Fault injection for the tests of crashes, full disks and power cuts. The system calls of our sources that change
// files, locks or processes go through base/sys.h, which reports them here first; those that make the service's socket
// (umask, bind) do not, for no run depends on it. Without the environment variable TEARLESS_FAULTS this costs one
// branch a call and does nothing.
//
// With it, the variable names a fault plan: a file that all processes of one test map into memory (FaultPlan below).
//   1. Each reported call takes the next value of a counter that all processes share. That value is the call's point.
//   2. At the points that the plan names, the plan's action is taken: processes are killed (SIGKILL) or the call fails.
//   3. If the plan has a shadow folder, each fsync copies the data it made durable to that folder. power_cut() rebuilds
//      from it what a power cut would leave on disk.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>

namespace tearless::fault {

inline constexpr const char* kPlanVariable = "TEARLESS_FAULTS";

/// The role of a process, one bit each, so that a plan can select some of them. kProgram is the training program,
/// kDaemon `tearless daemon`, kHarness any other command of tearless, kStarting a spawned process that has not called
/// begin() yet, kWorker `tearless worker`. (8 is kCallingProcess.)
enum Role : uint32_t {
  kHarness = 1,
  kSupervisor = 2,
  kProgram = 4,
  kDaemon = 16,
  kStarting = 32,
  kWorker = 64,
  kEverybody = 119
};

/// The kind of a call, one bit each, so that a plan can count some kinds and ignore others.
enum Kind : uint32_t {
  kOpen = 1,
  kWrite = 2,
  kSync = 4,
  kRename = 8,
  kRemove = 16,
  kMakeFolder = 32,
  kCut = 64,    // ftruncate
  kFork = 128,  // and the start of a child (harness/children)
  kExec = 256,
  kKill = 512,
  kWait = 1024,
  kLock = 2048,
  kCommit = 4096,   // of a database transaction
  kPhase = 8192,    // the training program enters a phase: starting, preparing, training, evaluating, publishing
  kAnswer = 16384,  // the service has read a request, or has carried it out and is to answer
  kEveryKind = 32767,
};

enum Action : int32_t {
  kCount = 0,   // number the points, do nothing else
  kDie = 1,     // kill `victims`
  kFail = 2,    // the calls from `first` to `last` fail with `error`
  kSignal = 3,  // the process sends itself the signal `error`, and continues if it survives
  kAsk = 4,     // as kSignal, after sending SIGTERM to the parent, which is the supervisor
};

/// A bit of FaultPlan::victims besides the roles: the process that reached the point.
inline constexpr uint32_t kCallingProcess = 8;

/// The memory-mapped plan. Test code fills it in before it starts the first process.
struct FaultPlan {
  static constexpr int kMaxProcesses = 512;
  struct Process {
    std::atomic<int32_t> pid;
    std::atomic<uint32_t> role;
    std::atomic<int64_t> start_ticks;  // with pid, identifies the process (base/process_name.h)
  };

  std::atomic<int64_t> points;  // counted so far
  std::atomic<int64_t> hits;    // how often the action was taken
  int64_t first, last;          // range of points, from 1, at which the action is taken
  uint32_t kinds;               // bits of Kind: the calls that are counted
  uint32_t roles;               // bits of Role: the processes whose calls are counted
  int32_t action;               // an Action
  int32_t error;                // errno of kFail, signal number of kSignal and kAsk
  uint32_t victims;             // of kDie: bits of Role, or kCallingProcess
  char phase[32];               // not empty: count only the kPhase call that enters this phase
  char shadow[512];             // not empty: the folder that receives copies of durable data
  std::atomic<int32_t> processes;
  Process process[kMaxProcesses];
};

namespace detail {
extern FaultPlan* plan;
int at_point(Kind kind, const char* what);
}  // namespace detail

/// Maps the plan, if TEARLESS_FAULTS names one, and registers the process under `role`. main() calls it first; a second
/// call changes the role.
void begin(Role role);

/// Reports a call before it is made. Returns 0 if the call may proceed, else the errno with which it must fail. Does
/// not return if the plan kills this process. `what` is the call's path, or the name of the phase.
inline int point(Kind kind, const char* what) { return detail::plan ? detail::at_point(kind, what) : 0; }

/// True if a plan is active. Writes are then made in two halves, with a point between them.
inline bool is_active() { return detail::plan != nullptr; }

/// Registers a forked child, which is about to exec the training program. Called in the child.
void note_child();

/// Registers a spawned child, whose role is not known until it calls begin(). Called in the parent: a child that nobody
/// knows would outlive a power cut.
void note_spawned(pid_t pid);

/// Notes that a file's bytes, or a folder's directory entries, are durable now. Called after each fsync.
void synced(const std::filesystem::path& path);
void synced(int descriptor);

/// Rebuilds in `to` what a power cut would leave of the folder `from`: each folder's names and each file's bytes as of
/// its last fsync. For tests. REQUIRES: no process of the test is running.
void power_cut(const std::filesystem::path& shadow, const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tearless::fault
