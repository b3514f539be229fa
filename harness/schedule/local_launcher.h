// Runs attempts as processes of this machine. Each is a `tearless supervise` process in its own session, so it survives
// the end of this process and of the terminal.
//
// An attempt is watched in one of two ways:
//   - by a pidfd of its supervisor, once the supervisor's pid is known;
//   - by polling the run's lock, while the pid is not known yet or after the supervisor was killed.
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

namespace tearless::harness {

class LocalLauncher : public Launcher {
 public:
  /// `tearless` is the executable with the command `supervise`. `device_names`: UUID → name of each CUDA device.
  /// Borrows `io`, which must outlive the launcher.
  LocalLauncher(boost::asio::io_context& io, std::filesystem::path tearless,
                std::map<std::string, std::string> device_names);

  void start(const Launch& launch) override;
  bool adopt(const std::string& id, const std::filesystem::path& folder) override;
  void stop(const std::string& id, StopReason why) override;
  void kill(const std::string& id) override;
  std::map<std::string, std::set<int64_t>> processes() const override;

 private:
  struct Watch {
    pid_t pid = -1;                                                // the supervisor's; -1 while it is not known
    std::filesystem::path folder;                                  // the run directory
    std::unique_ptr<boost::asio::posix::stream_descriptor> pidfd;  // readable once the supervisor has ended
    std::unique_ptr<boost::asio::steady_timer> timer;              // polls the lock while there is no pidfd
    std::optional<StopReason> stop;                                // set if stop() was called
    LaunchEnd end = LaunchEnd::kUnknown;
  };

  void watch_process(const std::string& id, Watch watch);
  void watch_lock(const std::string& id, Watch watch);
  void check_lock(const std::string& id);
  void ended(const std::string& id);

  boost::asio::io_context& io_;
  std::filesystem::path tearless_;
  std::map<std::string, std::string> device_names_;
  std::map<std::string, Watch> watches_;
};

}  // namespace tearless::harness
