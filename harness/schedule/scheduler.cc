#include "harness/schedule/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "harness/runs/attempt_files.h"
#include "harness/schedule/policy.h"
#include "harness/store/record.h"

namespace tearless::harness {

namespace {

constexpr const char* kSweepCancelled = "its sweep was cancelled";
constexpr const char* kWasCancelled = "it was cancelled";
constexpr const char* kCancelledOnRequest = "cancelled on request";

}  // namespace

std::string sentence_of(const SchedulerEvent& event) {
  const std::string subject = event.id.empty() ? "" : fmt::format("{}  {}  ", event.id.substr(0, 8), event.label);
  return subject + event.what + (event.text.empty() ? "" : ": " + event.text);
}

Scheduler::Scheduler(Store& store, const Workspace& workspace, Launcher& launcher, Resources resources, Now now,
                     Listener listener)
    : store_(store),
      workspace_(workspace),
      launcher_(launcher),
      resources_(std::move(resources)),
      now_(std::move(now)),
      listener_(std::move(listener)) {
  launcher_.on_end = [this](const std::string& id, LaunchEnd end) { ended(id, end); };
}

// --- what earlier processes or a user left behind -------------------------------------------------------------------

void Scheduler::begin() {
  for (const auto& [shape, learnt] : store_.shapes()) resources_.restore(shape, learnt);
  for (const std::string& id : store_.ids_in(RunState::kRunning)) adopt_or_conclude(id);
  // The process that was to cancel them may have been killed before their attempts had ended, and in a rebuilt database
  // they are queued.
  for (const Sweep& sweep : store_.sweeps()) {
    if (sweep.state == SweepState::kCancelled) cancel_unwanted(sweep.id);
  }
}

void Scheduler::adopt_or_conclude(const std::string& id) {
  const RunDirectory run = workspace_.run(id);
  if (launcher_.adopt(id, run.root())) return track_adopted(id);
  const int64_t newest = run.newest_begun_attempt();
  Running ended;
  ended.requested = requested_end_of(store_.run(id)->reason);
  if (newest > 0 && !end_is_recorded(id, newest)) {
    return conclude(id, newest, verdict_of(run, newest), ended.requested ? &ended : nullptr);
  }
  store_.move(id, RunState::kRunning, RunState::kQueued, FailureClass::kLost, "it was never started");
  if (ended.requested) put_aside(id, ended.requested->state, ended.requested->reason);
}

// What a user asked for while the run was running; it is the run's reason in the store until its attempt has ended, so
// that a request outlives the process that was to carry it out.
std::optional<Scheduler::RequestedEnd> Scheduler::requested_end_of(const std::string& reason) {
  if (reason == kHeldOnRequest) return RequestedEnd{RunState::kHeld, reason};
  if (reason == kCancelledOnRequest || reason == kSweepCancelled) return RequestedEnd{RunState::kCancelled, reason};
  return std::nullopt;
}

void Scheduler::set_requested(const std::string& id, Running& running, std::optional<RequestedEnd> requested) {
  running.requested = std::move(requested);
  store_.set_reason(id, running.requested ? running.requested->reason : "");
}

bool Scheduler::end_is_recorded(const std::string& id, int64_t attempt) const {
  const std::vector<AttemptRecord> known = store_.attempts_of(id);
  return !known.empty() && known.back().number == attempt && !known.back().outcome.empty();
}

// Adds an attempt that the launcher has adopted to the running ones, and reserves what it uses.
void Scheduler::track_adopted(const std::string& id) {
  const RunDirectory run = workspace_.run(id);
  const int64_t newest = run.newest_begun_attempt();
  const std::optional<RunRecord> record = store_.run(id);
  Running& running = running_[id];
  const std::string device = cuda_device_of(run, newest);
  running.needs = record->needs;
  running.needs.device = device.empty() ? "cpu" : "cuda";  // where it runs, whatever was submitted since
  running.needs.alone = policy_of(record->failure).alone;
  running.reservation = resources_.reserve_anyway(running.needs, device, cores_of(run, newest));
  // Its supervisor may not have begun yet.
  running.attempts_before = newest == 0 || end_is_recorded(id, newest) ? newest : newest - 1;
  running.checkpoint_before = run.newest_checkpoint();
  running.since = now_();
  running.signs = SignsOfLife(running.since);
  running.progress.id = id;
  running.progress.label = label_of(id);
  running.progress.updates = record->updates;
  notify("adopted", id, newest > 0 ? fmt::format("attempt {} continues", newest) : "its first attempt is starting");
  running.requested = requested_end_of(record->reason);
  if (running.requested) ask_to_stop(id, running, StopReason::kRequest);
}

// True if the job is to be run: its run is then queued or running in the store. REQUIRES: it is in jobs_.
bool Scheduler::reconcile(const RunRecord& job, Add how) {
  const RunDirectory run = workspace_.run(job.id);
  const bool has_folder = std::filesystem::exists(run.root());  // else there is nothing more to look for
  const bool submitted = how != Add::kRestart;
  const std::optional<Verdict> done = has_folder && !running_.contains(job.id) ? verdict_of_done(run) : std::nullopt;
  switch (job.state) {
    case RunState::kDone:
    case RunState::kDiverged:
      if (done && done->state == RunState::kFailed)
        notify("warning", job.id, done->reason + " (the store keeps what it recorded)");
      if (done || !submitted) return false;
      requeue(job.id, "its run folder was deleted");
      break;
    case RunState::kFailed: {
      const bool repaired = done && done->state != RunState::kFailed;
      if (!submitted || (how != Add::kRetry && !repaired)) return false;
      requeue(job.id, "tried again on request");
      break;
    }
    case RunState::kHeld:
      if (!submitted || job.reason == kHeldOnRequest) return false;
      requeue(job.id, "");
      break;
    case RunState::kCancelled:
      if (!submitted) return false;
      requeue(job.id, "");
      break;
    case RunState::kWaitingData:
      if (job.settings.empty() || (stopping_ && !submitted)) return false;
      try_data_again(job.id);
      break;
    case RunState::kQueued:
    case RunState::kRunning:
      break;
  }
  if (const auto running = running_.find(job.id); running != running_.end()) {
    const std::optional<RequestedEnd>& requested = running->second.requested;
    if (submitted && requested && requested->state == RunState::kCancelled) {  // it is wanted again before it has ended
      set_requested(job.id, running->second, std::nullopt);
      for (ActiveSweep* sweep : std::vector(jobs_.at(job.id).sweeps)) {
        if (sweep->cancelled) detach_job(*sweep, job.id);
      }
    }
    return true;
  }
  if (job.settings.empty()) return false;
  if (done) {
    record_done(job.id, *done);
    return false;
  }
  if (has_folder && launcher_.adopt(job.id, run.root())) {  // started by hand, or by a harness whose database is lost
    store_.move(job.id, RunState::kQueued, RunState::kRunning, job.failure);
    track_adopted(job.id);
    return true;
  }
  return !hold_without_device(job.id);
}

// Holds a queued job if this machine lacks its device. It is then no job any more.
bool Scheduler::hold_without_device(const std::string& id) {
  if (resources_.can_ever({.device = jobs_.at(id).needs.device})) return false;
  put_aside(id, RunState::kHeld, "it needs a CUDA device, and this machine has none");
  return true;
}

// Records the result of a queued run that has a DONE: it was trained before the store knew it.
void Scheduler::record_done(const std::string& id, const Verdict& done) {
  store_.in_transaction([&] {
    record_end(store_, workspace_, id, workspace_.run(id).newest_begun_attempt(), done);
    store_.move(id, RunState::kQueued, done.state, done.failure, done.reason, done.step);
  });
  notify(std::string(name_of(done.state)), id, done.state == RunState::kFailed ? done.reason : "was already trained");
}

// --- sweeps and their jobs -------------------------------------------------------------------------------------------

void Scheduler::add(const std::string& id, Add how) {
  add_jobs(id, how);
  fill();
}

// Nothing is started before all are there: the last of them may be the one that goes first.
void Scheduler::add_active() {
  for (const std::string& id : store_.active_sweeps()) add_jobs(id, Add::kRestart);
  fill();
}

void Scheduler::add_jobs(const std::string& id, Add how) {
  const std::optional<Sweep> record = store_.sweep(id);
  if (!record) throw std::logic_error("no sweep " + id + " in the store");
  std::unique_ptr<ActiveSweep>& kept = sweeps_[id];
  if (!kept) kept = std::make_unique<ActiveSweep>();
  ActiveSweep& sweep = *kept;
  sweep.id = id;
  sweep.program = {.path = std::filesystem::absolute(workspace_.root() / record->program),
                   .stamp = record->stamp,
                   .grace_seconds = record->policy.grace_seconds};
  sweep.stall_seconds = record->policy.stall_seconds;
  sweep.memory_bytes = record->policy.memory_bytes;
  sweep.tries = record->policy.tries;
  sweep.priority = record->priority;
  sweep.paused = record->state != SweepState::kActive;
  sweep.cancelled = record->state == SweepState::kCancelled;
  sweep.reason = sweep.cancelled ? kWasCancelled : record->reason;
  sweep.crashes.clear();
  sweep.submission = record->submission;
  sweep.axes = store_.label_axes_of(id);
  count_again();
  if (sweep.cancelled) return;

  std::vector<RunState> states;  // all
  if (how == Add::kRestart) states = {RunState::kQueued, RunState::kRunning, RunState::kWaitingData};
  for (const RunRecord& run : store_.runs_of(id, states)) {
    attach_job(sweep, run);
    if (!reconcile(run, how)) drop_job(run.id);
  }
  for (const std::string& job : sweep.jobs) enqueue(job);  // those that were known before, too: the state may be new
}

// A run waits for its data, or does so no more.
void Scheduler::count_again() {
  for (const auto& [id, sweep] : sweeps_) sweep->total.reset();
}

// Makes the run a job of the sweep.
void Scheduler::attach_job(ActiveSweep& sweep, const RunRecord& record) {
  const auto [entry, is_new] = jobs_.try_emplace(record.id);
  Job& job = entry->second;
  if (is_new) {
    job.run = record;
    job.place = record.place;
  }
  const bool alone = is_new ? policy_of(record.failure).alone && record.state == RunState::kQueued : job.needs.alone;
  // A new submission may change what is not part of the run's id.
  for (ActiveSweep* other : job.sweeps) other->updates += record.updates - job.run.updates;
  job.run.updates = record.updates;
  job.run.local = record.local;
  job.run.data = record.data;
  job.needs = record.needs;
  job.needs.alone = alone;
  job.needs.declared = sweep.memory_bytes > 0;
  if (job.needs.declared) job.needs.memory_bytes = sweep.memory_bytes;
  if (!sweep.jobs.insert(record.id).second) return;  // twice in the grid, or submitted again
  job.sweeps.push_back(&sweep);
  sweep.updates += job.run.updates;
  if (const auto running = running_.find(record.id); running != running_.end()) {
    running->second.progress.label = label_of(record.id);
    running->second.progress.axes = sweep.axes;
    running->second.progress.updates = record.updates;
    running->second.stall_seconds = sweep.stall_seconds;
    running->second.give_up_seconds = give_up_after(sweep.program.grace_seconds);
  }
}

// Removes the job from this sweep, and drops it when no sweep that was added has it. Its run stays queued in the store.
void Scheduler::detach_job(ActiveSweep& sweep, const std::string& id) {
  Job& job = jobs_.at(id);
  std::erase(job.sweeps, &sweep);
  subtract_job(sweep, id, job);
  const bool is_active = first_active(job) != nullptr;
  job.sweeps.empty() ? drop_job(id) : enqueue(id);
  const auto running = running_.find(id);
  if (!is_active && running != running_.end()) ask_to_stop(id, running->second, StopReason::kRequest);
}

// The run has ended or waits for a user: it is no job any more.
void Scheduler::drop_job(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  for (ActiveSweep* sweep : job->second.sweeps) subtract_job(*sweep, id, job->second);
  queue_.erase(id);
  jobs_.erase(job);
  quick_ends_.erase(id);
  outside_ends_.erase(id);
}

void Scheduler::subtract_job(ActiveSweep& sweep, const std::string& id, const Job& job) {
  sweep.jobs.erase(id);
  sweep.updates -= job.run.updates;
}

// Puts a job into its place in the queue, or takes it out while none of its sweeps is active.
void Scheduler::enqueue(const std::string& id) {
  queue_.erase(id);
  if (running_.contains(id)) return;
  const Job& job = jobs_.at(id);
  const ActiveSweep* sweep = first_active(job);
  if (!sweep) return;
  queue_.push(id, job.needs,
              {.priority = sweep->priority,
               .submission = sweep->submission,
               .rank = job.run.rank,
               .work = job.run.updates,
               .place = job.place},
              job.not_before);
}

Scheduler::ActiveSweep* Scheduler::first_active(const Job& job) const {
  ActiveSweep* first = nullptr;
  for (ActiveSweep* sweep : job.sweeps) {
    if (sweep->paused) continue;
    const auto before = [](const ActiveSweep& a, const ActiveSweep& b) {
      return std::pair(-a.priority, a.submission) < std::pair(-b.priority, b.submission);
    };
    if (!first || before(*sweep, *first)) first = sweep;
  }
  return first;
}

void Scheduler::pause(const std::string& id, const std::string& why, OnPause running) {
  ActiveSweep& sweep = *sweeps_.at(id);
  if (!sweep.paused) {
    sweep.paused = true;
    sweep.reason = why;
    notify_sweep("paused", id, why);
    store_.set_sweep_state(id, SweepState::kPaused, why);
  }
  for (const std::string& job : sweep.jobs) {
    enqueue(job);  // in the place of another sweep, if one is active
    if (first_active(jobs_.at(job))) continue;
    const auto attempt = running_.find(job);
    if (running == OnPause::kStop && attempt != running_.end()) ask_to_stop(job, attempt->second, StopReason::kRequest);
  }
}

void Scheduler::resume(const std::string& id) {
  ActiveSweep& sweep = *sweeps_.at(id);
  if (!sweep.paused || sweep.cancelled) return;
  sweep.paused = false;
  sweep.reason.clear();
  sweep.crashes.clear();
  notify_sweep("resumed", id, "");
  store_.set_sweep_state(id, SweepState::kActive, "");
  for (const std::string& job : sweep.jobs) enqueue(job);
  fill();
}

void Scheduler::cancel(const std::string& id) {
  ActiveSweep& sweep = *sweeps_.at(id);
  sweep.paused = sweep.cancelled = true;
  sweep.reason = kWasCancelled;
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
  for (const RunRecord& run : store_.runs_of(sweep, {RunState::kQueued, RunState::kRunning, RunState::kWaitingData})) {
    const auto running = running_.find(run.id);
    const bool is_held =
        running != running_.end() && running->second.requested && running->second.requested->state == RunState::kHeld;
    if (run.settings.empty() || is_held || store_.is_wanted(run.id)) continue;
    const bool waits = run.state == RunState::kWaitingData;
    put_aside(run.id, RunState::kCancelled, kSweepCancelled, waits ? RunState::kWaitingData : RunState::kQueued);
  }
}

void Scheduler::drop(const std::string& id) {
  const auto sweep = sweeps_.find(id);
  if (sweep == sweeps_.end()) return;
  for (const std::string& job : std::set<std::string>(sweep->second->jobs)) detach_job(*sweep->second, job);
  sweeps_.erase(sweep);
}

// Ends the work on a job: at once if it waits, with a checkpoint if it runs. `from`: its state if it does not run.
void Scheduler::put_aside(const std::string& id, RunState state, const std::string& reason, RunState from) {
  if (const auto running = running_.find(id); running != running_.end()) {
    set_requested(id, running->second, RequestedEnd{state, reason});
    ask_to_stop(id, running->second, StopReason::kRequest);
    return;
  }
  store_.move(id, from, state, FailureClass::kNone, reason);
  if (from == RunState::kWaitingData) count_again();
  notify(std::string(name_of(state)), id, reason);
  drop_job(id);
}

bool Scheduler::cancel_run(const std::string& id) {
  return put_aside_on_request(id, RunState::kCancelled, kCancelledOnRequest);
}
bool Scheduler::hold(const std::string& id) { return put_aside_on_request(id, RunState::kHeld, kHeldOnRequest); }

bool Scheduler::put_aside_on_request(const std::string& id, RunState state, const std::string& reason) {
  const std::optional<RunRecord> record = store_.run(id);
  if (!record) return false;
  if (record->state == state) return true;
  if (jobs_.contains(id) || running_.contains(id)) {
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
  if (const auto running = running_.find(id); running != running_.end()) {
    const std::optional<RequestedEnd>& requested = running->second.requested;
    if (!requested || requested->state != RunState::kHeld) return false;
    // Without more to follow it is queued again when it has stopped.
    set_requested(id, running->second, is_wanted ? std::nullopt : std::optional(cancelled));
    return true;
  }
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || record->state != RunState::kHeld) return record && record->state == RunState::kQueued;
  if (!is_wanted) {
    store_.move(id, RunState::kHeld, cancelled.state, FailureClass::kNone, cancelled.reason);
    notify("cancelled", id, cancelled.reason);
    return true;
  }
  requeue(id, "");
  notify("released", id, "");
  start_if_wanted(id);
  return true;
}

bool Scheduler::retry(const std::string& id) {
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || (record->state != RunState::kFailed && record->state != RunState::kCancelled)) return false;
  if (!store_.is_wanted(id)) return false;
  requeue(id, "tried again on request");
  notify("queued again", id, "on request");
  start_if_wanted(id);
  return true;
}

