#include "harness/schedule/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "harness/runs/attempt_files.h"
#include "harness/schedule/policy.h"
#include "harness/store/record.h"

namespace tearless::harness {
namespace fs = std::filesystem;

namespace {

constexpr size_t kSameCrashPauses = 3;   // runs with the same crash signature pause the sweep
constexpr int kOutsideEndsPause = 3;     // kills and losses of one run in a row, without progress, pause the sweep
constexpr int64_t kLogIsFull = 4 << 20;  // bytes; more output than this is no sign of life
constexpr double kQuickEnd = 10;         // seconds; attempts that end sooner, without progress, are delayed
constexpr double kLongestPatience = 60;  // seconds; the longest such delay

int64_t size_or_zero(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

Scheduler::Scheduler(Store& store, const Workspace& workspace, Launcher& launcher, Slots slots,
                     SchedulerOptions options, Now now, Listener listener)
    : store_(store),
      workspace_(workspace),
      launcher_(launcher),
      slots_(std::move(slots)),
      options_(options),
      now_(std::move(now)),
      listener_(std::move(listener)) {
  launcher_.on_end = [this](const std::string& id, LaunchEnd end) { ended(id, end); };
}

// --- start of the sweep: the state that earlier processes or a user left behind -------------------------------------

void Scheduler::begin(std::vector<Job> jobs) {
  std::vector<std::string> order;
  for (Job& job : jobs) {
    const std::string id = job.id;
    if (jobs_.emplace(id, std::move(job)).second) order.push_back(id);
  }
  // Runs of other sweeps too: their attempts occupy slots, and no other process will record how they end.
  for (const std::string& id : store_.ids_in(RunState::kRunning)) adopt_or_conclude(id);
  std::set<std::string> queued;
  for (const Queued& again : queue_) queued.insert(again.id);
  for (const std::string& id : order) {
    if (!running_.contains(id) && !queued.contains(id)) reconcile(jobs_.at(id));
  }
  fill();
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
  const auto job = jobs_.find(id);
  Running& running = running_[id];
  running.ours = job != jobs_.end();
  const std::string device = cuda_device_of(run, newest);
  running.slot =
      device.empty() ? slots_.take_anyway(running.ours ? job->second.threads : 1) : slots_.take_device(device);
  running.attempts_before = end_is_recorded(id, newest) ? newest : newest - 1;  // its supervisor may not have begun yet
  running.checkpoint_before = run.newest_checkpoint();
  running.since = running.last_sign = now_();
  running.progress.id = id;
  running.progress.label = label_of(id);
  running.progress.updates = running.ours ? job->second.updates : 0;
  notify("adopted", id, newest > 0 ? fmt::format("attempt {} continues", newest) : "its first attempt is starting");
}

void Scheduler::reconcile(const Job& job) {
  const RunDirectory run = workspace_.run(job.id);
  const std::optional<RunRecord> record = store_.run(job.id);
  switch (record->state) {
    case RunState::kDone:
    case RunState::kDiverged: {
      const std::optional<Verdict> done = verdict_of_done(run);
      if (done && done->state == RunState::kFailed)
        notify("warning", job.id, done->reason + " (the store keeps what it recorded)");
      if (done) return;
      store_.requeue(job.id, "its run folder was deleted");
      break;
    }
    case RunState::kFailed: {
      const std::optional<Verdict> done = verdict_of_done(run);
      const bool repaired = done && done->state != RunState::kFailed;
      if (!options_.retry_failed && !repaired) return;
      store_.requeue(job.id, "tried again on request");
      break;
    }
    case RunState::kHeld:
    case RunState::kCancelled:
    case RunState::kWaitingData:
      store_.requeue(job.id, "");
      break;
    case RunState::kQueued:
    case RunState::kRunning:
      break;
  }
  if (record_done(job.id)) return;
  if (launcher_.adopt(job.id, run.root())) {  // started by hand, or by a harness whose database is lost
    store_.move(job.id, RunState::kQueued, RunState::kRunning);
    take_up(job.id);
    return;
  }
  if (!slots_.can_ever_run(job.device)) {
    store_.move(job.id, RunState::kQueued, RunState::kHeld, FailureClass::kNone,
                "it needs a CUDA device, and this machine has none");
    notify("held", job.id, "it needs a CUDA device, and this machine has none");
    return;
  }
  const bool alone = policy_of(record->failure).alone && record->state == RunState::kQueued;
  queue_.push_back({.id = job.id, .alone = alone, .not_before = 0});
}

// Records the result of a queued run that has a DONE: it was trained before the store knew it. False without a DONE.
bool Scheduler::record_done(const std::string& id) {
  const RunDirectory run = workspace_.run(id);
  const std::optional<Verdict> done = verdict_of_done(run);
  if (!done) return false;
  store_.in_transaction([&] {
    record_end(store_, workspace_, id, run.newest_begun_attempt(), *done);
    store_.move(id, RunState::kQueued, done->state, done->failure, done->reason, done->step);
  });
  notify(std::string(name_of(done->state)), id,
         done->state == RunState::kFailed ? done->reason : "was already trained");
  return true;
}

// --- start of attempts ---------------------------------------------------------------------------------------------

// Starts queued runs while slots are free. Runs that do not fit yet are skipped, not waited for.
void Scheduler::fill() {
  if (stopping_ || !paused_.empty()) return;
  const auto somebody_alone =
      std::any_of(running_.begin(), running_.end(), [](const auto& entry) { return entry.second.alone; });
  if (somebody_alone) return;
  for (auto queued = queue_.begin(); queued != queue_.end();) {
    const Job& job = jobs_.at(queued->id);
    if (queued->not_before > now_() || (queued->alone && !running_.empty())) {
      ++queued;
      continue;
    }
    const std::optional<Slot> slot = slots_.take(job.device, job.threads);
    if (!slot) {
      ++queued;
      continue;
    }
    const Queued next = *queued;
    queued = queue_.erase(queued);
    if (!launch(next, *slot)) slots_.release(*slot);
    if (next.alone || !paused_.empty()) return;  // a pause has put the run back into the queue: iterators are invalid
  }
}

bool Scheduler::launch(const Queued& queued, const Slot& slot) {
  const Job& job = jobs_.at(queued.id);
  const RunDirectory run = workspace_.run(job.id);
  try {
    if (fs::exists(run.settings()) && read_file(run.settings()) != job.canonical) {
      const std::string reason =
          fmt::format("{} was changed by hand; restore it, or delete the run's folder", run.settings().string());
      store_.move(job.id, RunState::kQueued, RunState::kFailed, FailureClass::kSettings, reason);
      notify("failed", job.id, reason);
      return false;
    }
    make_folders(run.root());
    if (!fs::exists(run.settings())) write_atomically(run.settings(), job.canonical);
    write_atomically(run.local(), job.local);
  } catch (const UserError& error) {
    queue_.push_front(queued);
    pause(error.what());
    return false;
  }

  // Before the start, not after: if this process dies in between, the next one must look for the attempt.
  store_.move(job.id, RunState::kQueued, RunState::kRunning);
  Running running;
  running.slot = slot;
  running.alone = queued.alone;
  const int64_t before = running.attempts_before = run.newest_begun_attempt();
  running.checkpoint_before = run.newest_checkpoint();
  running.since = running.last_sign = now_();
  running.progress.id = job.id;
  running.progress.label = job.label;
  running.progress.updates = job.updates;
  running_.emplace(job.id, std::move(running));
  try {
    launcher_.start({.id = job.id, .folder = run.root(), .cuda_device = slot.cuda_device});
  } catch (const UserError& error) {
    running_.erase(job.id);
    store_.move(job.id, RunState::kRunning, RunState::kQueued, FailureClass::kLost, error.what());
    queue_.push_front(queued);
    pause(error.what());
    return false;
  }
  notify("started", job.id, before > 0 ? fmt::format("again (attempt {})", before + 1) : "");
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
  if (end == LaunchEnd::kUnknown) {  // killed before it wrote start.json
    const Verdict lost{.failure = FailureClass::kLost, .reason = "it was never started", .step = {}};
    note_outside_end(id, lost, &running);
    return queue_again(id, lost, running.alone, &running);
  }
  if (!running.ours) return;
  queue_.push_back({.id = id, .alone = running.alone, .not_before = 0});
  if (stopping_) return;
  pause(end == LaunchEnd::kRefused
            ? fmt::format("another program is using {} (it holds {})", run.root().string(), run.lock().string())
            : fmt::format("no attempt could be written into {}: is the disk full, or the folder read-only?",
                          run.root().string()));
}

void Scheduler::conclude(const std::string& id, int64_t attempt, Verdict verdict, const Running* running) {
  const RetryPolicy policy = policy_of(verdict.failure);
  bool again = false;
  store_.in_transaction([&] {
    record_end(store_, workspace_, id, attempt, verdict);
    again = verdict.state == RunState::kFailed &&
            (policy.tries == kNotCounted || store_.failures_of(id, verdict.failure) < policy.tries);
    store_.move(id, RunState::kRunning, again ? RunState::kQueued : verdict.state, verdict.failure, verdict.reason,
                verdict.step);
  });
  if (!again) {
    notify(
        std::string(name_of(verdict.state)), id,
        verdict.state == RunState::kDiverged ? fmt::format("at update {}", verdict.step.value_or(0)) : verdict.reason);
  } else {
    queue_again(id, verdict, policy.alone, running);
  }
  if (verdict.failure == FailureClass::kCrashed) note_crash(id, verdict.reason);
  if (verdict.failure == FailureClass::kMachine) pause(fmt::format("{} ({})", verdict.reason, id));
  note_outside_end(id, verdict, running);
}

void Scheduler::queue_again(const std::string& id, const Verdict& verdict, bool alone, const Running* running) {
  // Failures that do not count as a try have no limit. Attempts that end quickly and without progress are therefore
  // delayed: 1, 2, 4 … seconds.
  const bool quick = running && !stopping_ && now_() - running->since < kQuickEnd && !has_made_progress(id, *running);
  quick_ends_[id] = quick ? quick_ends_[id] + 1 : 0;
  const double patience = quick ? std::min(kLongestPatience, std::exp2(quick_ends_[id] - 1)) : 0;
  if (jobs_.contains(id)) queue_.push_back({.id = id, .alone = alone, .not_before = now_() + patience});
  notify("queued again", id, fmt::format("{}: {}", name_of(verdict.failure), verdict.reason));
}

void Scheduler::note_crash(const std::string& id, const std::string& reason) {
  std::set<std::string>& runs = crashes_[crash_signature(reason)];
  runs.insert(id);
  if (runs.size() < kSameCrashPauses) return;
  pause(fmt::format("{} runs crashed in the same way ({}); `tearless log {}` shows more", runs.size(), reason, id));
}

bool Scheduler::has_made_progress(const std::string& id, const Running& running) const {
  return workspace_.run(id).newest_checkpoint() > running.checkpoint_before;
}

void Scheduler::note_outside_end(const std::string& id, const Verdict& verdict, const Running* running) {
  const bool outside = verdict.failure == FailureClass::kKilled || verdict.failure == FailureClass::kLost;
  const bool progress = running && has_made_progress(id, *running);
  int& ends = outside_ends_[id];
  ends = !outside ? 0 : progress ? 1 : ends + 1;
  if (ends < kOutsideEndsPause) return;
  ends = 0;
  pause(fmt::format("{} was killed from outside {} times and made no progress in between", id, kOutsideEndsPause));
}

void Scheduler::pause(std::string why) {
  if (!paused_.empty()) return;
  paused_ = std::move(why);
  notify("paused", "", paused_);
}

void Scheduler::stop() {
  stopping_ = true;
  for (auto& [id, running] : running_) {
    if (running.ours) ask_to_stop(id, running, StopReason::kRequest);
  }
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
  if (running.stop && now_() - running.stop_asked_at > options_.give_up_seconds) {
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
  const bool too_quiet = options_.stall_seconds > 0 && now_() - running.last_sign > options_.stall_seconds;
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

bool Scheduler::finished() const {
  if (std::any_of(running_.begin(), running_.end(), [](const auto& entry) { return entry.second.ours; })) return false;
  return stopping_ || !paused_.empty() || queue_.empty();
}

std::vector<Progress> Scheduler::progress() const {
  std::vector<Progress> all;
  for (const auto& [id, running] : running_) {
    if (running.ours) all.push_back(running.progress);
  }
  std::sort(all.begin(), all.end(), [](const Progress& a, const Progress& b) { return a.label < b.label; });
  return all;
}

int64_t Scheduler::finished_jobs() const {
  const auto ours =
      std::count_if(running_.begin(), running_.end(), [](const auto& entry) { return entry.second.ours; });
  return static_cast<int64_t>(jobs_.size()) - waiting() - ours;
}

std::optional<double> Scheduler::seconds_left() const {
  double updates_left = 0, speed = 0;
  for (const auto& [id, running] : running_) {
    if (!running.ours) continue;
    if (running.progress.updates_per_second <= 0) return std::nullopt;
    updates_left += static_cast<double>(std::max<int64_t>(0, running.progress.updates - running.progress.step));
    speed += running.progress.updates_per_second;
  }
  for (const Queued& queued : queue_) updates_left += static_cast<double>(jobs_.at(queued.id).updates);
  if (speed <= 0) return std::nullopt;
  return updates_left / speed;
}

std::string Scheduler::label_of(const std::string& id) const {
  const auto job = jobs_.find(id);
  return job == jobs_.end() ? id : job->second.label;
}

void Scheduler::notify(std::string what, const std::string& id, std::string text) const {
  listener_({std::move(what), id, id.empty() ? "" : label_of(id), std::move(text)});
}

}  // namespace tearless::harness
