// Attempts as processes of this machine: one `tearless supervise` each, in a session of its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "harness/schedule/launcher.h"
#include "harness/schedule/program.h"

namespace tearless::harness {

class LocalLauncher : public Launcher {
 public:
  /// `tearless` is the executable that has `supervise`; what `probe` says is stamped on every attempt. Borrows `io`.
  /// A program that is asked to stop is killed after `grace_seconds`.
  LocalLauncher(boost::asio::io_context& io, std::filesystem::path tearless, Program program, const Probe& probe,
                int grace_seconds);

  void start(const Launch& launch) override;
  bool adopt(const std::string& id, const std::filesystem::path& folder) override;
  void stop(const std::string& id, StopReason why) override;
  void kill(const std::string& id) override;

 private:
  struct Watch {
    pid_t pid = -1;  // the supervisor; -1 while only its lock is known
    std::filesystem::path folder;
    std::unique_ptr<boost::asio::posix::stream_descriptor> pidfd;  // readable once the supervisor has ended
    std::unique_ptr<boost::asio::steady_timer> timer;              // looks at the lock where there is no pidfd
    std::optional<StopReason> stop;                                // asked for
    LaunchEnd end = LaunchEnd::kUnknown;
  };

  void watch_process(const std::string& id, Watch watch);
  void watch_lock(const std::string& id, Watch watch);
  void look_at_lock(const std::string& id);
  void ended(const std::string& id);
  std::string device_name(const std::string& uuid) const;

  boost::asio::io_context& io_;
  std::filesystem::path tearless_;
  Program program_;
  Probe probe_;
  int grace_seconds_;
  std::map<std::string, Watch> watches_;
};

}  // namespace tearless::harness