// Queues a run on request.
void Scheduler::requeue(const std::string& id, const std::string& reason) {
  store_.requeue(id, reason);
  attach_again(id);
}

// Makes a run that is queued again a job of every sweep that has it and was added.
void Scheduler::attach_again(const std::string& id) {
  for (const std::string& name : store_.sweeps_of(id)) {
    const auto sweep = sweeps_.find(name);
    if (sweep == sweeps_.end() || sweep->second->cancelled) continue;
    attach_job(*sweep->second, store_.run_of(name, id));
  }
}

void Scheduler::start_if_wanted(const std::string& id) {
  if (jobs_.contains(id) && !hold_without_device(id)) enqueue(id);
  fill();
}

void Scheduler::set_priority(const std::string& id, int64_t priority) {
  ActiveSweep& sweep = *sweeps_.at(id);
  sweep.priority = priority;
  store_.set_priority(id, priority);
  for (const std::string& job : sweep.jobs) enqueue(job);
}

// --- what others ask -------------------------------------------------------------------------------------------------

bool Scheduler::is_stopping_any() const {
  return std::any_of(running_.begin(), running_.end(), [](const auto& entry) { return entry.second.stop.has_value(); });
}

bool Scheduler::idle(const std::string& id) const {
  const auto found = sweeps_.find(id);
  if (found == sweeps_.end()) return true;
  const ActiveSweep& sweep = *found->second;
  const bool runs = std::any_of(running_.begin(), running_.end(),
                                [&](const auto& entry) { return sweep.jobs.contains(entry.first); });
  if (runs || stopping_) return !runs;
  if (!sweep.paused) return sweep.jobs.empty();  // each of them is in the queue
  return std::none_of(sweep.jobs.begin(), sweep.jobs.end(),
                      [&](const std::string& job) { return queue_.contains(job); });  // for another sweep
}

