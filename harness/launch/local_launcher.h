// Runs attempts as processes of this machine. Each is a `tearless supervise` process in its own session, so it survives
// the end of this process and of the terminal.
//
// An attempt is watched in one of two ways:
//   - by a pidfd of its supervisor, once the supervisor's pid is known;
//   - by polling the run's lock, while the pid is not known yet or after the supervisor was killed.
//
// A supervisor outlives the service, so the next one adopts its attempt:
//   1. If the supervisor that the newest start.json names (by pid, start time and boot id) is alive, it is watched.
//   2. Otherwise, if the run's lock is held, an attempt is starting or ending: the lock is polled.
//   3. Otherwise there is no attempt, and the run's folder says how the last one ended: by DONE, by exit.json, or by
//      neither, as after a power cut.
// A supervisor that gets the run's lock after its service has ended makes no attempt: the next service has not seen it.
//
// What its attempts use of the machine it measures itself, and reserves accordingly (harness/launch/resources.h).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "base/time.h"
#include "harness/launch/resources.h"
#include "harness/launch/supervisor.h"
#include "harness/runs/launcher.h"

namespace tearless::harness {

class LocalLauncher : public Launcher {
 public:
  struct Options {
    std::filesystem::path tearless;                    // the executable with the command `supervise`
    Capacity capacity = {};                            // of this machine
    std::unique_ptr<DeviceMonitor> monitor = nullptr;  // as Resources takes it, like `pin` and `peaks`
    bool pin = false;
    bool ends_attempts = false;  // they end with this process, whatever ends it
    std::map<std::string, int64_t> peaks = {};
    // Gets the peak of a run's resource class, if one is known, whenever a run has ended.
    std::function<void(const std::string& resource_class, int64_t bytes)> on_peak = {};
    std::function<double()> now = steady_seconds;
  };

  /// Borrows `io`, which must outlive the launcher.
  LocalLauncher(boost::asio::io_context& io, Options options);

  std::optional<Refusal> refusal_of(const Needs& needs) const override;
  void start(const Launch& launch) override;
  bool adopt(const std::string& id, const std::filesystem::path& folder, const Needs& needs) override;
  void stop(const std::string& id, Stop how, int grace_seconds) override;
  void abandon() override;
  std::string where(const std::string& id) const override;
  Standing standing_of(const std::string& id) const override;
  std::vector<DeviceFacts> devices() const override { return resources_.shares(); }
  void poll() override;

 private:
  struct Watch {
    RunDirectory run;
    pid_t pid = -1;                                                     // the supervisor's; -1 while it is not known
    std::unique_ptr<boost::asio::posix::stream_descriptor> pidfd = {};  // readable once the supervisor has ended
    std::unique_ptr<boost::asio::steady_timer> timer = {};              // polls the lock while there is no pidfd
    std::optional<Stop> stop = {};                                      // as stop() was called last
    double kill_at = 0;                                                 // if it was called: when its patience ends
    int exit_code = kSupervised;                                        // of the supervisor
    double locked_since = 0;                                            // when the lock began to be polled
  };

  void reserve_for_adopted(const std::string& id, const RunDirectory& run, Needs needs);
  void watch_process(const std::string& id, Watch watch);
  void await_end(const std::string& id);
  void watch_lock(const std::string& id, Watch watch);
  void check_lock(const std::string& id);
  void ended(const std::string& id);
  void release(const std::string& id, const RunDirectory& run);
  void observe();

  boost::asio::io_context& io_;
  Options options_;
  Resources resources_;
  std::map<std::string, Watch> watches_;
  double observed_at_ = 0;  // time of the last look at processes and GPUs
};

}  // namespace tearless::harness
