// The scheduler's attempts: how they start, how they are watched, and what follows from their ends.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/policy.h"
#include "harness/schedule/scheduler.h"
#include "harness/store/record.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kSameCrashPauses = 3;   // so many runs of a sweep crashed alike: pause
constexpr size_t kFirstFailedPause = 5;  // its first N runs failed alike: pause
constexpr int kOutsideEndsPause = 3;     // kills and losses of one run in a row, without progress, pause its sweeps
constexpr double kQuickEnd = 10;         // seconds; attempts that end sooner, without progress, are delayed
constexpr double kMaxPatience = 60;      // seconds; the longest such delay
constexpr double kLookForDataEvery = 2;  // seconds between two looks at the files that runs wait for

Needs for_launcher(Needs needs) {
  needs.first_of.clear();
  return needs;
}

// `job` may be null.
int tries_of(const Job* job, FailureClass failure) {
  std::vector<Sweep> sweeps;
  for (const ActiveSweep* sweep : job ? job->sweeps : std::vector<ActiveSweep*>()) sweeps.push_back(sweep->record);
  return tries_of(sweeps, failure);
}

// As text: secrets that neither `given` nor this process has.
std::string missing_secrets(const SubmittedEnvironment& environment, Variables given) {
  given.merge(own_variables());
  return secrets_not_in(given, environment);
}

}  // namespace

// --- start of attempts ---------------------------------------------------------------------------------------------

Scheduler::Running* Scheduler::running(const std::string& id) {
  const auto found = running_.find(id);
  return found == running_.end() ? nullptr : &found->second;
}

// Watches an attempt from now on. `sweep`: that it follows; null if it is no job.
Scheduler::Running& Scheduler::watch(const std::string& id, int64_t attempts_before, const ActiveSweep* sweep) {
  Running attempt{.watch = AttemptWatch(workspace_.run(id), attempts_before, now_())};
  attempt.watch.progress.label = id;
  if (sweep) follow(attempt, *sweep, id);
  return running_.emplace(id, std::move(attempt)).first->second;
}

// Starts queued runs while the launcher takes them. Runs that it does not take yet are skipped, not waited for.
void Scheduler::fill() {
  learn_kinds();
  while (may_start_ && !stopping_) {
    const auto next = jobs_.take(now_(), [&](const Needs& needs) { return refusal_of(needs); });
    if (!next) break;
    launch(*next);
  }
}

// Of sweeps whose runs are all to be on one kind of device.
void Scheduler::learn_kinds() {
  for (auto& [id, sweep] : jobs_.sweeps()) {
    if (!sweep.is_active() || !sweep.record.policy.same_device || !sweep.kind.empty()) continue;
    sweep.kind = store_.first_kind_in(id);
    if (!sweep.kind.empty()) jobs_.enqueue_all(sweep);
  }
}

// Launcher::refusal_of(); and of a sweep whose kind of device is not known, one run goes before the others.
std::optional<Launcher::Refusal> Scheduler::refusal_of(const Needs& needs) const {
  const auto refusal = launcher_.refusal_of(for_launcher(needs));
  if (refusal || needs.first_of.empty()) return refusal;
  const ActiveSweep& sweep = jobs_.sweeps().at(needs.first_of);
  const bool is_tried =
      std::ranges::any_of(running_, [&](const auto& entry) { return sweep.jobs.contains(entry.first); });
  if (!is_tried) return std::nullopt;
  return Launcher::Refusal{
      .why = "it waits for the first attempt of its sweep, which decides the kind of device of all",
      .others_may_pass = true};
}