std::string Scheduler::paused(const std::string& id) const {
  const auto sweep = sweeps_.find(id);
  return sweep == sweeps_.end() || !sweep->second->paused ? "" : sweep->second->reason;
}

std::vector<Progress> Scheduler::progress(const std::optional<std::string>& sweep) const {
  std::vector<Progress> all;
  for (const auto& [id, running] : running_) {
    if (!sweep || is_job_of(id, *sweep)) all.push_back(running.progress);
  }
  std::sort(all.begin(), all.end(), [](const Progress& a, const Progress& b) { return a.label < b.label; });
  return all;
}

bool Scheduler::is_job_of(const std::string& id, const std::string& sweep) const {
  const auto found = sweeps_.find(sweep);
  return found != sweeps_.end() && found->second->jobs.contains(id);
}

SweepCounts Scheduler::counts(const std::string& id) const {
  const auto sweep = sweeps_.find(id);
  if (sweep == sweeps_.end()) return {};
  std::optional<int64_t>& total = sweep->second->total;
  if (!total) {
    total = 0;
    for (const auto& [state, runs] : store_.counts_of(id)) {
      if (state != RunState::kWaitingData) *total += runs;
    }
  }
  const auto running = std::count_if(running_.begin(), running_.end(),
                                     [&](const auto& entry) { return sweep->second->jobs.contains(entry.first); });
  return {.total = *total, .waiting = static_cast<int64_t>(sweep->second->jobs.size()) - running, .running = running};
}

