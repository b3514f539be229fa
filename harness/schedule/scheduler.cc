#include "harness/schedule/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/words.h"
#include "harness/runs/attempt_files.h"
#include "harness/schedule/policy.h"
#include "harness/store/record.h"

namespace tearless::harness {
namespace fs = std::filesystem;

namespace {

constexpr size_t kSameCrashPauses = 3;   // runs of a sweep with the same crash signature pause it
constexpr int kOutsideEndsPause = 3;     // kills and losses of one run in a row, without progress, pause its sweeps
constexpr int64_t kLogIsFull = 4 << 20;  // bytes; more output than this is no sign of life
constexpr double kQuickEnd = 10;         // seconds; attempts that end sooner, without progress, are delayed
constexpr double kLongestPatience = 60;  // seconds; the longest such delay

int64_t size_or_zero(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

std::string sentence_of(const SchedulerEvent& event) {
  const std::string subject = event.id.empty() ? "" : fmt::format("{}  {}  ", event.id.substr(0, 8), event.label);
  return subject + event.what + (event.text.empty() ? "" : ": " + event.text);
}

Scheduler::Scheduler(Store& store, const Workspace& workspace, Launcher& launcher, Slots slots, Now now,
                     Listener listener)
    : store_(store),
      workspace_(workspace),
      launcher_(launcher),
      slots_(std::move(slots)),
      now_(std::move(now)),
      listener_(std::move(listener)) {
  launcher_.on_end = [this](const std::string& id, LaunchEnd end) { ended(id, end); };
}

// --- what earlier processes or a user left behind -------------------------------------------------------------------

void Scheduler::begin() {
  for (const std::string& id : store_.ids_in(RunState::kRunning)) adopt_or_conclude(id);
}

void Scheduler::adopt_or_conclude(const std::string& id) {
  const RunDirectory run = workspace_.run(id);
  if (launcher_.adopt(id, run.root())) return take_up(id);
  const int64_t newest = run.newest_begun_attempt();
  if (newest == 0 || end_is_recorded(id, newest)) {  // the launch ended before it made an attempt
    store_.move(id, RunState::kRunning, RunState::kQueued, FailureClass::kLost, "it was never started");
    return;
  }
  conclude(id, newest, verdict_of(run, newest), nullptr);
}

bool Scheduler::end_is_recorded(const std::string& id, int64_t attempt) const {
  const std::vector<AttemptRecord> known = store_.attempts_of(id);
  return !known.empty() && known.back().number == attempt && !known.back().outcome.empty();
}

// Adds an attempt that the launcher has adopted to the running ones, and takes its slot.
void Scheduler::take_up(const std::string& id) {
  const RunDirectory run = workspace_.run(id);
  const int64_t newest = run.newest_begun_attempt();
  const std::optional<RunRecord> record = store_.run(id);
  Running& running = running_[id];
  const std::string device = cuda_device_of(run, newest);
  running.slot = device.empty() ? slots_.take_anyway(record->threads) : slots_.take_device(device);
  running.attempts_before = end_is_recorded(id, newest) ? newest : newest - 1;  // its supervisor may not have begun yet
  running.checkpoint_before = run.newest_checkpoint();
  running.since = running.last_sign = now_();
  running.progress.id = id;
  running.progress.label = label_of(id);
  running.progress.updates = record->updates;
  notify("adopted", id, newest > 0 ? fmt::format("attempt {} continues", newest) : "its first attempt is starting");
}

// True if the job is to be run: its run is then queued or running in the store. REQUIRES: it is in jobs_.
bool Scheduler::reconcile(const JobRecord& job, Add how, bool has_folder) {
  const RunDirectory run = workspace_.run(job.id);
  const bool submitted = how != Add::kRestart;
  const std::optional<Verdict> done = has_folder && !running_.contains(job.id) ? verdict_of_done(run) : std::nullopt;
  switch (job.state) {
    case RunState::kDone:
    case RunState::kDiverged:
      if (done && done->state == RunState::kFailed)
        notify("warning", job.id, done->reason + " (the store keeps what it recorded)");
      if (done || !submitted) return false;
      store_.requeue(job.id, "its run folder was deleted");
      break;
    case RunState::kFailed: {
      const bool repaired = done && done->state != RunState::kFailed;
      if (!submitted || (how != Add::kRetry && !repaired)) return false;
      store_.requeue(job.id, "tried again on request");
      break;
    }
    case RunState::kHeld:
      if (!submitted || job.reason == kHeldOnRequest) return false;
      store_.requeue(job.id, "");
      break;
    case RunState::kCancelled:
      if (!submitted) return false;
      store_.requeue(job.id, "");
      break;
    case RunState::kWaitingData:
      if (!submitted || !job.has_settings) return false;
      store_.requeue(job.id, "");
      break;
    case RunState::kQueued:
    case RunState::kRunning:
      break;
  }
  if (const auto running = running_.find(job.id); running != running_.end()) {
    std::optional<PutAside>& then = running->second.then;
    if (submitted && then && then->state == RunState::kCancelled)
      then.reset();  // it is wanted again before it has ended
    return true;
  }
  if (!job.has_settings) return false;
  if (done) {
    record_done(job.id, *done);
    return false;
  }
  if (has_folder && launcher_.adopt(job.id, run.root())) {  // started by hand, or by a harness whose database is lost
    store_.move(job.id, RunState::kQueued, RunState::kRunning);
    take_up(job.id);
    return true;
  }
  if (!slots_.can_ever_run(job.device)) {
    const std::string reason = "it needs a CUDA device, and this machine has none";
    store_.move(job.id, RunState::kQueued, RunState::kHeld, FailureClass::kNone, reason);
    notify("held", job.id, reason);
    return false;
  }
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
  const std::optional<Sweep> record = store_.sweep(id);
  if (!record) throw std::logic_error("no sweep " + id + " in the store");
  std::unique_ptr<ActiveSweep>& kept = sweeps_[id];
  if (!kept) kept = std::make_unique<ActiveSweep>();
  ActiveSweep& sweep = *kept;
  sweep.id = id;
  sweep.program = {.path = record->program, .stamp = record->stamp, .grace_seconds = record->policy.grace_seconds};
  sweep.stall_seconds = record->policy.stall_seconds;
  sweep.priority = record->priority;
  sweep.paused = record->state != SweepState::kActive;
  sweep.cancelled = record->state == SweepState::kCancelled;
  sweep.reason = record->reason;
  sweep.crashes.clear();
  if (sweep.submission == 0) sweep.submission = ++submissions_;
  sweep.total = store_.jobs_in(id);

  const std::vector<std::string> names = folders_in(workspace_.runs());
  const std::unordered_set<std::string> folders(names.begin(), names.end());
  for (const JobRecord& job : store_.jobs_of(id, /*pending_only=*/how == Add::kRestart)) {
    want(sweep, job);
    if (!reconcile(job, how, folders.contains(job.id))) forget(job.id);
  }
  for (const std::string& job : sweep.jobs) enqueue(job);  // those that were known before, too: the state may be new
  fill();
}

// Makes the run a job of the sweep.
void Scheduler::want(ActiveSweep& sweep, const JobRecord& record) {
  const auto [entry, is_new] = jobs_.try_emplace(record.id);
  Job& job = entry->second;
  if (is_new) {
    job.label = record.label;
    job.rank = record.rank;
    job.place = record.place;
    job.needs.alone = policy_of(record.failure).alone && record.state == RunState::kQueued;
  }
  job.updates = record.updates;  // a new submission may change what is not part of the run's id
  job.needs.device = record.device;
  job.needs.threads = record.threads;
  if (!sweep.jobs.insert(record.id).second) return;  // twice in the grid, or submitted again
  job.sweeps.push_back(&sweep);
  if (const auto running = running_.find(record.id); running != running_.end()) {
    running->second.progress.label = record.label;
    running->second.progress.updates = record.updates;
    running->second.stall_seconds = sweep.stall_seconds;
    running->second.give_up_seconds = give_up_after(sweep.program.grace_seconds);
  }
}

// The run has ended or waits for a user: it is no job any more.
void Scheduler::forget(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  for (ActiveSweep* sweep : job->second.sweeps) sweep->jobs.erase(id);
  queue_.erase(id);
  jobs_.erase(job);
  quick_ends_.erase(id);
  outside_ends_.erase(id);
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
               .rank = job.rank,
               .work = job.updates,
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
    if (first_active(jobs_.at(job))) continue;
    queue_.erase(job);
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
  sweep.reason = "it was cancelled";
  notify_sweep("cancelled", id, "");
  store_.set_sweep_state(id, SweepState::kCancelled, "");
  for (const std::string& job : std::set<std::string>(sweep.jobs)) {
    std::vector<ActiveSweep*>& sweeps = jobs_.at(job).sweeps;
    if (sweeps.size() == 1) {
      put_aside(job, RunState::kCancelled, "its sweep was cancelled");
      continue;
    }
    std::erase(sweeps, &sweep);
    sweep.jobs.erase(job);
    enqueue(job);
  }
  fill();
}

void Scheduler::drop(const std::string& id) {
  const auto sweep = sweeps_.find(id);
  if (sweep == sweeps_.end()) return;
  for (const std::string& job : std::set<std::string>(sweep->second->jobs)) {
    std::vector<ActiveSweep*>& sweeps = jobs_.at(job).sweeps;
    std::erase(sweeps, sweep->second.get());
    if (sweeps.empty()) {
      forget(job);
    } else {
      enqueue(job);
    }
  }
  sweeps_.erase(sweep);
}

// Ends the work on a job: at once if it waits, with a checkpoint if it runs.
void Scheduler::put_aside(const std::string& id, RunState state, const std::string& reason) {
  if (const auto running = running_.find(id); running != running_.end()) {
    running->second.then = PutAside{state, reason};
    ask_to_stop(id, running->second, StopReason::kRequest);
    return;
  }
  store_.move(id, RunState::kQueued, state, FailureClass::kNone, reason);
  notify(std::string(name_of(state)), id, reason);
  forget(id);
}

bool Scheduler::cancel_run(const std::string& id) {
  return put_aside_on_request(id, RunState::kCancelled, "cancelled on request");
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
  store_.move(id, record->state, state, FailureClass::kNone, reason);
  notify(std::string(name_of(state)), id, reason);
  return true;
}

bool Scheduler::release(const std::string& id) {
  if (const auto running = running_.find(id); running != running_.end() && running->second.then) {
    running->second.then.reset();  // it is queued again when it has stopped
    return true;
  }
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || record->state != RunState::kHeld) return record && record->state == RunState::kQueued;
  store_.requeue(id, "");
  want_in_known_sweeps(id);
  notify("released", id, "");
  if (jobs_.contains(id)) enqueue(id);
  fill();
  return true;
}

bool Scheduler::retry(const std::string& id) {
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || (record->state != RunState::kFailed && record->state != RunState::kCancelled)) return false;
  store_.requeue(id, "tried again on request");
  want_in_known_sweeps(id);
  notify("queued again", id, "on request");
  if (jobs_.contains(id)) enqueue(id);
  fill();
  return true;
}

// Makes a run that was queued on request a job of every sweep that has it and was added.
void Scheduler::want_in_known_sweeps(const std::string& id) {
  for (const std::string& name : store_.sweeps_of(id)) {
    const auto sweep = sweeps_.find(name);
    if (sweep == sweeps_.end() || sweep->second->cancelled) continue;
    const JobRecord job = store_.job(name, id);
    want(*sweep->second, job);
  }
}

void Scheduler::set_priority(const std::string& id, int64_t priority) {
  ActiveSweep& sweep = *sweeps_.at(id);
  sweep.priority = priority;
  store_.set_priority(id, priority);
  for (const std::string& job : sweep.jobs) enqueue(job);
}

// --- start of attempts ---------------------------------------------------------------------------------------------

// Starts queued runs while slots are free. Runs that do not fit yet are skipped, not waited for.
void Scheduler::fill() {
  while (!stopping_) {
    if (std::any_of(running_.begin(), running_.end(), [](const auto& entry) { return entry.second.alone; })) break;
    std::optional<Slot> slot;
    const auto next = queue_.take(now_(), [&](const JobNeeds& needs) {
      if (needs.alone && !running_.empty()) return false;
      slot = slots_.take(needs.device, needs.threads);
      return slot.has_value();
    });
    if (!next) break;
    if (!launch(next->id, *slot)) slots_.release(*slot);
  }
}

bool Scheduler::launch(const std::string& id, const Slot& slot) {
  const Job& job = jobs_.at(id);
  const ActiveSweep& sweep = *first_active(job);
  const RunDirectory run = workspace_.run(id);
  try {
    const std::string canonical = store_.run(id)->canonical;
    if (fs::exists(run.settings()) && read_file(run.settings()) != canonical) {
      const std::string reason =
          fmt::format("{} was changed by hand; restore it, or delete the run's folder", run.settings().string());
      store_.move(id, RunState::kQueued, RunState::kFailed, FailureClass::kSettings, reason);
      notify("failed", id, reason);
      forget(id);
      return false;
    }
    make_folders(run.root());
    if (!fs::exists(run.settings())) write_atomically(run.settings(), canonical);
    write_atomically(run.local(), store_.local_text(id));
  } catch (const UserError& error) {
    pause_sweeps_of(job, error.what());
    return false;
  }

  // Before the start, not after: if this process dies in between, the next one must look for the attempt.
  store_.move(id, RunState::kQueued, RunState::kRunning);
  Running running;
  running.slot = slot;
  running.alone = job.needs.alone;
  running.stall_seconds = sweep.stall_seconds;
  running.give_up_seconds = give_up_after(sweep.program.grace_seconds);
  const int64_t before = running.attempts_before = run.newest_begun_attempt();
  running.checkpoint_before = run.newest_checkpoint();
  running.since = running.last_sign = now_();
  running.progress.id = id;
  running.progress.label = job.label;
  running.progress.updates = job.updates;
  running_.emplace(id, std::move(running));
  try {
    launcher_.start({.id = id, .folder = run.root(), .cuda_device = slot.cuda_device, .program = sweep.program});
  } catch (const UserError& error) {
    running_.erase(id);
    store_.move(id, RunState::kRunning, RunState::kQueued, FailureClass::kLost, error.what());
    pause_sweeps_of(job, error.what());
    return false;
  }
  notify("started", id, before > 0 ? fmt::format("again (attempt {})", before + 1) : "");
  return true;
}

// --- end of attempts -----------------------------------------------------------------------------------------------

void Scheduler::ended(const std::string& id, LaunchEnd end) {
  const auto node = running_.extract(id);
  const Running& running = node.mapped();
  slots_.release(running.slot);
  const RunDirectory run = workspace_.run(id);
  const int64_t newest = run.newest_begun_attempt();
  if (newest <= running.attempts_before) {
    not_started(id, running, end);
  } else {
    Verdict verdict = verdict_of(run, newest);
    if (verdict.failure == FailureClass::kLost && end == LaunchEnd::kMachine) {
      verdict.failure = FailureClass::kMachine;
      verdict.reason = fmt::format("the end of its attempt could not be written into {}", run.root().string());
    }
    // A supervisor that did not react was killed, and could not write the reason to exit.json.
    if (verdict.failure == FailureClass::kLost && running.stop) {
      verdict.failure = *running.stop == StopReason::kStall ? FailureClass::kStalled : FailureClass::kStopped;
      verdict.reason = "its supervisor did not react and was killed";
    }
    conclude(id, newest, std::move(verdict), &running);
  }
  fill();
}

// The launched process ended before its attempt began. This is not counted as a try.
void Scheduler::not_started(const std::string& id, const Running& running, LaunchEnd end) {
  const RunDirectory run = workspace_.run(id);
  store_.move(id, RunState::kRunning, RunState::kQueued, FailureClass::kLost, "it could not be started");
  if (running.then) return put_aside(id, running.then->state, running.then->reason);
  if (end == LaunchEnd::kUnknown) {  // killed before it wrote start.json
    const Verdict lost{.failure = FailureClass::kLost, .reason = "it was never started", .step = {}};
    queue_again(id, lost, running.alone, &running);
    return note_outside_end(id, lost, &running);
  }
  if (!jobs_.contains(id)) return;
  enqueue(id);
  if (stopping_) return;
  pause_sweeps_of(
      jobs_.at(id),
      end == LaunchEnd::kRefused
          ? fmt::format("another program is using {} (it holds {})", run.root().string(), run.lock().string())
          : fmt::format("no attempt could be written into {}: is the disk full, or the folder read-only?",
                        run.root().string()));
}

void Scheduler::conclude(const std::string& id, int64_t attempt, Verdict verdict, const Running* running) {
  const RetryPolicy policy = policy_of(verdict.failure);
  const bool asked_for = running && running->then && verdict.state == RunState::kFailed;
  bool again = false;
  store_.in_transaction([&] {
    record_end(store_, workspace_, id, attempt, verdict);
    again = verdict.state == RunState::kFailed &&
            (asked_for || policy.tries == kNotCounted || store_.failures_of(id, verdict.failure) < policy.tries);
    store_.move(id, RunState::kRunning, again ? RunState::kQueued : verdict.state, verdict.failure, verdict.reason,
                verdict.step);
  });
  note_speed(id, running);
  if (asked_for) return put_aside(id, running->then->state, running->then->reason);
  if (!again) {
    notify(
        std::string(name_of(verdict.state)), id,
        verdict.state == RunState::kDiverged ? fmt::format("at update {}", verdict.step.value_or(0)) : verdict.reason);
  } else {
    queue_again(id, verdict, policy.alone, running);
  }
  if (verdict.failure == FailureClass::kCrashed) note_crash(id, verdict.reason);
  if (verdict.failure == FailureClass::kMachine && jobs_.contains(id)) {
    pause_sweeps_of(jobs_.at(id), fmt::format("{} ({})", verdict.reason, id));
  }
  note_outside_end(id, verdict, running);
  if (!again) forget(id);
}

void Scheduler::queue_again(const std::string& id, const Verdict& verdict, bool alone, const Running* running) {
  // Failures that do not count as a try have no limit. Attempts that end quickly and without progress are therefore
  // delayed: 1, 2, 4 … seconds.
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    const bool quick =
        running && !running->stop && now_() - running->since < kQuickEnd && !has_made_progress(id, *running);
    quick_ends_[id] = quick ? quick_ends_[id] + 1 : 0;
    job->second.not_before = now_() + (quick ? std::min(kLongestPatience, std::exp2(quick_ends_[id] - 1)) : 0);
    job->second.needs.alone = alone;
    enqueue(id);
  }
  notify("queued again", id, fmt::format("{}: {}", name_of(verdict.failure), verdict.reason));
}

