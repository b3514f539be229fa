#include "harness/launch/local_launcher.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/fault.h"
#include "base/sealed_json.h"
#include "base/sys.h"
#include "harness/children/child.h"
#include "harness/launch/machine.h"
#include "harness/launch/processes.h"
#include "harness/runs/verdict.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr auto kLookAtLock = std::chrono::milliseconds(500);
constexpr double kObserveEvery = 2;  // seconds between two looks at processes and GPUs
constexpr double kLetGo = 3;         // seconds in which the processes of a killed attempt usually end

// glibc has wrappers only since 2.36, and there not for C++.
int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
bool is_readable(int fd) {
  pollfd state{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) == 1;
}
void signal_pidfd(int fd, int signal) {
  if (fault::point(fault::kKill, "") == 0) ::syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0);
}

int signal_for(Stop how) {
  return how == Stop::kAtOnce    ? SIGKILL  // PR_SET_PDEATHSIG then kills the program
         : how == Stop::kStalled ? kStallSignal
                                 : SIGTERM;
}

// Seconds after which a supervisor that was asked to stop is killed. It kills its program after the grace time, so it
// is given half as much again, at least 2 s.
double patience_for(int grace_seconds) { return grace_seconds + std::max(2.0, grace_seconds / 2.0); }

std::string fault_of(int exit_code, const RunDirectory& run) {
  if (exit_code == kNoAttempt) {
    return fmt::format("another program is using {} (it holds {})", run.root().string(), run.lock().string());
  }
  if (exit_code != kNotRecorded) return "";
  return fmt::format("an attempt could not be written into {}: is the disk full, or the folder read-only?",
                     run.root().string());
}

// What the program says that it has used, in bytes; 0 if it does not.
int64_t measured_peak(const RunDirectory& run) {
  const json measured = read_sealed(run.attempt(run.newest_begun_attempt()) / "measured.json").value_or(json::object());
  const auto peak = measured.find("peak_memory_bytes");
  return peak != measured.end() && peak->is_number() ? static_cast<int64_t>(peak->get<double>()) : 0;
}

// The pid of the newest attempt's supervisor, 0 if it is not alive.
pid_t living_supervisor(const RunDirectory& run) {
  const std::optional<ProcessName> supervisor = supervisor_of(run, run.newest_attempt());
  return supervisor && supervisor->is_alive() ? static_cast<pid_t>(supervisor->pid) : 0;
}

}  // namespace

LocalLauncher::LocalLauncher(boost::asio::io_context& io, Options options)
    : io_(io),
      options_(std::move(options)),
      resources_(options_.capacity, options_.pin, std::move(options_.monitor), options_.peaks) {}

std::optional<Launcher::Refusal> LocalLauncher::refusal_of(const Needs& needs) const {
  std::string why = resources_.why_not(needs);
  if (why.empty()) return std::nullopt;
  return Refusal{.why = std::move(why), .for_good = !resources_.can_ever(needs)};
}

void LocalLauncher::start(const Launch& launch) {
  const Reservation& reserved = resources_.reserve(launch.id, launch.needs);
  try {
    json stamp = launch.program.stamp;
    stamp["device"] = "cpu";
    stamp["cuda_device"] = reserved.device;
    for (const Device& device : options_.capacity.devices) {
      if (device.uuid == reserved.device) stamp["device"] = device.name;
    }
    if (!reserved.cores.empty()) stamp["cores"] = reserved.cores;
    if (launch.program.environment) {  // names only: other users can read a command line
      for (const auto& [name, value] : launch.program.environment->variables) stamp["environment"].push_back(name);
      if (const auto& secrets = launch.program.environment->secrets; !secrets.empty()) stamp["secrets"] = secrets;
    }
    ChildRequest request{
        .arguments = {options_.tearless.string(), "supervise", launch.folder.string(), "--engine",
                      launch.program.path.string(), "--stamp", stamp.dump(), "--grace",
                      std::to_string(launch.program.grace_seconds), "--launcher", std::to_string(::getpid())},
        .blocked_signals = {SIGTERM, SIGINT, SIGHUP, kStallSignal},  // until the supervisor is ready to handle them
        .own_session = true};
    if (launch.attempt > 0) {
      request.arguments.insert(request.arguments.end(), {"--attempt", std::to_string(launch.attempt)});
    }
    if (options_.ends_attempts) request.arguments.emplace_back("--ends-with-launcher");
    if (const auto& environment = launch.program.environment) {
      request.environment = changes_for(*environment, own_variables());
      for (const auto& [name, value] : launch.program.secrets) request.environment[name] = value;
    }
    if (!reserved.device.empty()) request.environment["CUDA_VISIBLE_DEVICES"] = reserved.device;
    watch_process(launch.id, {.run = RunDirectory(launch.folder), .pid = spawn(request)});
  } catch (...) {
    resources_.release(launch.id, Resources::End::kOtherwise);
    throw;
  }
}