int64_t Scheduler::priority(const std::string& id) const {
  const auto sweep = sweeps_.find(id);
  return sweep == sweeps_.end() ? 0 : sweep->second->priority;
}

std::optional<double> Scheduler::seconds_left(const std::string& id) const {
  const auto found = sweeps_.find(id);
  if (found == sweeps_.end()) return std::nullopt;
  const ActiveSweep& sweep = *found->second;
  auto updates_left = static_cast<double>(sweep.updates);
  double speed = 0;
  int64_t known = 0, unknown = 0;
  for (const auto& [job, running] : running_) {
    if (!sweep.jobs.contains(job)) continue;
    updates_left -= static_cast<double>(std::min(running.progress.updates, running.progress.step));
    speed += running.progress.updates_per_second;
    ++(running.progress.updates_per_second > 0 ? known : unknown);
  }
  // An attempt that has just started is taken to be as fast as the others, or as the last one that has ended.
  const double typical = known > 0 ? speed / static_cast<double>(known) : sweep.updates_per_second;
  speed += typical * static_cast<double>(unknown);
  if (speed <= 0) return std::nullopt;
  return updates_left / speed;
}

std::string Scheduler::why(const std::string& id) const {
  if (const auto running = running_.find(id); running != running_.end()) {
    return resources_.why_here(running->second.needs, running->second.reservation);
  }
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return why_nobody_works_on(id);
  const Job& job = found->second;
  if (!first_active(job)) return fmt::format("its sweep is paused: {}", job.sweeps.front()->reason);
  if (stopping_) return "no run is started any more";
  if (job.not_before > now_()) {
    return fmt::format("its last attempt ended quickly; the next one starts in {:.0f} s", job.not_before - now_());
  }
  const std::string why_not = resources_.why_not(job.needs);
  return why_not.empty() ? "runs of higher order are started first" : why_not;
}

// Of a run whose sweeps were not added.
std::string Scheduler::why_nobody_works_on(const std::string& id) const {
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || record->state != RunState::kQueued) return "";
  for (const std::string& name : store_.sweeps_of(id)) {
    const Sweep sweep = *store_.sweep(name);
    if (sweep.state == SweepState::kPaused) return fmt::format("its sweep is paused: {}", sweep.reason);
  }
  return "its sweep waits for a tearless daemon";
}

std::string Scheduler::label_of(const std::string& id) const {
  const auto job = jobs_.find(id);
  return job == jobs_.end() ? id : harness::label_of(job->second.run);
}

void Scheduler::notify(std::string what, const std::string& id, std::string text) const {
  std::vector<std::string> sweeps;
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    for (const ActiveSweep* sweep : job->second.sweeps) sweeps.push_back(sweep->id);
  } else {
    sweeps = store_.sweeps_of(id);
  }
  listener_({std::move(what), id, label_of(id), std::move(text), std::move(sweeps)});
}

void Scheduler::notify_sweep(std::string what, const std::string& sweep, std::string text) const {
  listener_({std::move(what), "", "", std::move(text), {sweep}});
}

}  // namespace tearless::harness