void Scheduler::note_crash(const std::string& id, const std::string& reason) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  for (ActiveSweep* sweep : std::vector(job->second.sweeps)) {
    std::set<std::string>& runs = sweep->crashes[crash_signature(reason)];
    runs.insert(id);
    if (runs.size() < kSameCrashPauses) continue;
    pause(sweep->id,
          fmt::format("{} runs crashed in the same way ({}); `tearless log {}` shows more", runs.size(), reason, id),
          OnPause::kContinue);
  }
}

bool Scheduler::has_made_progress(const std::string& id, const Running& running) const {
  return workspace_.run(id).newest_checkpoint() > running.checkpoint_before;
}

void Scheduler::note_outside_end(const std::string& id, const Verdict& verdict, const Running* running) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  const bool outside = verdict.failure == FailureClass::kKilled || verdict.failure == FailureClass::kLost;
  const bool progress = running && has_made_progress(id, *running);
  int& ends = outside_ends_[id];
  ends = !outside ? 0 : progress ? 1 : ends + 1;
  if (ends < kOutsideEndsPause) return;
  ends = 0;
  pause_sweeps_of(job->second, fmt::format("{} was killed from outside {} times and made no progress in between", id,
                                           kOutsideEndsPause));
}

void Scheduler::pause_sweeps_of(const Job& job, const std::string& why) {
  for (ActiveSweep* sweep : std::vector(job.sweeps)) pause(sweep->id, why, OnPause::kContinue);
}