void Scheduler::launch(const std::string& id) {
  const Job& job = *jobs_.find(id);
  const ActiveSweep& sweep = *job.first_active();
  const Sweep& record = sweep.record;
  const RunDirectory run = workspace_.run(id);
  const SubmittedEnvironment environment = record.policy.environment.value_or(SubmittedEnvironment());
  const TrainingProgram program{.path = fs::absolute(workspace_.root() / record.program),
                                .stamp = record.stamp,
                                .grace_seconds = record.policy.grace_seconds,
                                .environment = record.policy.environment,
                                .secrets = secrets_in(secrets_[record.id], environment)};
  if (const std::string fault = program_check_.fault_of(workspace_, program.path); !fault.empty()) {
    return pause_sweeps_of(job, fault);
  }
  const bool is_worker = !job.needs().executor.empty();  // which has its own
  if (const std::string missing = is_worker ? "" : missing_secrets(environment, program.secrets); !missing.empty()) {
    return pause(
        record.id,
        fmt::format("its runs need {}, which the service has not, and whose values are in no file; set them, "
                    "then: tearless resume {} --workspace {}",
                    missing, record.id, shell_word(fs::absolute(workspace_.root()).lexically_normal().string())),
        OnPause::kContinue);
  }
  if (!write_settings(id, job)) return;

  // A new folder has none of the attempts of a deleted one.
  if (run.newest_attempt() == 0 && !store_.attempts_of(id).empty()) store_.forget_attempts(id);
  // Before the start, not after: if this process dies in between, the next one must look for the attempt.
  // The class stays: it tells the next process that the attempt has the machine to itself.
  store_.move(id, RunState::kQueued, RunState::kRunning, store_.known_run(id).failure);
  const int64_t before = run.newest_begun_attempt();
  Running& attempt = watch(id, before, &sweep);
  if (job.run.data) attempt.data_before = stamps_of(*job.run.data);
  try {
    launcher_.start({.id = id, .folder = run.root(), .needs = for_launcher(job.needs()), .program = program});
  } catch (const UserError& error) {
    running_.erase(id);
    store_.move(id, RunState::kRunning, RunState::kQueued, FailureClass::kLost, error.what());
    return pause_sweeps_of(job, error.what());
  }
  attempt.watch.progress.phase = launcher_.standing_of(id).phase;
  notify("started", id, before > 0 ? fmt::format("again (attempt {})", before + 1) : "");
}

// run.toml and local.toml. False if the run cannot be started with them, and has failed or waits.
bool Scheduler::write_settings(const std::string& id, const Job& job) {
  const RunDirectory run = workspace_.run(id);
  try {
    const bool is_written = fs::exists(run.settings());
    if (is_written && read_file(run.settings()) != job.run.settings) {
      const std::string reason =
          fmt::format("{} was changed by hand; restore it, or delete the run's folder", run.settings().string());
      store_.move(id, RunState::kQueued, RunState::kFailed, FailureClass::kSettings, reason);
      notify("failed", id, reason);
      drop_job(id);
      return false;
    }
    make_folders(run.root());
    if (!is_written) write_atomically(run.settings(), job.run.settings);
    // Written again before each attempt, so that it may be lost in a power cut.
    replace_unsynced(run.local(), job.run.local);
    return true;
  } catch (const UserError& error) {
    pause_sweeps_of(job, error.what());
    return false;
  }
}

// --- end of attempts -----------------------------------------------------------------------------------------------

void Scheduler::ended(const std::string& id, const Launcher::End& end) {
  const Running attempt = std::move(running_.extract(id).mapped());
  const int64_t number = attempt.watch.number();
  const std::string& fault = end.fault;
  if (number == 0) {
    not_started(id, attempt, end);
  } else {
    Verdict verdict = verdict_of(workspace_.run(id), number);
    if (verdict.failure == FailureClass::kLost && !fault.empty()) {
      verdict.failure = FailureClass::kMachine;
      verdict.reason = fault;
    } else if (verdict.failure == FailureClass::kLost && attempt.stop) {
      // What did not react was killed, and could not write the reason to exit.json.
      verdict.failure = *attempt.stop == Stop::kStalled ? FailureClass::kStalled : FailureClass::kStopped;
      verdict.reason = "its supervisor did not react and was killed";
    }
    conclude(id, number, verdict, attempt);
  }
  fill();
}

// No attempt began. This is not counted as a try.
void Scheduler::not_started(const std::string& id, const Running& attempt, const Launcher::End& end) {
  const std::string& fault = end.fault;
  if (end.never_began) {  // it waits as before
    store_.move(id, RunState::kRunning, RunState::kQueued, store_.known_run(id).failure);
    if (attempt.requested) return put_aside(id, attempt.requested->state, attempt.requested->reason);
    if (jobs_.find(id)) jobs_.enqueue(id);
    return notify("queued again", id, "nobody had begun it");
  }
  const Verdict lost{.failure = FailureClass::kLost, .reason = "it was never started", .step = {}};
  store_.move(id, RunState::kRunning, RunState::kQueued, lost.failure, fault.empty() ? lost.reason : fault);
  if (attempt.requested) return put_aside(id, attempt.requested->state, attempt.requested->reason);
  if (fault.empty()) {  // killed before it wrote start.json
    queue_again(id, lost, attempt);
    return note_outside_end(id, lost.failure, attempt);
  }
  const Job* known = jobs_.find(id);
  if (!known) return;
  jobs_.enqueue(id);
  if (!stopping_) pause_sweeps_of(*known, fault);
}