bool LocalLauncher::adopt(const std::string& id, const fs::path& folder, const Needs& needs) {
  const RunDirectory run(folder);
  const pid_t supervisor = living_supervisor(run);  // found even if its lock file was removed
  if (supervisor == 0 && !has_process(run)) return false;
  reserve_for_adopted(id, run, needs);
  if (supervisor > 0) {
    watch_process(id, {.run = run, .pid = supervisor});
  } else {  // a supervisor that has not written start.json yet
    watch_lock(id, {.run = run});
  }
  return true;
}

// Where it runs counts, whatever was submitted since.
void LocalLauncher::reserve_for_adopted(const std::string& id, const RunDirectory& run, Needs needs) {
  const int64_t newest = run.newest_begun_attempt();
  const std::string device = cuda_device_of(run, newest);
  needs.device = device.empty() ? "cpu" : "cuda";
  resources_.reserve_anyway(id, needs, device, cores_of(run, newest));
}

void LocalLauncher::stop(const std::string& id, Stop how, int grace_seconds) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  Watch& watch = found->second;
  watch.stop = how;
  watch.kill_at = options_.now() + patience_for(grace_seconds);
  if (!watch.pidfd) return;
  // All that descends from it: who leads a session or group of its own would outlive the supervisor.
  const std::set<int64_t> below = how == Stop::kAtOnce ? ProcessTree().below(watch.pid) : std::set<int64_t>();
  signal_pidfd(watch.pidfd->native_handle(), signal_for(how));
  for (const int64_t pid : below) sys::kill(static_cast<pid_t>(pid), SIGKILL);
}

void LocalLauncher::abandon() {
  for (const auto& [id, watch] : watches_) stop(id, Stop::kAtOnce, 0);
}

std::string LocalLauncher::where(const std::string& id) const {
  const std::string left = standing_of(id).waits_for;
  return left.empty() ? resources_.why_here(id) : left;
}

// Those of a killed supervisor who have its lock: no other attempt may begin beside them.
Launcher::Standing LocalLauncher::standing_of(const std::string& id) const {
  const Watch& watch = watches_.at(id);
  if (!watch.timer || options_.now() - watch.locked_since < kLetGo) return {};
  std::vector<int64_t> holders = writers_of(watch.run.lock());
  std::erase_if(holders, [this](int64_t pid) {  // a supervisor that is about to begin
    std::error_code ended;
    return fs::read_symlink(fmt::format("/proc/{}/exe", pid), ended) == options_.tearless;
  });
  const std::string names = names_of(holders);
  if (names.empty()) return {};
  return {.waits_for = fmt::format(
              "its supervisor was killed, and what that has left may still write: waits until {} ended (kill {})",
              names + (holders.size() == 1 ? " has" : " have"), fmt::join(holders, " "))};
}

void LocalLauncher::poll() {
  for (auto& [id, watch] : watches_) {
    if (watch.stop && options_.now() > watch.kill_at) stop(id, Stop::kAtOnce, 0);  // and again if it still lives
  }
  if (watches_.empty() && options_.capacity.devices.empty()) return;
  if (options_.now() - observed_at_ < kObserveEvery) return;
  observed_at_ = options_.now();
  observe();
}

