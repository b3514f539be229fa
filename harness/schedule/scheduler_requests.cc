// The scheduler's sweeps and jobs, and what users ask for.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/run_directory.h"
#include "harness/folders/delete.h"
#include "harness/runs/policy.h"
#include "harness/schedule/scheduler.h"

namespace tearless::harness {
namespace {

constexpr const char* kSweepCancelled = "its sweep was cancelled";
constexpr const char* kCancelledOnRequest = "cancelled on request";

}  // namespace

void Scheduler::add(const std::string& id, Add how) {
  add_jobs_or_pause(id, how);
  fill();
}

// Nothing is started before all are there: the last of them may be the one that goes first.
void Scheduler::add_active() {
  for (const std::string& id : store_.active_sweeps()) add_jobs_or_pause(id, Add::kRestart);
  fill();
}

// What is wrong with one sweep is its own failure: the others go on.
void Scheduler::add_jobs_or_pause(const std::string& id, Add how) {
  try {
    add_jobs(id, how);
  } catch (const std::logic_error& error) {
    pause(id,
          fmt::format("{} (this is a bug in tearless); to rebuild the index: {}", error.what(),
                      rebuild_command(workspace_.root())),
          OnPause::kContinue);
  }
}

void Scheduler::add_jobs(const std::string& id, Add how) {
  std::optional<Sweep> record = store_.sweep(id);
  if (!record) throw std::logic_error("no sweep " + id + " in the store");
  ActiveSweep& sweep = jobs_.sweeps()[id];
  sweep.record = *std::move(record);
  sweep.axes = store_.label_axes_of(id);
  sweep.kind.clear();
  if (sweep.record.policy.same_device) sweep.kind = store_.first_kind_in(id);
  sweep.failures.clear();
  const StateCounts counts = how == Add::kRestart ? store_.counts_of(id) : StateCounts();
  sweep.has_result = counts.contains(RunState::kDone) || counts.contains(RunState::kDiverged);
  count_again();
  paces_.reset();  // a calibration may have ended
  if (sweep.is_cancelled()) return;

  std::vector<RunState> states;  // all
  if (how == Add::kRestart) states = {RunState::kQueued, RunState::kRunning, RunState::kWaitingData};
  for (RunRecord& run : store_.each_run_of(id, states)) {
    // One from which it derives may have taken it along.
    if (!derived_from(run.settings).empty()) run = store_.run_of(id, run.id);
    attach_job(sweep, run);
    reconcile(run, how) ? follow_origin(run.id) : drop_job(run.id);
  }
  jobs_.enqueue_all(sweep);  // those that were known before, too: the state may be new
}

// A run waits for its data or is held, or does so no more.
void Scheduler::count_again() {
  for (auto& [id, sweep] : jobs_.sweeps()) sweep.counted.reset();
}

void Scheduler::attach_job(ActiveSweep& sweep, const RunRecord& record) {
  const bool is_new = !sweep.jobs.contains(record.id);
  jobs_.attach(sweep, record);
  wait_for_origin(record);
  Running* const attempt = running(record.id);
  if (!attempt) return;
  if (is_new) follow(*attempt, sweep, record.id);
  const Launcher::Standing standing = launcher_.standing_of(record.id);
  const bool is_elsewhere = standing.executor != jobs_.find(record.id)->run.needs.executor;
  if (standing.phase == Phase::kGranted && is_elsewhere) ask_to_stop(record.id, *attempt, Stop::kOnRequest);
}

// A run that is not known to the store keeps none waiting: the program says what it lacks.
void Scheduler::wait_for_origin(const RunRecord& record) {
  const std::string of = derived_from(record.settings);
  if (of.empty()) return;
  const std::optional<RunRecord> origin = store_.run(of);
  jobs_.wait_for(record.id, origin && !has_result(origin->state) ? of : "");
}

// The run has ended, or waits for a user or its data: it is no job any more, and those that derive from it follow it.
void Scheduler::drop_job(const std::string& id) {
  jobs_.drop(id);
  for (const std::string& derived : jobs_.waiting_for(id)) follow_origin(derived);
  for (const std::string& derived : store_.derived_from(id)) {
    if (is_of_added_sweep(derived) && take_away_if_outdated(store_.known_run(derived))) enqueue_if_possible(derived);
  }
}

bool Scheduler::is_of_added_sweep(const std::string& id) const {
  return std::ranges::any_of(store_.sweeps_of(id), [&](const std::string& name) {
    const auto sweep = jobs_.sweeps().find(name);
    return sweep != jobs_.sweeps().end() && sweep->second.is_active();
  });
}

// A job that derives from another run can be made once that has its result, and is put aside with it otherwise.
void Scheduler::follow_origin(const std::string& id) {
  const Job* job = jobs_.find(id);
  if (!job || job->origin.empty() || running_.contains(id)) return;
  const RunRecord origin = store_.known_run(job->origin);
  if (has_result(origin.state)) {
    jobs_.wait_for(id, "");
    jobs_.enqueue(id);
  } else if (origin.state != RunState::kQueued && origin.state != RunState::kRunning) {
    put_aside(id, origin.state, origin_reason(origin.state));
  }
}

// The attempt has the policy of the sweep, and is named as its job.
void Scheduler::follow(Running& attempt, const ActiveSweep& sweep, const std::string& id) const {
  attempt.policy = sweep.record.policy;
  attempt.watch.progress.label = label_of(id);
  attempt.watch.progress.axes = sweep.axes;
  attempt.watch.progress.updates = jobs_.find(id)->run.updates;
}

// Takes the job from this sweep. Its run stays queued in the store, and its attempt stops if no other sweep is
// active.
void Scheduler::detach_job(ActiveSweep& sweep, const std::string& id) {
  jobs_.detach(sweep, id);
  const Job* job = jobs_.find(id);
  Running* attempt = running(id);
  if (attempt && !(job && job->first_active())) ask_to_stop(id, *attempt, Stop::kOnRequest);
}

void Scheduler::pause(const std::string& id, const std::string& why, OnPause running_attempts) {
  ActiveSweep& sweep = jobs_.sweeps().at(id);
  if (sweep.is_active()) {
    sweep.record.state = SweepState::kPaused;
    sweep.record.reason = why;
    notify_sweep("paused", id, why);
    store_.set_sweep_state(id, SweepState::kPaused, why);
  }
  jobs_.enqueue_all(sweep);  // in the place of another sweep, where one is active
  if (running_attempts == OnPause::kContinue) return;
  for (const std::string& name : sweep.jobs) {
    Running* attempt = running(name);
    if (attempt && !jobs_.find(name)->first_active()) ask_to_stop(name, *attempt, Stop::kOnRequest);
  }
}

void Scheduler::pause_sweeps_of(const Job& job, const std::string& why) {
  for (ActiveSweep* sweep : std::vector(job.sweeps)) pause(sweep->record.id, why, OnPause::kContinue);
}

void Scheduler::keep_secrets(const std::string& sweep, const Variables& secrets) {
  for (const auto& [name, value] : secrets) secrets_[sweep][name] = value;
}

void Scheduler::resume(const std::string& id) {
  ActiveSweep& sweep = jobs_.sweeps().at(id);
  if (sweep.record.state != SweepState::kPaused) return;
  sweep.record.state = SweepState::kActive;
  sweep.record.reason.clear();
  sweep.failures.clear();
  notify_sweep("resumed", id, "");
  store_.set_sweep_state(id, SweepState::kActive, "");
  jobs_.enqueue_all(sweep);
  fill();
}

void Scheduler::cancel(const std::string& id) {
  ActiveSweep& sweep = jobs_.sweeps().at(id);
  sweep.record.state = SweepState::kCancelled;
  notify_sweep("cancelled", id, "");
  store_.in_transaction([&] {
    store_.set_sweep_state(id, SweepState::kCancelled, "");
    cancel_unwanted(id);
  });
  for (const std::string& job : std::set<std::string>(sweep.jobs)) {
    if (store_.is_wanted(job)) detach_job(sweep, job);  // the others are jobs until their attempts have ended
  }
  fill();
}

// Cancels the runs of a cancelled sweep that no other sweep wants. One that a user holds stays held.
void Scheduler::cancel_unwanted(const std::string& sweep) {
  for (const RunRecord& run :
       store_.each_run_of(sweep, {RunState::kQueued, RunState::kRunning, RunState::kWaitingData})) {
    const Running* attempt = running(run.id);
    const bool is_held = attempt && attempt->requested && attempt->requested->state == RunState::kHeld;
    if (run.settings.empty() || is_held || store_.is_wanted(run.id)) continue;
    const RunState now = store_.known_run(run.id).state;
    if (now != run.state) continue;  // it was cancelled with the run from which it derives
    const bool waits = now == RunState::kWaitingData;
    put_aside(run.id, RunState::kCancelled, kSweepCancelled, waits ? RunState::kWaitingData : RunState::kQueued);
  }
}

void Scheduler::drop(const std::string& id) {
  secrets_.erase(id);
  const auto sweep = jobs_.sweeps().find(id);
  if (sweep == jobs_.sweeps().end()) return;
  for (const std::string& job : std::set<std::string>(sweep->second.jobs)) detach_job(sweep->second, job);
  jobs_.sweeps().erase(sweep);
}

void Scheduler::set_priority(const std::string& id, int64_t priority) {
  ActiveSweep& sweep = jobs_.sweeps().at(id);
  sweep.record.priority = priority;
  store_.set_priority(id, priority);
  jobs_.enqueue_all(sweep);
}

// --- single runs -----------------------------------------------------------------------------------------------------

// Ends the work on a job: at once if it waits, with a checkpoint if it runs. `from`: its state if it does not run.
void Scheduler::put_aside(const std::string& id, RunState state, const std::string& reason, RunState from) {
  if (Running* attempt = running(id)) {
    set_requested(id, *attempt, RequestedEnd{state, reason});
    ask_to_stop(id, *attempt, Stop::kOnRequest);
    return;
  }
  store_.move(id, from, state, FailureClass::kNone, reason);
  if (from != RunState::kQueued || state == RunState::kHeld) count_again();
  notify(std::string(name_of(state)), id, reason);
  drop_job(id);
}

// What a user asked for while the run was running; it is the run's reason in the store until its attempt has ended, so
// that a request outlives the process that was to carry it out.
std::optional<Scheduler::RequestedEnd> Scheduler::requested_end_of(const std::string& reason) {
  if (reason == kHeldOnRequest) return RequestedEnd{RunState::kHeld, reason};
  if (reason == kCancelledOnRequest || reason == kSweepCancelled) return RequestedEnd{RunState::kCancelled, reason};
  return std::nullopt;
}

void Scheduler::set_requested(const std::string& id, Running& attempt, std::optional<RequestedEnd> requested) {
  attempt.requested = std::move(requested);
  store_.set_reason(id, attempt.requested ? attempt.requested->reason : "");
}

bool Scheduler::cancel_run(const std::string& id) {
  return put_aside_on_request(id, RunState::kCancelled, kCancelledOnRequest);
}
bool Scheduler::hold(const std::string& id) { return put_aside_on_request(id, RunState::kHeld, kHeldOnRequest); }

bool Scheduler::put_aside_on_request(const std::string& id, RunState state, const std::string& reason) {
  const std::optional<RunRecord> record = store_.run(id);
  if (!record) return false;
  if (record->state == state) return true;
  if (jobs_.find(id) || running_.contains(id)) {
    put_aside(id, state, reason);
    fill();
    return true;
  }
  if (!is_legal(record->state, state)) return false;
  put_aside(id, state, reason, record->state);
  return true;
}

bool Scheduler::release(const std::string& id) {
  const bool is_wanted = store_.is_wanted(id);
  const RequestedEnd cancelled{RunState::kCancelled, kSweepCancelled};
  if (Running* attempt = running(id)) {
    if (!attempt->requested || attempt->requested->state != RunState::kHeld) return false;
    // Without more to follow it is queued again when it has stopped.
    set_requested(id, *attempt, is_wanted ? std::nullopt : std::optional(cancelled));
    return true;
  }
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || record->state != RunState::kHeld) return record && record->state == RunState::kQueued;
  if (!is_wanted) {
    put_aside(id, cancelled.state, cancelled.reason, RunState::kHeld);
    return true;
  }
  requeue(id, "");
  notify("released", id, "");
  start_if_wanted(id);
  return store_.known_run(id).state != RunState::kHeld;  // with the run from which it derives it is held again
}