// Remembers how fast the attempt was, for the time that the sweeps' waiting jobs will need.
void Scheduler::note_speed(const std::string& id, const Running* running) {
  const auto job = jobs_.find(id);
  if (!running || job == jobs_.end() || running->progress.updates_per_second <= 0) return;
  for (ActiveSweep* sweep : job->second.sweeps) sweep->updates_per_second = running->progress.updates_per_second;
}

void Scheduler::stop() {
  stopping_ = true;
  for (auto& [id, running] : running_) ask_to_stop(id, running, StopReason::kRequest);
}

void Scheduler::kill_all() {
  stopping_ = true;
  for (const auto& [id, running] : running_) launcher_.kill(id);
}

void Scheduler::ask_to_stop(const std::string& id, Running& running, StopReason why) {
  running.stop = why;
  running.stop_asked_at = now_();
  running.progress.stopping = true;
  launcher_.stop(id, why);
}

// --- polling -------------------------------------------------------------------------------------------------------

void Scheduler::tick() {
  store_.in_transaction([&] {
    for (auto& [id, running] : running_) poll(id, running);
  });
  fill();
}

void Scheduler::poll(const std::string& id, Running& running) {
  const RunDirectory run = workspace_.run(id);
  if (running.stop && now_() - running.stop_asked_at > running.give_up_seconds) {
    launcher_.kill(id);
    running.stop_asked_at = now_();  // kill again after the same time if it is still alive
  }
  const int64_t newest = run.newest_begun_attempt();
  if (newest <= running.attempts_before) return;
  if (!running.start_recorded) {
    record_start(store_, workspace_, id, newest);
    running.start_recorded = true;
  }
  running.progress.take(record_new_metrics(store_, workspace_, id), now_());
  const nlohmann::json measured = read_attempt(run, newest).measured;
  if (measured.contains("tokens_per_second") && measured["tokens_per_second"].is_number()) {
    running.progress.tokens_per_second = measured["tokens_per_second"];
  }

  if (gives_sign_of_life(run, newest, running)) running.last_sign = now_();
  const bool too_quiet = running.stall_seconds > 0 && now_() - running.last_sign > running.stall_seconds;
  if (too_quiet && !running.stop) ask_to_stop(id, running, StopReason::kStall);
}

