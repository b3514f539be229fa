// The scheduler's attempts: how they start, how they are watched, and what follows from their ends.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "harness/devices/machine.h"
#include "harness/runs/attempt_files.h"
#include "harness/schedule/policy.h"
#include "harness/schedule/scheduler.h"
#include "harness/store/record.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr size_t kSameCrashPauses = 3;   // runs of a sweep with the same crash signature pause it
constexpr int kOutsideEndsPause = 3;     // kills and losses of one run in a row, without progress, pause its sweeps
constexpr double kQuickEnd = 10;         // seconds; attempts that end sooner, without progress, are delayed
constexpr double kMaxPatience = 60;      // seconds; the longest such delay
constexpr double kObserveEvery = 2;      // seconds between two looks at processes and GPUs
constexpr double kLookForDataEvery = 2;  // seconds between two looks at the files that runs wait for

int64_t size_or_zero(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

// --- start of attempts ---------------------------------------------------------------------------------------------

// Starts queued runs while their needs fit. Runs that do not fit yet are skipped, not waited for.
void Scheduler::fill() {
  while (may_start_ && !stopping_) {
    std::optional<Reservation> reservation;
    const bool cpu_is_full = resources_.cpu_is_full();  // asked once: there may be thousands of kinds of needs
    const auto next = queue_.take(now_(), [&](const Needs& needs) {
      if (cpu_is_full && needs.device == "cpu") return false;
      reservation = resources_.reserve(needs);
      return reservation.has_value();
    });
    if (!next) break;
    if (!launch(next->id, next->needs, *reservation)) {
      resources_.release(next->needs, *reservation, Resources::End::kOtherwise);
    }
  }
}

bool Scheduler::launch(const std::string& id, const Needs& needs, const Reservation& reservation) {
  const Job& job = jobs_.at(id);
  const ActiveSweep& sweep = *first_active(job);
  const RunDirectory run = workspace_.run(id);
  if (const std::string fault = program_check_.fault_of(workspace_, sweep.program.path); !fault.empty()) {
    pause_sweeps_of(job, fault);
    return false;
  }
  try {
    const std::string& settings = job.run.settings;
    if (fs::exists(run.settings()) && read_file(run.settings()) != settings) {
      const std::string reason =
          fmt::format("{} was changed by hand; restore it, or delete the run's folder", run.settings().string());
      store_.move(id, RunState::kQueued, RunState::kFailed, FailureClass::kSettings, reason);
      notify("failed", id, reason);
      drop_job(id);
      return false;
    }
    make_folders(run.root());
    if (!fs::exists(run.settings())) write_atomically(run.settings(), settings);
    // Written again before each attempt, so that it may be lost in a power cut.
    replace_unsynced(run.local(), job.run.local);
  } catch (const UserError& error) {
    pause_sweeps_of(job, error.what());
    return false;
  }

  // The attempts of a folder that was deleted are not those of the new one.
  if (run.newest_attempt() == 0 && !store_.attempts_of(id).empty()) store_.forget_attempts(id);
  // Before the start, not after: if this process dies in between, the next one must look for the attempt.
  // The class stays: it tells the next process that the attempt has the machine to itself.
  store_.move(id, RunState::kQueued, RunState::kRunning, store_.known_run(id).failure);
  Running running;
  running.reservation = reservation;
  running.needs = needs;
  running.stall_seconds = sweep.stall_seconds;
  running.give_up_seconds = give_up_after(sweep.program.grace_seconds);
  const int64_t before = running.attempts_before = run.newest_begun_attempt();
  running.checkpoint_before = run.newest_checkpoint();
  running.since = now_();
  running.signs = SignsOfLife(running.since);
  running.data_before = job.run.data ? stamps_of(*job.run.data) : FileStamps();
  running.progress.id = id;
  running.progress.label = label_of(id);
  running.progress.axes = sweep.axes;
  running.progress.updates = job.run.updates;
  running_.emplace(id, std::move(running));
  try {
    launcher_.start({.id = id,
                     .folder = run.root(),
                     .cuda_device = reservation.device,
                     .cores = reservation.cores,
                     .program = sweep.program});
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
  Running& running = node.mapped();
  const RunDirectory run = workspace_.run(id);
  const int64_t newest = run.newest_begun_attempt();
  if (newest <= running.attempts_before) {
    release(running, Resources::End::kOtherwise);
    not_started(id, running, end);
  } else {
    note_measured(running, read_attempt(run, newest).measured);
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
    release(running, verdict.state != RunState::kFailed              ? Resources::End::kByItself
                     : verdict.failure == FailureClass::kOutOfMemory ? Resources::End::kOutOfMemory
                                                                     : Resources::End::kOtherwise);
    conclude(id, newest, std::move(verdict), &running);
  }
  fill();
}

void Scheduler::release(const Running& running, Resources::End end) {
  resources_.release(running.needs, running.reservation, end);
  const std::string& resource_class = running.needs.resource_class;
  if (end != Resources::End::kByItself || resource_class.empty()) return;
  const nlohmann::json learnt = resources_.learnt(resource_class);
  if (!learnt.is_null()) store_.put_shape(resource_class, learnt);
}

// The launched process ended before its attempt began. This is not counted as a try.
void Scheduler::not_started(const std::string& id, const Running& running, LaunchEnd end) {
  const RunDirectory run = workspace_.run(id);
  store_.move(id, RunState::kRunning, RunState::kQueued, FailureClass::kLost, "it could not be started");
  if (running.requested) return put_aside(id, running.requested->state, running.requested->reason);
  if (end == LaunchEnd::kUnknown) {  // killed before it wrote start.json
    const Verdict lost{.failure = FailureClass::kLost, .reason = "it was never started", .step = {}};
    queue_again(id, lost, running.needs.alone, &running);
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
  const int tries = tries_of(id, verdict.failure);
  const bool asked_for = running && running->requested && verdict.state == RunState::kFailed;
  const bool waits = verdict.failure == FailureClass::kData && !asked_for;
  bool again = false;
  store_.in_transaction([&] {
    record_end(store_, workspace_, id, attempt, verdict);
    again = verdict.state == RunState::kFailed &&
            (asked_for || tries == kNotCounted || store_.failures_of(id, verdict.failure) < tries);
    store_.move(id, RunState::kRunning, again ? RunState::kQueued : verdict.state, verdict.failure, verdict.reason,
                verdict.step);
  });
  note_speed(id, running);
  if (asked_for) return put_aside(id, running->requested->state, running->requested->reason);
  if (waits) return wait_for_data(id, running, verdict.reason);
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
  if (!again) drop_job(id);
}

// The run is queued again after its program has ended with kExitData. `said`: the last words of the program, for files
// that it did not name or that are as planned after all.
void Scheduler::wait_for_data(const std::string& id, const Running* running, const std::string& said) {
  const InputFiles files = *store_.known_run(id).data;
  const std::string fault = fault_of(files);
  const std::string& reason = fault.empty() ? said : fault;
  const std::vector<std::string> runs = files.empty() ? std::vector{id} : store_.queued_with(files);
  store_.in_transaction([&] {
    for (const std::string& run : runs) {
      store_.move(run, RunState::kQueued, RunState::kWaitingData, FailureClass::kNone, reason);
      notify("waits for its data", run, reason);
      drop_job(run);
    }
  });
  count_again();
  data_watch_.add(files, running ? running->data_before : FileStamps(), runs);
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
      if (jobs_.contains(id) && !hold_without_device(id)) enqueue(id);
    }
  });
}

