#include "harness/launch/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fault.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "base/sys.h"
#include "base/time.h"
#include "harness/launch/attempt_log.h"
#include "harness/launch/memory_events.h"
#include "harness/runs/attempt_files.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;  // the wall clock may be set back during a grace time

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, kStallSignal}) ::sigaddset(&set, signal);
  return set;
}

// Runs in the forked child. Only async-signal-safe functions are allowed between fork and exec.
[[noreturn]] void become_program(const char* program, const char* folder, pid_t supervisor, int output,
                                 const cpu_set_t& cores) {
  if (CPU_COUNT(&cores) > 0) ::sched_setaffinity(0, sizeof cores, &cores);
  ::setpgid(0, 0);  // so that the supervisor can kill processes that the program leaves behind
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);  // the supervisor died before prctl
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::array<const char*, 4> arguments = {program, "train", folder, nullptr};
  sys::execve(program, const_cast<char* const*>(arguments.data()), environ);
  ::dprintf(STDERR_FILENO, "cannot start %s: %s\n", program, std::strerror(errno));
  ::_exit(127);
}

// The cores that start.json names; none: the program is not bound.
cpu_set_t cores_in(const json& stamp) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const json& core : stamp.value("cores", json::array())) {
    if (const size_t number = core; number < CPU_SETSIZE) CPU_SET(number, &cores);
  }
  return cores;
}

// Standard input from /dev/null; the supervisor's own messages go to the attempt's log.
void redirect(const AttemptLog& log) {
  const int nowhere = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDIN_FILENO);
  ::dup2(log.descriptor(), STDOUT_FILENO);
  ::dup2(log.descriptor(), STDERR_FILENO);
  if (nowhere >= 0) ::close(nowhere);
}

/// Waits for the program's end, copies its output to the log, and forwards requests to stop.
class ProgramWatch {
 public:
  ProgramWatch(pid_t program, int output, AttemptLog& log, std::chrono::seconds grace)
      : program_(program), output_(output), log_(log), grace_(grace) {
    const sigset_t signals = watched_signals();
    signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~ProgramWatch() { ::close(signals_); }

  /// Returns the program's wait status.
  int wait() {
    while (true) {
      int status = 0;
      if (sys::waitpid(program_, &status, WNOHANG) == program_) {
        sys::kill(-program_, SIGKILL);  // its process group: no process may write to the run folder any more
        copy_output();
        return status;
      }
      if (kill_at_ && Clock::now() >= *kill_at_) sys::kill(-program_, SIGKILL);
      std::array<pollfd, 2> events = {pollfd{signals_, POLLIN, 0}, pollfd{output_, POLLIN, 0}};
      ::poll(events.data(), is_open_ ? 2 : 1, kMaxWait);
      take_signals();
      copy_output();
    }
  }

  /// "stop" or "stall" if the program was asked to end, else "".
  const std::string& asked() const { return asked_; }

 private:
  static constexpr int kMaxWait = 1000;  // milliseconds between checks of the grace time

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      const auto signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGTERM || signal == SIGINT || signal == kStallSignal)
        ask(signal == kStallSignal ? "stall" : "stop");
    }
  }

  void ask(const char* why) {
    if (asked_.empty()) asked_ = why;
    sys::kill(program_, SIGTERM);
    if (!kill_at_) kill_at_ = Clock::now() + grace_;
  }

  void copy_output() {
    char buffer[1 << 16];
    // Bounded, so that signals are handled even if the program never stops printing.
    for (int rounds = 0; is_open_ && rounds < 64; ++rounds) {
      const ssize_t n = ::read(output_, buffer, sizeof buffer);
      if (n > 0) log_.append({buffer, static_cast<size_t>(n)});
      if (n == 0) is_open_ = false;
      if (n < 0 && errno != EINTR) return;
    }
  }

  pid_t program_;
  int output_;
  AttemptLog& log_;
  std::chrono::seconds grace_;
  int signals_ = -1;
  bool is_open_ = true;
  std::string asked_;
  std::optional<Clock::time_point> kill_at_;
};

bool is_disk_full(const fs::path& folder) {
  constexpr uint64_t kNothing = 1 << 20;  // bytes; less than any checkpoint needs
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return false;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize < kNothing || (info.f_files > 0 && info.f_favail == 0);
}

}  // namespace

int supervise(const Supervision& supervision) {
  fault::begin(fault::kSupervisor);
  const sigset_t signals = watched_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);  // a signal must not end this process before exit.json is written

  if (supervision.ends_with_launcher) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const RunDirectory run(fs::absolute(supervision.run));
  std::optional<LockFile> lock = claim(run);
  if (!lock) return kNoAttempt;
  // The next service finds an attempt by its lock. One that had no lock when its service ended is queued again, or
  // cancelled, and must not begin.
  if (supervision.launcher != 0 && ::getppid() != supervision.launcher) return kNoAttempt;
  lock->share_with_children();
  const int64_t number = run.make_attempt();
  const fs::path attempt = run.attempt(number);
  write_start(run, number, supervision.stamp);
  AttemptLog log(attempt / "log.txt", {});
  redirect(log);
  ::setenv(kAttemptVariable, std::to_string(number).c_str(), 1);
  ::setenv(kLockVariable, std::to_string(lock->descriptor()).c_str(), 1);
  const int64_t memory_kills_before = memory_kills();

  std::array<int, 2> output{};
  const std::string program = supervision.program.string();
  if (::pipe2(output.data(), O_CLOEXEC) != 0) {
    throw MachineError(fmt::format("cannot start {}: {}", program, std::strerror(errno)));
  }
  ::fcntl(output[0], F_SETFL, O_NONBLOCK);
  const pid_t self = ::getpid();
  const cpu_set_t cores = cores_in(supervision.stamp);
  const pid_t child = sys::fork();
  if (child < 0) throw MachineError(fmt::format("cannot start {}: {}", program, std::strerror(errno)));
  if (child == 0) become_program(program.c_str(), run.root().c_str(), self, output[1], cores);
  ::close(output[1]);
  ::setpgid(child, child);

  ProgramWatch watch(child, output[0], log, std::chrono::seconds(supervision.grace_seconds));
  const int status = watch.wait();
  const std::vector<std::string> unread = sentences_of(read_metrics(run, 0).unread);
  if (fs::exists(run.done())) {  // else the last line of the log says why it failed
    for (const std::string& sentence : unread) log.append(fmt::format("tearless: {}\n", sentence));
  }
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + signal;
  json end = {{"code", code},
              {"signal", signal},
              {"asked", watch.asked()},
              {"memory_kills", memory_kills() - memory_kills_before},
              {"disk_full", is_disk_full(run.root()) ? 1 : 0},
              {"ended_at", utc_now()}};
  if (!unread.empty()) end["unread"] = unread;
  write_atomically(attempt / "exit.json", sealed(std::move(end)));
  return kSupervised;
}

}  // namespace tearless::harness
