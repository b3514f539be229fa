#include "harness/schedule/local_launcher.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/fault.h"
#include "base/lock_file.h"
#include "base/run_directory.h"
#include "base/sys.h"
#include "harness/devices/machine.h"
#include "harness/schedule/spawn.h"
#include "harness/schedule/supervisor.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr auto kLookAtLock = std::chrono::milliseconds(500);

// glibc has wrappers only since 2.36, and there not for C++.
int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
void signal_pidfd(int fd, int signal) {
  if (fault::point(fault::kKill, "") == 0) ::syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0);
}

int signal_for(StopReason why) { return why == StopReason::kStall ? kStallSignal : SIGTERM; }

LaunchEnd end_of(int exit_code) {
  return exit_code == kNoAttempt     ? LaunchEnd::kRefused
         : exit_code == kNotRecorded ? LaunchEnd::kMachine
                                     : LaunchEnd::kUnknown;
}

// The pid of the newest attempt's supervisor, 0 if it is not alive.
pid_t living_supervisor(const RunDirectory& run) {
  const std::optional<ProcessName> supervisor = supervisor_of(run, run.newest_attempt());
  return supervisor && supervisor->is_alive() ? static_cast<pid_t>(supervisor->pid) : 0;
}

}  // namespace

LocalLauncher::LocalLauncher(boost::asio::io_context& io, fs::path tearless,
                             std::map<std::string, std::string> device_names)
    : io_(io), tearless_(std::move(tearless)), device_names_(std::move(device_names)) {}

void LocalLauncher::start(const Launch& launch) {
  const auto name = device_names_.find(launch.cuda_device);
  json stamp = launch.program.stamp;
  stamp["device"] = name == device_names_.end() ? "cpu" : name->second;
  stamp["cuda_device"] = launch.cuda_device;
  if (!launch.cores.empty()) stamp["cores"] = launch.cores;
  SpawnRequest request{
      .arguments = {tearless_.string(), "supervise", launch.folder.string(), "--engine", launch.program.path.string(),
                    "--stamp", stamp.dump(), "--grace", std::to_string(launch.program.grace_seconds), "--launcher",
                    std::to_string(::getpid())},
      .environment = {},
      .blocked_signals = {SIGTERM, SIGINT, SIGHUP, kStallSignal},  // until the supervisor is ready to handle them
      .own_session = true};
  if (launch.ends_with_launcher) request.arguments.push_back("--ends-with-launcher");
  if (!launch.cuda_device.empty()) request.environment.emplace_back("CUDA_VISIBLE_DEVICES", launch.cuda_device);
  watch_process(launch.id,
                {.pid = spawn(request), .folder = launch.folder, .pidfd = nullptr, .timer = nullptr, .stop = {}});
}

bool LocalLauncher::adopt(const std::string& id, const fs::path& folder) {
  const RunDirectory run(folder);
  Watch watch{.pid = -1, .folder = folder, .pidfd = nullptr, .timer = nullptr, .stop = {}};
  if (const pid_t supervisor = living_supervisor(run); supervisor > 0) {  // found even if its lock file was removed
    watch.pid = supervisor;
    watch_process(id, std::move(watch));
  } else if (LockFile::is_held(run.lock())) {  // a supervisor that has not written start.json yet
    watch_lock(id, std::move(watch));
  } else {
    return false;
  }
  return true;
}

void LocalLauncher::stop(const std::string& id, StopReason why) {
  const auto watch = watches_.find(id);
  if (watch == watches_.end()) return;
  watch->second.stop = why;
  if (watch->second.pidfd) signal_pidfd(watch->second.pidfd->native_handle(), signal_for(why));
}

void LocalLauncher::kill(const std::string& id) {
  const auto watch = watches_.find(id);
  if (watch == watches_.end() || !watch->second.pidfd) return;
  signal_pidfd(watch->second.pidfd->native_handle(), SIGKILL);  // PR_SET_PDEATHSIG then kills the program
}

std::map<std::string, std::set<int64_t>> LocalLauncher::processes() const {
  const std::map<int64_t, std::set<int64_t>> sessions = processes_by_session();
  std::map<std::string, std::set<int64_t>> all;
  for (const auto& [id, watch] : watches_) {
    const auto session = sessions.find(watch.pid);  // a supervisor leads a session of its own
    if (session != sessions.end()) all[id] = session->second;
  }
  return all;
}

void LocalLauncher::watch_process(const std::string& id, Watch watch) {
  const int fd = open_pidfd(watch.pid);
  if (fd < 0 && errno == ESRCH) return watch_lock(id, std::move(watch));  // an adopted supervisor has just ended
  if (fd < 0) fail("cannot watch process {}: {}", watch.pid, std::strerror(errno));
  watch.pidfd = std::make_unique<boost::asio::posix::stream_descriptor>(io_, fd);
  Watch& kept = watches_[id] = std::move(watch);
  if (kept.stop) signal_pidfd(fd, signal_for(*kept.stop));  // stop() was called before the pid was known
  kept.pidfd->async_wait(boost::asio::posix::stream_descriptor::wait_read, [this, id](boost::system::error_code error) {
    if (error) return;  // the launcher is being destroyed
    Watch& ending = watches_.at(id);
    int status = 0;
    const bool was_child = sys::waitpid(ending.pid, &status, WNOHANG) == ending.pid;
    if (was_child && WIFEXITED(status)) ending.end = end_of(WEXITSTATUS(status));
    ending.pidfd.reset();
    // The program of a killed supervisor is killed slightly later. It inherited the lock, so wait for that.
    if (LockFile::is_held(RunDirectory(ending.folder).lock())) return watch_lock(id, std::move(ending));
    ended(id);
  });
}

void LocalLauncher::watch_lock(const std::string& id, Watch watch) {
  watch.timer = std::make_unique<boost::asio::steady_timer>(io_);
  watches_[id] = std::move(watch);
  check_lock(id);
}

void LocalLauncher::check_lock(const std::string& id) {
  Watch& watch = watches_.at(id);
  watch.timer->expires_after(kLookAtLock);
  watch.timer->async_wait([this, id](boost::system::error_code error) {
    if (error) return;
    Watch& looking = watches_.at(id);
    const RunDirectory run(looking.folder);
    if (const pid_t supervisor = living_supervisor(run); supervisor > 0 && supervisor != looking.pid) {
      looking.pid = supervisor;  // the supervisor has written start.json meanwhile
      looking.timer.reset();
      return watch_process(id, std::move(looking));
    }
    if (LockFile::is_held(run.lock())) return check_lock(id);
    ended(id);
  });
}

void LocalLauncher::ended(const std::string& id) {
  const LaunchEnd end = watches_.at(id).end;
  watches_.erase(id);
  on_end(id, end);
}

}  // namespace tearless::harness