void Scheduler::conclude(const std::string& id, int64_t number, const Verdict& verdict, const Running& attempt) {
  Job* const known = jobs_.find(id);
  const int tries = tries_of(known, verdict.failure);
  const bool asked_for = attempt.requested && verdict.state == RunState::kFailed;
  bool again = false;
  store_.in_transaction([&] {
    record_end(store_, workspace_, id, number, verdict);
    again = verdict.state == RunState::kFailed &&
            (asked_for || tries == kNotCounted || store_.failures_of(id, verdict.failure) < tries);
    store_.move(id, RunState::kRunning, again ? RunState::kQueued : verdict.state, verdict.failure, verdict.reason,
                verdict.step);
  });
  paces_.reset();
  // How fast it was tells how long the waiting jobs of its sweeps will need.
  if (const double speed = attempt.watch.progress.updates_per_second; known && speed > 0) {
    for (ActiveSweep* sweep : known->sweeps) sweep->updates_per_second = speed;
  }
  if (asked_for) return put_aside(id, attempt.requested->state, attempt.requested->reason);
  if (verdict.failure == FailureClass::kData) return wait_for_data(id, attempt, verdict.reason);
  if (again) {
    if (known) known->run.needs.alone = policy_of(verdict.failure).alone;
    queue_again(id, verdict, attempt);
  } else {
    const bool diverged = verdict.state == RunState::kDiverged;
    notify(std::string(name_of(verdict.state)), id,
           diverged ? fmt::format("at update {}", verdict.step.value_or(0)) : verdict.reason);
  }
  if (known) note_end_in_sweeps(*known, verdict, again);
  if (known && verdict.failure == FailureClass::kMachine) {
    pause_sweeps_of(*known, fmt::format("{} ({})", verdict.reason, id));
  }
  note_outside_end(id, verdict.failure, attempt);
  if (!again) drop_job(id);
}

// Failures that do not count as a try have no limit. Attempts that end quickly and without progress are therefore
// delayed: 1, 2, 4 … seconds.
void Scheduler::queue_again(const std::string& id, const Verdict& verdict, const Running& attempt) {
  if (Job* known = jobs_.find(id)) {
    const bool quick = !attempt.stop && attempt.watch.age(now_()) < kQuickEnd && !attempt.watch.made_progress();
    known->quick_ends = quick ? known->quick_ends + 1 : 0;
    known->not_before = now_() + (quick ? std::min(kMaxPatience, std::exp2(known->quick_ends - 1)) : 0);
    jobs_.enqueue(id);
  }
  notify("queued again", id, fmt::format("{}: {}", name_of(verdict.failure), verdict.reason));
}

// Runs that fail alike have one cause, and the next ones would fail as well.
void Scheduler::note_end_in_sweeps(const Job& job, const Verdict& verdict, bool again) {
  const bool crashed = verdict.failure == FailureClass::kCrashed;
  for (ActiveSweep* sweep : std::vector(job.sweeps)) {
    sweep->has_result |= has_result(verdict.state);
    if (has_result(verdict.state) || (again && !crashed)) continue;
    std::set<std::string>& runs = sweep->failures[failure_signature(verdict.reason)];
    runs.insert(job.run.id);
    // A sweep of which nothing else is left is over, not paused.
    const bool are_first = !sweep->has_result && sweep->failures.size() == 1 && sweep->jobs.size() > 1;
    if (crashed ? runs.size() < kSameCrashPauses : !are_first || runs.size() < kFirstFailedPause) continue;
    pause(sweep->record.id,
          fmt::format("{} runs {} in the same way ({}); `tearless log {}` shows more", runs.size(),
                      crashed ? "crashed" : "failed", verdict.reason, job.run.id),
          OnPause::kContinue);
  }
}

