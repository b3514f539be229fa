// The service of a workspace: the process that decides what runs, and writes the database while it holds the
// workspace's lock. A single-threaded event loop: a request, or the end of a process, is handled completely before the
// next one.
//
// Whoever owns it decides when it ends (serve.h). The attempts live on under their supervisors, and the next service
// adopts them.
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

#include "harness/runs/launcher.h"
#include "harness/runs/workspace.h"
#include "harness/schedule/scheduler.h"
#include "harness/service/facts.h"
#include "harness/service/hooks.h"
#include "harness/service/protocol.h"
#include "harness/store/ownership.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// Takes the looks that are due of a sweep that is trained until its claims are decided. Returns the runs that they ask
/// for, which belong to the sweep's folder from then on. Without `may_ask` there are none. `say` gets a sentence for
/// each look.
using LookTaker = std::function<std::vector<std::string>(const std::string& sweep, bool may_ask,
                                                         const std::function<void(const std::string&)>& say)>;

struct ServiceOptions {
  bool stays = false;                  // until it is told to end; else until it is idle
  std::vector<std::string> arguments;  // of `tearless daemon`, for ServiceFacts
  std::string on_end = {};             // command for /bin/sh, run at each end of a run or a sweep (hooks.h); "": none
  LookTaker take_looks = {};
};

/// What has vanished: nothing can be recorded any more. kOwnership: another service has the workspace (ownership.h).
enum class Vanished { kNothing, kWorkspace, kOwnership, kDatabase };

class Service {
 public:
  using Listener = std::function<void(const SchedulerEvent&)>;

  /// Borrows `io`, `store` and `launcher`, which must outlive the service. `listener` is told what happens, after the
  /// sweeps' logs.
  Service(boost::asio::io_context& io, Store& store, Launcher& launcher, const Workspace& workspace,
          ServiceOptions options, Listener listener);

  /// Takes over what earlier processes left, works on all sweeps that are active in the store, and looks at the
  /// running attempts every second from now on. A service that a command has started starts no run before it has
  /// carried out a request, for a second at most: that request may be to cancel the runs.
  void begin();

  /// Carries out a request. The answer is {"error": sentence} for one that cannot be.
  nlohmann::json answer(const Request& request);
  /// Why something could not be recorded during a request, one sentence; "" if all was. Another service must take over:
  /// what this one knows may no longer be what the store has.
  const std::string& machine_fault() const { return machine_fault_; }

  // For requests.cc.

  /// Makes the scheduler know the sweeps. UserError for one that is not in the store.
  void require(const std::vector<std::string>& sweeps);
  /// Adds a sweep, whose folder is written, to the store and works on it. `replace`: cancels the others of its grid
  /// file that are not over.
  SubmissionFacts submit(const std::string& sweep, Scheduler::Add how, bool replace);
  void set_priority(const std::string& sweep, int64_t priority);
  /// Works on the sweep no more.
  void drop(const std::string& sweep);
  /// Has the service end. `now`: its attempts stop first, with checkpoints. `is_stop`: nobody should start another one
  /// for what is left (was_stopped()).
  void end(bool now, bool is_stop);

  ServiceFacts facts() const;

  Scheduler& scheduler() { return scheduler_; }
  Store& store() { return store_; }
  const Workspace& workspace() const { return workspace_; }

  /// The workspace's folder, or its database, is no longer at its path, or it is another service's.
  Vanished vanished() const;

  /// A run is running or queued, or a command of `on_end` has not ended.
  bool is_busy() const { return scheduler_.is_busy() || hooks_.is_busy() || is_any_look_due(); }
  /// True if it was asked to end, and no attempt that it has to stop is left.
  bool is_over() const { return asked_to_end_ && !scheduler_.is_stopping_any(); }
  /// Seconds since it was busy, or has carried out a request; 0 while it is busy.
  double idle_seconds() const;
  /// True once it was busy, or has carried out a request.
  bool was_used() const { return was_used_; }

  /// Has `on_end` run for what ended since the last tick, and waits a few seconds for those commands. Call at the end.
  void finish_hooks();

 private:
  void tick();
  void follow_looks(const Sweep& sweep);
  void take_looks();
  void take_looks_of(const std::string& sweep);
  void grow(const std::string& sweep);
  bool is_look_due(const std::string& sweep) const;
  bool is_any_look_due() const;
  void on_event(const SchedulerEvent& event);
  void note_ended_sweeps();
  void keep_secrets(const Request& request);
  std::vector<std::string> others_of(const Sweep& sweep) const;

  Store& store_;
  Workspace workspace_;
  ServiceOptions options_;
  Listener listener_;
  boost::asio::steady_timer timer_;
  Launcher& launcher_;
  Scheduler scheduler_;
  std::string started_at_;
  Ownership ownership_;
  bool is_anothers_ = false;
  std::pair<uint64_t, uint64_t> folder_;       // device and inode of the workspace
  std::map<std::string, std::string> titles_;  // sweep → title
  std::set<std::string> unfinished_;           // sweeps with runs that wait or run
  std::map<std::string, bool> look_is_due_;    // of each sweep that is trained until its claims are decided
  double next_looks_at_ = 0;
  Hooks hooks_;
  double busy_at_;  // steady_seconds() when it was busy last, or has carried out a request
  bool was_used_ = false;
  bool asked_to_end_ = false;
  std::string machine_fault_;
};

}  // namespace tearless::harness