bool Scheduler::retry(const std::string& id) {
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || !store_.is_wanted(id)) return false;
  if (record->state == RunState::kQueued) return true;  // such as one that the run from which it derives took along
  if (record->state != RunState::kFailed && record->state != RunState::kCancelled) return false;
  requeue(id, "tried again on request");
  notify("queued again", id, "on request");
  start_if_wanted(id);
  return !is_inactive(store_.known_run(id).state);  // it is put aside again with the run from which it derives
}

// The run is cancelled, not forgotten: its sweeps have it still, and submitting one of them trains it.
bool Scheduler::discard(const std::string& id) {
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || running_.contains(id)) return false;
  take_folder_away(workspace_, id);
  store_.in_transaction([&] {
    store_.forget_attempts(id);
    if (store_.sweeps_of(id).empty()) return store_.forget("", {id});
    if (record->state == RunState::kCancelled) return;
    if (!is_legal(record->state, RunState::kCancelled)) store_.move(id, record->state, RunState::kQueued);
    put_aside(id, RunState::kCancelled, "deleted on request", store_.known_run(id).state);
  });
  fill();
  return true;
}

// A derived run that was made from an earlier result of another run is made again from that which it has now.
bool Scheduler::take_away_if_outdated(const RunRecord& derived) {
  if (!has_result(derived.state) || running_.contains(derived.id) || !store_.is_outdated(derived)) return false;
  take_folder_away(workspace_, derived.id);
  requeue(derived.id, "the run from which it derives has another result now");
  return true;
}

