#include "harness/service/serve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "harness/service/server.h"
#include "harness/service/socket_path.h"
#include "harness/store/workspace_format.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace {

constexpr int kMaxRest = 5;  // seconds until a full disk is tried again, after 1, 2 and 4

constexpr double kFirstRequest = 10;  // seconds that the command which started it has at least to ask for something

class Host {
 public:
  Host(Store& store, const Workspace& workspace, const Serving& serving)
      : serving_(serving),
        signals_(io_, SIGINT, SIGTERM),
        launcher_(serving.launcher(io_, store)),
        service_(io_, store, *launcher_, workspace, serving.options,
                 [this](const SchedulerEvent& event) { say(event); }),
        server_(io_, socket_path(workspace), [this](const Request& request) { return service_.answer(request); }, {}) {
    note_socket(workspace, server_.path());
    if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
  }

  // MachineError where something cannot be recorded.
  void run(bool& is_ready) {
    service_.begin();
    was_ready_ = std::exchange(is_ready, true);
    if (!was_ready_) serving_.on_ready();
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (!error) service_.end(/*now=*/false, /*is_stop=*/true);
    });
    try {
      while (!is_done() && service_.vanished() == Vanished::kNothing) {
        io_.run_one();
        if (!service_.machine_fault().empty() && server_.clients() == 0) throw MachineError(service_.machine_fault());
      }
    } catch (const UserError&) {
      if (service_.vanished() == Vanished::kNothing) throw;  // else it could not write for that reason
    }
    if (service_.vanished() == Vanished::kNothing || service_.vanished() == Vanished::kDatabase) {
      leave();
      return service_.store().require_there();
    }
    service_.scheduler().abandon();
    if (service_.vanished() == Vanished::kOwnership) {
      const std::string machine = machine_of_index(service_.workspace());
      fail("{} was taken over{}; the runs of this machine were killed, and continue there from their last checkpoints",
           service_.workspace().root().string(), machine.empty() ? "" : " by a service on " + machine);
    }
    fail(
        "{} was moved or deleted while its runs were under way; they were killed and continue from their last "
        "checkpoints: "
        "start tearless again with --workspace and the new place",
        service_.workspace().root().string());
  }

 private:
  void say(const SchedulerEvent& event) const {
    const std::string sweep = event.id.empty() ? fmt::format("{}  ", fmt::join(event.sweeps, ", ")) : "";
    serving_.say(sweep + sentence_of(event));
  }

  // An answer that was made has to be sent.
  bool is_done() const {
    const bool awaits_request = !was_ready_ && !service_.was_used();
    const double patience = awaits_request ? std::max(serving_.idle_seconds, kFirstRequest) : serving_.idle_seconds;
    const bool leaves = !serving_.options.stays && !service_.is_busy() && service_.idle_seconds() >= patience;
    return (leaves || service_.is_over()) && server_.clients() == 0;
  }

  void leave() {
    service_.finish_hooks();
    const size_t running = service_.scheduler().progress().size();
    serving_.say(running == 0 ? "ends"
                              : fmt::format("ends; {} under way, which the next service takes over",
                                            counted(static_cast<int64_t>(running), "run")));
  }

  const Serving& serving_;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  std::unique_ptr<Launcher> launcher_;
  Service service_;
  Server server_;
  bool was_ready_ = false;
};

}  // namespace

void serve(Store& store, const Workspace& workspace, const Serving& serving) {
  int rest = 1;
  for (bool is_ready = false;; rest = std::min(2 * rest, kMaxRest)) {
    std::string fault;
    try {
      return Host(store, workspace, serving).run(is_ready);
    } catch (const MachineError& error) {
      if (!is_ready) throw;
      fault = error.what();
    } catch (const std::filesystem::filesystem_error& error) {  // whatever was looked at: a network disk may fail at it
      if (!is_ready) throw;
      fault = fmt::format("cannot reach {}: {}", error.path1().string(), error.code().message());
    }
    // What could not be recorded is in the run folders: a new service finds it there, as after a kill.
    serving.say(fmt::format("{}. Runs that are under way continue; tries again in {} s", fault, rest));
    ::poll(nullptr, 0, 1000 * rest);
  }
}

}  // namespace tearless::harness
