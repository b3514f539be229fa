#include "harness/schedule/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/run_directory.h"
#include "base/time.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

// "model name" of the first processor, as results may depend on it.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void write_start(const Supervision& supervision, const fs::path& attempt, int64_t number) {
  json start = supervision.stamp;
  start["attempt"] = number;
  start["supervisor"] = {
      {"pid", ::getpid()}, {"start_ticks", process_start_ticks(::getpid()).value_or(0)}, {"boot_id", boot_id()}};
  start["host"] = host_name();
  start["processor"] = processor_name();
  start["started_at"] = utc_now();
  write_atomically(attempt / "start.json", start.dump(2) + "\n");
}

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

// Only what is safe between fork and exec.
[[noreturn]] void become_program(const char* program, const char* folder, pid_t supervisor) {
  ::setpgid(0, 0);  // so that whatever it leaves behind can be cleared away
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);  // the supervisor died before that took hold
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execl(program, program, "train", folder, static_cast<char*>(nullptr));
  ::dprintf(STDERR_FILENO, "cannot start %s: %s\n", program, std::strerror(errno));
  ::_exit(127);
}

// Standard input from nowhere, output and errors into the attempt's log.
void redirect(const fs::path& log) {
  const int nowhere = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (nowhere < 0 || file < 0) fail("cannot write {}: {}", log.string(), std::strerror(errno));
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  ::close(nowhere);
  ::close(file);
}

// Waits for the program, passing on requests to stop. Its wait status.
int wait_for(pid_t program, int grace_seconds) {
  const sigset_t signals = watched_signals();
  std::time_t kill_at = 0;  // 0: nobody has asked it to stop
  while (true) {
    int status = 0;
    if (::waitpid(program, &status, WNOHANG) == program) return status;
    if (kill_at != 0 && std::time(nullptr) >= kill_at) ::kill(program, SIGKILL);
    const timespec second{1, 0};
    const int signal = ::sigtimedwait(&signals, nullptr, &second);
    if (signal == SIGTERM || signal == SIGINT) {
      ::kill(program, SIGTERM);
      if (kill_at == 0) kill_at = std::time(nullptr) + grace_seconds;
    }
  }
}

}  // namespace

int supervise(const Supervision& supervision) {
  const sigset_t signals = watched_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);  // before anything can be half done

  const RunDirectory run(fs::absolute(supervision.run));
  std::optional<LockFile> lock = LockFile::try_acquire(run.lock());
  if (!lock) return kNoAttempt;
  lock->share_with_children();
  const int64_t number = run.make_attempt();
  const fs::path attempt = run.attempt(number);
  write_start(supervision, attempt, number);
  redirect(attempt / "log.txt");
  ::setenv(kAttemptVariable, std::to_string(number).c_str(), 1);

  const pid_t self = ::getpid();
  const std::string program = supervision.program.string();
  const pid_t child = ::fork();
  if (child < 0) fail("cannot start {}: {}", program, std::strerror(errno));
  if (child == 0) become_program(program.c_str(), run.root().c_str(), self);
  ::setpgid(child, child);

  const int status = wait_for(child, supervision.grace_seconds);
  ::kill(-child, SIGKILL);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + signal;
  const json exit = {{"code", code}, {"signal", signal}, {"ended_at", utc_now()}};
  write_atomically(attempt / "exit.json", exit.dump(2) + "\n");
  return code;
}

}  // namespace tearless::harness