// Queues a run on request.
void Scheduler::requeue(const std::string& id, const std::string& reason) {
  store_.in_transaction([&] {
    store_.requeue(id, reason);
    count_again();
    attach_again(id);
  });
}

// Makes a run that is queued again, and those that were put aside with it, jobs of every sweep that has them and was
// added. REQUIRES: a transaction that queues the run, too. Without it a kill in between would leave the others aside.
void Scheduler::attach_again(const std::string& id) {
  for (const std::string& name : store_.sweeps_of(id)) {
    const auto sweep = jobs_.sweeps().find(name);
    if (sweep == jobs_.sweeps().end() || sweep->second.is_cancelled()) continue;
    attach_job(sweep->second, store_.run_of(name, id));
  }
  for (const std::string& derived : store_.derived_from(id)) {
    if (!store_.known_run(derived).reason.starts_with(kOrigin)) continue;
    store_.requeue(derived, "");
    attach_again(derived);
  }
}

void Scheduler::start_if_wanted(const std::string& id) {
  enqueue_if_possible(id);
  fill();
}

void Scheduler::enqueue_if_possible(const std::string& id) {
  if (!jobs_.find(id) || hold_if_impossible(id)) return;
  jobs_.enqueue(id);
  follow_origin(id);
}

}  // namespace tearless::harness