// Queues a run that waits for its data. Its earlier failures count as before.
void Scheduler::try_data_again(const std::string& id) {
  store_.move(id, RunState::kWaitingData, RunState::kQueued);
  count_again();
  attach_again(id);
}

// As policy.h says, or as the most patient of its sweeps does.
int Scheduler::tries_of(const std::string& id, FailureClass failure) const {
  std::optional<int> asked;
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    for (const ActiveSweep* sweep : job->second.sweeps) {
      const auto tries = sweep->tries.find(std::string(name_of(failure)));
      if (tries != sweep->tries.end()) asked = std::max(asked.value_or(0), tries->second);
    }
  }
  return asked.value_or(policy_of(failure).tries);
}

void Scheduler::queue_again(const std::string& id, const Verdict& verdict, bool alone, const Running* running) {
  // Failures that do not count as a try have no limit. Attempts that end quickly and without progress are therefore
  // delayed: 1, 2, 4 … seconds.
  if (const auto job = jobs_.find(id); job != jobs_.end()) {
    const bool quick =
        running && !running->stop && now_() - running->since < kQuickEnd && !has_made_progress(id, *running);
    quick_ends_[id] = quick ? quick_ends_[id] + 1 : 0;
    job->second.not_before = now_() + (quick ? std::min(kMaxPatience, std::exp2(quick_ends_[id] - 1)) : 0);
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

void Scheduler::let_start(bool allowed) {
  const bool changes = may_start_ != allowed;
  may_start_ = allowed;
  if (changes) fill();
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
  observe_resources();
  look_for_data();
  fill();
}

void Scheduler::observe_resources() {
  if (running_.empty() && resources_.devices().empty()) return;
  if (now_() - observed_at_ < kObserveEvery) return;
  observed_at_ = now_();
  std::map<std::string, std::set<int64_t>> pids = launcher_.processes();
  std::vector<RunningRun> all;
  for (const auto& [id, running] : running_) {
    if (running.needs.device == "cpu") {
      if (const int64_t bytes = private_memory_of(pids[id]); bytes > 0) {
        resources_.note_use(running.needs, running.reservation, bytes);
      }
    }
    all.push_back({.id = id,
                   .needs = &running.needs,
                   .reservation = &running.reservation,
                   .step = running.progress.step,
                   .pids = pids[id]});
  }
  resources_.observe(all, now_());
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
  note_measured(running, read_attempt(run, newest).measured);

  running.signs.note(size_or_zero(run.metrics()), size_or_zero(run.attempt(newest) / "log.txt"), now_());
  if (!running.stop && is_too_quiet(run, newest, running)) ask_to_stop(id, running, StopReason::kStall);
}

// While a program trains it reports again and again, so that a gap much longer than all before means that it hangs.
// What else it does (it evaluates, writes a checkpoint) may take longer than anything seen before.
bool Scheduler::is_too_quiet(const RunDirectory& run, int64_t attempt, const Running& running) const {
  const double quiet = running.signs.quiet(now_());
  if (running.stall_seconds <= 0) return false;
  if (quiet > running.stall_seconds) return true;
  return quiet > running.signs.longest_in_training() && phase_of(run, attempt) == "training";
}

void Scheduler::note_measured(Running& running, const nlohmann::json& measured) {
  const auto number = [&](const char* key) {
    return measured.contains(key) && measured[key].is_number() ? measured[key].get<double>() : 0;
  };
  if (const double speed = number("tokens_per_second"); speed > 0) running.progress.tokens_per_second = speed;
  // A program on a GPU reports its use of the machine's memory, too; of its GPU's memory the driver knows.
  const auto bytes = static_cast<int64_t>(number("peak_memory_bytes"));
  if (bytes > 0 && running.needs.device == "cpu") resources_.note_use(running.needs, running.reservation, bytes);
}

}  // namespace tearless::harness