// A sign of life is growth of metrics.jsonl, or of log.txt until that is full: a program that floods its log may be
// making no progress.
bool Scheduler::gives_sign_of_life(const RunDirectory& run, int64_t attempt, Running& running) {
  const int64_t log = size_or_zero(run.attempt(attempt) / "log.txt");
  running.log_is_full |= log < running.log_seen || log > kLogIsFull;
  running.log_seen = log;
  const int64_t size = size_or_zero(run.metrics()) + (running.log_is_full ? 0 : log);
  return std::exchange(running.size_seen, size) != size;
}

// --- what others ask -------------------------------------------------------------------------------------------------

bool Scheduler::is_stopping_any() const {
  return std::any_of(running_.begin(), running_.end(), [](const auto& entry) { return entry.second.stop.has_value(); });
}

bool Scheduler::idle(const std::string& id) const {
  const auto sweep = sweeps_.find(id);
  if (sweep == sweeps_.end()) return true;
  return std::none_of(sweep->second->jobs.begin(), sweep->second->jobs.end(), [&](const std::string& job) {
    return running_.contains(job) || (!stopping_ && queue_.contains(job));
  });
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
  const auto running = std::count_if(running_.begin(), running_.end(),
                                     [&](const auto& entry) { return sweep->second->jobs.contains(entry.first); });
  return {.total = sweep->second->total,
          .waiting = static_cast<int64_t>(sweep->second->jobs.size()) - running,
          .running = running};
}

