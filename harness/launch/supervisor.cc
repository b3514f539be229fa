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

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
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
#include "harness/launch/processes.h"
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
  ::setpgid(0, 0);  // its processes are killed together
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

// Of the variables that a run has from its submission the stamp names only the names.
json with_values(json stamp) {
  const auto names = stamp.find("environment");
  if (names == stamp.end()) return stamp;
  json variables = json::object();
  for (const json& name : *names) {
    if (const char* value = std::getenv(name.get<std::string>().c_str())) variables[name] = value;
  }
  *names = variables;
  return stamp;
}

// A program that prints a secret, such as a client that was refused, leaves it in its log, whose last line becomes the
// run's reason. Nobody appends to the log any more.
void hide_secrets(const fs::path& log, const json& names) {
  constexpr size_t kShortest = 4;  // "1" is in many texts
  const std::string text = read_file(log);
  std::string shown = text;
  for (const json& name : names) {
    const char* const value = std::getenv(name.get<std::string>().c_str());
    const std::string hidden = value ? value : "", instead = "$" + name.get<std::string>();
    if (hidden.size() < kShortest) continue;
    for (size_t at = 0; (at = shown.find(hidden, at)) != std::string::npos; at += instead.size()) {
      shown.replace(at, hidden.size(), instead);
    }
  }
  if (shown != text) write_atomically(log, shown);
}

// What attempts, or services, that were killed had not finished. REQUIRES: the run's lock is held, so nobody writes one
// now.
void remove_temporaries(const RunDirectory& run) {
  std::vector<fs::path> left;
  std::error_code unreadable;
  for (fs::recursive_directory_iterator at(run.root(), unreadable), end; at != end; at.increment(unreadable)) {
    const bool is_file = at->is_regular_file(unreadable);
    if (is_file && is_temporary(at->path().filename().string())) left.push_back(at->path());
  }
  for (const fs::path& file : left) remove_file(file);
}

// Standard input from /dev/null; the supervisor's own messages go to the attempt's log.
void redirect(const AttemptLog& log) {
  const int nowhere = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDIN_FILENO);
  ::dup2(log.descriptor(), STDOUT_FILENO);
  ::dup2(log.descriptor(), STDERR_FILENO);
  if (nowhere >= 0) ::close(nowhere);
}

/// Waits for the program's end and for that of what it leaves running, copies their output to the log, and forwards
/// requests to stop. REQUIRES: this process is a subreaper.
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
    while (!status_) {
      reap();
      if (status_) break;
      if (is_overdue()) sys::kill(-program_, SIGKILL);
      listen(kMaxWait);
    }
    end_what_is_left();
    copy_output();
    return *status_;
  }

  /// "stop" or "stall" if the program was asked to end, else "".
  const std::string& asked() const { return asked_; }

 private:
  static constexpr int kMaxWait = 1000;                              // milliseconds between checks of the grace time
  static constexpr int kBetweenLooks = 20;                           // milliseconds between two looks at what is left
  static constexpr std::chrono::milliseconds kGraceOfTheRest{1000};  // launchers wait two seconds longer than `grace`
  static constexpr std::chrono::seconds kMaxEnd{10};

  // False once no process is left: those whose parents have ended are our children.
  bool reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = sys::waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid == program_) status_ = status;
    }
    return pid == 0 || errno != ECHILD;
  }

  // No process may write to the run's folder any more, whatever session it is in. What cannot be ended (it belongs to
  // another user, or hangs in a system call) keeps the run's lock if it has that.
  void end_what_is_left() {
    const Clock::time_point begun = Clock::now();
    std::set<int64_t> known;
    while (reap()) {
      if (Clock::now() >= begun + kMaxEnd) {
        return log_.append("tearless supervise: some of these could not be ended\n");
      }
      const std::set<int64_t> left = ProcessTree().below(::getpid());
      std::vector<int64_t> found;
      std::ranges::set_difference(left, known, std::back_inserter(found));
      if (const std::string names = names_of(found); !names.empty()) {
        log_.append(fmt::format("{}{}; it is ended too\n", kLeftBehind, names));
      }
      for (const int64_t pid : found) sys::kill(static_cast<pid_t>(pid), SIGTERM);
      known.insert(found.begin(), found.end());
      if (is_overdue() || Clock::now() >= begun + kGraceOfTheRest) {
        for (const int64_t pid : left) sys::kill(static_cast<pid_t>(pid), SIGKILL);
      }
      listen(kBetweenLooks);
    }
  }

  bool is_overdue() const { return kill_at_ && Clock::now() >= *kill_at_; }

  void listen(int milliseconds) {
    std::array<pollfd, 2> events = {pollfd{signals_, POLLIN, 0}, pollfd{output_, POLLIN, 0}};
    ::poll(events.data(), is_open_ ? 2 : 1, milliseconds);
    take_signals();
    copy_output();
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      const auto signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGTERM || signal == SIGINT || signal == kStallSignal)
        ask(signal == kStallSignal ? "stall" : "stop");
    }
  }

  void ask(const char* why) {
    if (status_) {  // it has ended by itself; the rest shall end at once
      kill_at_ = Clock::now();
      return;
    }
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
  std::optional<int> status_;  // of the program, once it has ended
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
  const int64_t number = supervision.attempt > 0 ? supervision.attempt : run.make_attempt();
  const fs::path attempt = run.attempt(number);
  remove_temporaries(run);
  json stamp = with_values(supervision.stamp);
  stamp["program_file"] = file_hash(supervision.program);
  write_start(run, number, stamp);
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
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what the program leaves running becomes our child, whatever session it is in
  const pid_t self = ::getpid();
  const cpu_set_t cores = cores_in(supervision.stamp);
  // No ChildRequest: the program inherits the lock, dies with this process, and writes to its log why it cannot start.
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
  for (const char* name : {"measured.json", "arithmetic"}) {  // a power cut must not leave their checksums alone
    const int file = ::open((attempt / name).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    sys::fsync(file);
    ::close(file);
  }
  if (stamp.contains("secrets")) hide_secrets(attempt / "log.txt", stamp["secrets"]);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + signal;
  json end = {{"code", code},
              {"signal", signal},
              {"asked", watch.asked()},
              {"memory_kills", memory_kills() - memory_kills_before},
              {"disk_full", is_disk_full(run.root()) ? 1 : 0},
              {"ended_at", utc_now()},
              {"files", checksums_for_exit(run, number)}};
  if (!unread.empty()) end["unread"] = unread;
  write_atomically(attempt / "exit.json", sealed(std::move(end)));
  return kSupervised;
}

}  // namespace tearless::harness