void Scheduler::note_outside_end(const std::string& id, FailureClass failure, const Running& attempt) {
  Job* const known = jobs_.find(id);
  if (!known) return;
  const bool outside = failure == FailureClass::kKilled || failure == FailureClass::kLost;
  known->outside_ends = !outside ? 0 : attempt.watch.made_progress() ? 1 : known->outside_ends + 1;
  if (known->outside_ends < kOutsideEndsPause) return;
  known->outside_ends = 0;
  pause_sweeps_of(*known, fmt::format("{} was killed from outside {} times and made no progress in between", id,
                                      kOutsideEndsPause));
}

// --- runs that wait for their data ---------------------------------------------------------------------------------

// The run is queued again after its program has ended with kExitData. `said`: the last words of the program, for files
// that it did not name or that are as planned after all.
void Scheduler::wait_for_data(const std::string& id, const Running& attempt, const std::string& said) {
  const InputFiles files = *store_.known_run(id).data;
  const std::string fault = fault_of(files);
  const std::string& reason = fault.empty() ? said : fault;
  const std::vector<std::string> runs = files.empty() ? std::vector{id} : store_.queued_with(files);
  store_.in_transaction([&] {
    for (const std::string& run : runs) {
      store_.move(run, RunState::kQueued, RunState::kWaitingData, FailureClass::kNone, reason);
      notify("waits for its data", run, reason);
      jobs_.drop(run);
    }
  });
  for (const std::string& run : runs) drop_job(run);  // after all of them: some may derive from others
  count_again();
  data_watch_.add(files, attempt.data_before, runs);
}

void Scheduler::look_for_data() {
  if (now_() - looked_for_data_at_ < kLookForDataEvery) return;
  looked_for_data_at_ = now_();
  const std::vector<std::string> runs = data_watch_.changed();
  if (runs.empty()) return;
  store_.in_transaction([&] {
    for (const std::string& id : runs) {
      const std::optional<RunRecord> record = store_.run(id);
      if (!record || record->state != RunState::kWaitingData) continue;  // cancelled or deleted meanwhile
      try_data_again(id);
      notify("queued again", id, "its data have changed");
      enqueue_if_possible(id);
    }
  });
}

// Queues a run that waits for its data. Its earlier failures count as before.
void Scheduler::try_data_again(const std::string& id) {
  store_.in_transaction([&] {
    store_.move(id, RunState::kWaitingData, RunState::kQueued);
    count_again();
    attach_again(id);
  });
}

// --- polls and stops -------------------------------------------------------------------------------------------------

void Scheduler::tick() {
  store_.in_transaction([&] {
    for (auto& [id, attempt] : running_) {
      if (attempt.looked_at && now_() - *attempt.looked_at < launcher_.look_every(id)) continue;
      attempt.looked_at = now_();
      attempt.watch.poll(store_, workspace_, now_());
      if (!attempt.stop && attempt.watch.hangs(attempt.policy.stall_seconds, now_())) {
        ask_to_stop(id, attempt, Stop::kStalled);
      }
    }
  });
  std::map<Needs, int64_t> waiting;
  for (const auto& [needs, count] : jobs_.waiting()) waiting[for_launcher(needs)] += count;
  launcher_.expect(waiting);
  launcher_.poll();
  for (auto& [id, attempt] : running_) {
    const Launcher::Standing standing = launcher_.standing_of(id);
    attempt.watch.progress.phase = standing.phase;
    const std::string before = std::exchange(attempt.watch.progress.waits_for, standing.waits_for);
    const bool is_granted = standing.phase == Phase::kGranted;  // of which the reason of its sweep tells
    if (before.empty() && !standing.waits_for.empty() && !is_granted) notify("warning", id, standing.waits_for);
  }
  look_for_data();
  fill();
}

void Scheduler::let_start(bool allowed) {
  const bool is_new = std::exchange(may_start_, allowed) != allowed;
  if (is_new) fill();
}

void Scheduler::stop() {
  stopping_ = true;
  for (auto& [id, attempt] : running_) ask_to_stop(id, attempt, Stop::kOnRequest);
}

void Scheduler::abandon() {
  stopping_ = true;
  launcher_.abandon();
}

void Scheduler::ask_to_stop(const std::string& id, Running& attempt, Stop why) {
  attempt.stop = why;
  attempt.asked_at = now_();
  launcher_.stop(id, why, attempt.policy.grace_seconds);
}

}  // namespace tearless::harness