int64_t Scheduler::priority(const std::string& id) const {
  const auto sweep = sweeps_.find(id);
  return sweep == sweeps_.end() ? 0 : sweep->second->priority;
}

std::optional<double> Scheduler::seconds_left(const std::string& id) const {
  const auto found = sweeps_.find(id);
  if (found == sweeps_.end()) return std::nullopt;
  const ActiveSweep& sweep = *found->second;
  double updates_left = 0, speed = 0;
  int64_t known = 0, unknown = 0;
  for (const auto& [job, running] : running_) {
    if (!sweep.jobs.contains(job)) continue;
    updates_left += static_cast<double>(std::max<int64_t>(0, running.progress.updates - running.progress.step));
    speed += running.progress.updates_per_second;
    ++(running.progress.updates_per_second > 0 ? known : unknown);
  }
  // An attempt that has just started is taken to be as fast as the others, or as the last one that has ended.
  const double typical = known > 0 ? speed / static_cast<double>(known) : sweep.updates_per_second;
  speed += typical * static_cast<double>(unknown);
  for (const std::string& job : sweep.jobs) {
    if (!running_.contains(job)) updates_left += static_cast<double>(jobs_.at(job).updates);
  }
  if (speed <= 0) return std::nullopt;
  return updates_left / speed;
}

