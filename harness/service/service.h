// The service of a workspace: the one process that writes the database and decides what runs. It is `tearless daemon`,
// or the first `tearless run` for as long as that lives. A single-threaded event loop: every request and every end of a
// process is handled to its end before the next one.
//
// Whoever owns it decides when it ends. The attempts live on under their supervisors, and the next service adopts them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/schedule/local_launcher.h"
#include "harness/schedule/program.h"
#include "harness/schedule/scheduler.h"
#include "harness/service/facts.h"
#include "harness/service/hooks.h"
#include "harness/service/protocol.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct ServiceOptions {
  std::string kind = "run";            // ServiceFacts::kind, or "command": works for one request only
  int jobs = 0;                        // concurrent runs on the CPU; 0: as many as their threads fit the cores
  int runs_per_gpu = 0;                // concurrent runs on each GPU, as far as their memory fits; 0: one
  bool pin = false;                    // bind each run on the CPU to cores of its own
  std::string declared_devices = {};   // GPUs to assume instead of `devices`, as DeclaredDevices reads them
  std::vector<ProgramDevice> devices;  // of this machine, that the training program can use
  std::string on_end = {};             // command for /bin/sh, run at each end of a run or a sweep (hooks.h); "": none
};

class Service {
 public:
  using Listener = std::function<void(const SchedulerEvent&)>;

  /// Borrows `io` and `store`, which must outlive the service. `listener` is told what happens, after the sweeps' logs.
  Service(boost::asio::io_context& io, Store& store, const Workspace& workspace, ServiceOptions options,
          Listener listener);

  /// Takes over what earlier processes left, and looks at the running attempts every second from now on.
  void begin();
  /// Works on all sweeps that are active in the store.
  void add_active_sweeps();

  /// Carries out a request. The answer is {"error": sentence} for one that cannot be.
  nlohmann::json answer(const Request& request);

  /// Adds a sweep, whose folder is written, to the store and works on it.
  void submit(Sweep sweep, Scheduler::Add how);

  ServiceFacts facts() const;

  Scheduler& scheduler() { return scheduler_; }
  const Workspace& workspace() const { return workspace_; }

  /// The workspace's folder is no longer at its path: nothing can be recorded any more.
  bool workspace_is_gone() const;
  bool asked_to_end() const { return asked_to_end_; }

  /// Has `on_end` run for what ended since the last tick, and waits a few seconds for those commands. Call at the end.
  void finish_hooks();

  /// Called every second, after the scheduler.
  std::function<void()> on_tick;

 private:
  static LocalLauncher::Options launcher_options(const ServiceOptions& options, Store& store);
  nlohmann::json carry_out(const Request& request);
  Sweep written_sweep(const std::string& id) const;
  void tick();
  void on_event(const SchedulerEvent& event);
  void note_ended_sweeps();
  void require(const std::vector<std::string>& sweeps);

  Store& store_;
  Workspace workspace_;
  ServiceOptions options_;
  Listener listener_;
  boost::asio::steady_timer timer_;
  LocalLauncher launcher_;
  Scheduler scheduler_;
  std::string started_at_;
  std::pair<uint64_t, uint64_t> folder_;       // device and inode of the workspace
  std::map<std::string, std::string> titles_;  // sweep → title
  std::set<std::string> unfinished_;           // sweeps with runs that wait or run
  Hooks hooks_;
  bool asked_to_end_ = false;
};

}  // namespace tearless::harness