void LocalLauncher::observe() {
  const ProcessTree tree;
  std::map<std::string, std::set<int64_t>> processes;
  for (const auto& [id, watch] : watches_) {
    if (watch.pid < 0) continue;  // not known yet
    processes[id] = tree.below(watch.pid);
    processes[id].insert(watch.pid);
    // A program on a GPU uses the machine's memory, too; of its GPU's memory the driver knows.
    if (resources_.needs_of(id).device != "cpu") continue;
    const int64_t bytes = std::max(private_memory_of(processes[id]), measured_peak(watch.run));
    if (bytes > 0) resources_.note_use(id, bytes);
  }
  resources_.observe(processes);
}

void LocalLauncher::watch_process(const std::string& id, Watch watch) {
  const int fd = open_pidfd(watch.pid);
  if (fd < 0 && errno == ESRCH) return watch_lock(id, std::move(watch));  // an adopted supervisor has just ended
  if (fd < 0) fail("cannot watch process {}: {}", watch.pid, std::strerror(errno));
  watch.pidfd = std::make_unique<boost::asio::posix::stream_descriptor>(io_, fd);
  Watch& kept = watches_.insert_or_assign(id, std::move(watch)).first->second;
  if (kept.stop) signal_pidfd(fd, signal_for(*kept.stop));  // stop() was called before the pid was known
  await_end(id);
}

void LocalLauncher::await_end(const std::string& id) {
  boost::asio::posix::stream_descriptor& pidfd = *watches_.at(id).pidfd;
  pidfd.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this, id](boost::system::error_code error) {
    if (error) return;  // the launcher is being destroyed
    Watch& ending = watches_.at(id);
    // Asio may deliver an event of a socket that was closed a moment before to the next descriptor that is watched.
    if (!is_readable(ending.pidfd->native_handle())) return await_end(id);
    int status = 0;
    const bool was_child = sys::waitpid(ending.pid, &status, WNOHANG) == ending.pid;
    if (was_child && WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
    ending.pidfd.reset();
    // The program of a killed supervisor is killed slightly later. It inherited the lock, so wait for that.
    if (has_process(ending.run)) return watch_lock(id, std::move(ending));
    ended(id);
  });
}

void LocalLauncher::watch_lock(const std::string& id, Watch watch) {
  watch.timer = std::make_unique<boost::asio::steady_timer>(io_);
  watch.locked_since = options_.now();
  watches_.insert_or_assign(id, std::move(watch));
  check_lock(id);
}

void LocalLauncher::check_lock(const std::string& id) {
  Watch& watch = watches_.at(id);
  watch.timer->expires_after(kLookAtLock);
  watch.timer->async_wait([this, id](boost::system::error_code error) {
    if (error) return;
    Watch& looking = watches_.at(id);
    if (const pid_t supervisor = living_supervisor(looking.run); supervisor > 0 && supervisor != looking.pid) {
      looking.pid = supervisor;  // the supervisor has written start.json meanwhile
      looking.timer.reset();
      return watch_process(id, std::move(looking));
    }
    if (has_process(looking.run)) return check_lock(id);
    ended(id);
  });
}

void LocalLauncher::ended(const std::string& id) {
  const Watch watch = std::move(watches_.extract(id).mapped());
  release(id, watch.run);
  on_end(id, {.fault = fault_of(watch.exit_code, watch.run)});
}

void LocalLauncher::release(const std::string& id, const RunDirectory& run) {
  const Needs needs = resources_.needs_of(id);
  if (const int64_t bytes = measured_peak(run); bytes > 0 && needs.device == "cpu") resources_.note_use(id, bytes);
  std::error_code unreadable;
  const bool has_result = fs::exists(run.done(), unreadable);
  const bool ran_out = verdict_of_exit(run, run.newest_begun_attempt()).failure == FailureClass::kOutOfMemory;
  resources_.release(id, has_result ? Resources::End::kByItself
                         : ran_out  ? Resources::End::kOutOfMemory
                                    : Resources::End::kOtherwise);
  const std::optional<int64_t> peak = resources_.peak_of(needs.resource_class);
  if (peak && options_.on_peak) options_.on_peak(needs.resource_class, *peak);
}

}  // namespace tearless::harness