std::string Scheduler::why_waiting(const std::string& id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || running_.contains(id)) return "";
  const Job& job = found->second;
  if (!first_active(job)) return fmt::format("its sweep is paused: {}", job.sweeps.front()->reason);
  if (stopping_) return "no run is started any more";
  if (job.not_before > now_()) {
    return fmt::format("its last attempt ended quickly; the next one starts in {:.0f} s", job.not_before - now_());
  }
  const std::string running = counted(static_cast<int64_t>(running_.size()), "attempt");
  if (job.needs.alone) return fmt::format("it needs the machine to itself; running: {}", running);
  const std::string needs = job.needs.device == "cuda" ? "a CUDA device" : counted(job.needs.threads, "CPU thread");
  return fmt::format("it needs {}; running: {}", needs, running);
}

std::string Scheduler::label_of(const std::string& id) const {
  const auto job = jobs_.find(id);
  return job == jobs_.end() ? id : job->second.label;
}

void Scheduler::notify(std::string what, const std::string& id, std::string text) const {
  std::vector<std::string> sweeps;
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    for (const ActiveSweep* sweep : job->second.sweeps) sweeps.push_back(sweep->id);
  }
  listener_({std::move(what), id, label_of(id), std::move(text), std::move(sweeps)});
}

void Scheduler::notify_sweep(std::string what, const std::string& sweep, std::string text) const {
  listener_({std::move(what), "", "", std::move(text), {sweep}});
}

}  // namespace tearless::harness
