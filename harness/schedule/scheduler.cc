#include "harness/schedule/scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/policy.h"
#include "harness/store/record.h"

namespace tearless::harness {
namespace {

constexpr double kLateEnd = 10;  // seconds after an attempt's grace time and half as much again

}  // namespace

std::string sentence_of(const SchedulerEvent& event) {
  const std::string subject = event.id.empty() ? "" : fmt::format("{}  {}  ", event.id.substr(0, 8), event.label);
  return subject + event.what + (event.text.empty() ? "" : ": " + event.text);
}

Scheduler::Scheduler(Store& store, const Workspace& workspace, Launcher& launcher, Now now, Listener listener)
    : store_(store),
      workspace_(workspace),
      launcher_(launcher),
      now_(std::move(now)),
      listener_(std::move(listener)),
      jobs_([this](const std::string& id) { return running_.contains(id); }) {
  launcher_.on_end = [this](const std::string& id, const Launcher::End& end) { ended(id, end); };
}

// --- what earlier processes or a user left behind -------------------------------------------------------------------

void Scheduler::begin() {
  for (const std::string& id : store_.ids_in(RunState::kRunning)) adopt_or_conclude(id);
  // The process that was to cancel them may have been killed before their attempts had ended, and in a rebuilt database
  // they are queued.
  for (const Sweep& sweep : store_.sweeps()) {
    if (sweep.state == SweepState::kCancelled) cancel_unwanted(sweep.id);
  }
}

void Scheduler::adopt_or_conclude(const std::string& id) {
  const RunRecord record = *store_.run(id);
  if (adopt(record, requested_end_of(record.reason))) return;
  const RunDirectory run = workspace_.run(id);
  const int64_t newest = run.newest_begun_attempt();
  const Running over{.watch = AttemptWatch(run, newest, now_()), .requested = requested_end_of(record.reason)};
  if (newest > 0 && !end_is_recorded(id, newest)) return conclude(id, newest, verdict_of(run, newest), over);
  not_started(id, over, {});
}

bool Scheduler::end_is_recorded(const std::string& id, int64_t attempt) const {
  const std::vector<AttemptRecord> known = store_.attempts_of(id);
  return !known.empty() && known.back().number == attempt && !known.back().outcome.empty();
}

// Watches an attempt that is alive, if one is.
bool Scheduler::adopt(const RunRecord& record, std::optional<RequestedEnd> requested) {
  const RunDirectory run = workspace_.run(record.id);
  Needs needs = record.needs;
  needs.alone = policy_of(record.failure).alone;
  if (!launcher_.adopt(record.id, run.root(), needs)) return false;
  const int64_t newest = run.newest_begun_attempt();
  const bool has_begun = newest > 0 && !end_is_recorded(record.id, newest);
  const Job* job = jobs_.find(record.id);
  Running& attempt = watch(record.id, has_begun ? newest - 1 : newest, job ? job->sweeps.back() : nullptr);
  attempt.watch.progress.updates = record.updates;
  notify("adopted", record.id,
         newest > 0 ? fmt::format("attempt {} continues", newest) : "its first attempt is starting");
  attempt.requested = std::move(requested);
  if (attempt.requested) ask_to_stop(record.id, attempt, Stop::kOnRequest);
  return true;
}

// True if the job is to be run: its run is then queued or running in the store. REQUIRES: it is in jobs_.
bool Scheduler::reconcile(const RunRecord& job, Add how) {
  const RunDirectory run = workspace_.run(job.id);
  const bool has_folder = std::filesystem::exists(run.root());  // else there is nothing more to look for
  const bool submitted = how != Add::kRestart;
  std::optional<Verdict> done = has_folder && !running_.contains(job.id) ? verdict_of_done(run) : std::nullopt;
  switch (job.state) {
    case RunState::kDone:
    case RunState::kDiverged:
      if (done && done->state == RunState::kFailed)
        notify("warning", job.id, done->reason + " (the store keeps what it recorded)");
      if (submitted && take_away_if_outdated(job)) {
        done.reset();
        break;
      }
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
  if (Running* attempt = running(job.id)) {
    const std::optional<RequestedEnd>& requested = attempt->requested;
    if (submitted && requested && requested->state == RunState::kCancelled) {  // it is wanted again before it has ended
      set_requested(job.id, *attempt, std::nullopt);
      for (ActiveSweep* sweep : std::vector(jobs_.find(job.id)->sweeps)) {
        if (sweep->is_cancelled()) detach_job(*sweep, job.id);
      }
    }
    return true;
  }
  if (job.settings.empty()) return false;
  if (done) {
    record_done(job.id, *done);
    return false;
  }
  if (has_folder && adopt(job, std::nullopt)) {  // started by hand, or by a harness whose database is lost
    store_.move(job.id, RunState::kQueued, RunState::kRunning, job.failure);
    return true;
  }
  return !hold_if_impossible(job.id);
}

// Holds a queued job that no wait makes possible here, such as one for a GPU. It is then no job any more.
bool Scheduler::hold_if_impossible(const std::string& id) {
  const std::optional<Launcher::Refusal> refusal = refusal_of(jobs_.find(id)->needs());
  if (!refusal || !refusal->for_good) return false;
  put_aside(id, RunState::kHeld, refusal->why);
  return true;
}

// Records the result of a queued run that has a DONE: it was trained before the store knew it.
void Scheduler::record_done(const std::string& id, const Verdict& done) {
  paces_.reset();
  store_.in_transaction([&] {
    record_end(store_, workspace_, id, workspace_.run(id).newest_begun_attempt(), done);
    store_.move(id, RunState::kQueued, done.state, done.failure, done.reason, done.step);
  });
  notify(std::string(name_of(done.state)), id, done.state == RunState::kFailed ? done.reason : "was already trained");
}

namespace {

// Updates × parameters, to which the time of a run is about proportional; 0: not known.
double size_of(const Run& run) {
  return run.updates > 0 ? static_cast<double>(run.updates) * static_cast<double>(run.parameters.value_or(0)) : 0;
}

}  // namespace

// --- what others ask -------------------------------------------------------------------------------------------------

bool Scheduler::is_stopping_any() const {
  return std::ranges::any_of(running_, [&](const auto& entry) {
    const Running& attempt = entry.second;
    const double patience = 1.5 * attempt.policy.grace_seconds + kLateEnd;
    return attempt.stop && now_() - attempt.asked_at < patience;
  });
}

bool Scheduler::idle(const std::string& id) const {
  const auto found = jobs_.sweeps().find(id);
  if (found == jobs_.sweeps().end()) return true;
  const ActiveSweep& sweep = found->second;
  const bool runs = std::any_of(running_.begin(), running_.end(),
                                [&](const auto& entry) { return sweep.jobs.contains(entry.first); });
  if (runs || stopping_) return !runs;
  if (sweep.is_active()) return sweep.jobs.empty();  // each of them is in the queue
  return std::none_of(sweep.jobs.begin(), sweep.jobs.end(),
                      [&](const std::string& job) { return jobs_.is_queued(job); });  // for another sweep
}

std::string Scheduler::paused(const std::string& id) const {
  const auto sweep = jobs_.sweeps().find(id);
  return sweep == jobs_.sweeps().end() || sweep->second.is_active() ? "" : sweep->second.why_paused();
}

std::vector<Progress> Scheduler::progress(const std::optional<std::string>& sweep) const {
  std::vector<Progress> all;
  const auto& sweeps = jobs_.sweeps();
  for (const auto& [id, running] : running_) {
    if (sweep && !(sweeps.contains(*sweep) && sweeps.at(*sweep).jobs.contains(id))) continue;
    all.push_back(running.watch.progress);
    all.back().stopping = running.stop.has_value();
  }
  std::sort(all.begin(), all.end(), [](const Progress& a, const Progress& b) { return a.label < b.label; });
  return all;
}

SweepCounts Scheduler::counts(const std::string& id) const {
  const auto found = jobs_.sweeps().find(id);
  if (found == jobs_.sweeps().end()) return {};
  const ActiveSweep& sweep = found->second;
  if (!sweep.counted) {
    sweep.counted.emplace();
    for (const auto& [state, runs] : store_.counts_of(id)) {
      if (state != RunState::kWaitingData) sweep.counted->total += runs;
      if (state == RunState::kHeld) sweep.counted->held = runs;
    }
  }
  const auto running = std::count_if(running_.begin(), running_.end(),
                                     [&](const auto& entry) { return sweep.jobs.contains(entry.first); });
  return {.total = sweep.counted->total,
          .waiting = static_cast<int64_t>(sweep.jobs.size()) - running,
          .running = running,
          .held = sweep.counted->held};
}

int64_t Scheduler::priority(const std::string& id) const {
  const auto sweep = jobs_.sweeps().find(id);
  return sweep == jobs_.sweeps().end() ? 0 : sweep->second.record.priority;
}

const Paces& Scheduler::paces() const {
  if (paces_) return *paces_;
  std::vector<Timing> calibrations;
  try {
    calibrations = timings_in(workspace_.smoke());
  } catch (const UserError&) {  // then there is none
  }
  return paces_.emplace(store_.timings(), calibrations);
}

Scheduler::TimeLeft Scheduler::time_left(const std::string& id) const {
  const auto found = jobs_.sweeps().find(id);
  if (found == jobs_.sweeps().end()) return {};
  const ActiveSweep& sweep = found->second;
  std::map<std::string, double> update_seconds;  // class → of one in work
  if (sweep.updates_per_second > 0) update_seconds[""] = 1 / sweep.updates_per_second;
  int64_t in_work = 0;
  for (const auto& [job, running] : running_) {
    if (!sweep.jobs.contains(job) || running.watch.progress.phase != Phase::kRunning) continue;
    ++in_work;
    const double speed = running.watch.progress.updates_per_second;
    if (speed > 0) update_seconds[jobs_.find(job)->run.needs.resource_class] = 1 / speed;
  }
  if (in_work == 0) return {};
  std::map<std::string, std::optional<double>> seconds_of;
  double timed = 0, size = 0;  // of the jobs whose time is known: seconds, and updates × parameters
  for (const std::string& name : sweep.jobs) {
    const harness::Run& run = jobs_.find(name)->run;
    std::optional<double>& seconds = seconds_of[name] = paces().seconds_of(run);
    const auto speed = update_seconds.find(run.needs.resource_class);
    if (!seconds && run.updates > 0 && speed != update_seconds.end()) seconds = speed->second * work_of(run);
    if (!seconds || size_of(run) == 0) continue;
    timed += *seconds;
    size += size_of(run);
  }
  TimeLeft left;
  double all = 0, longest = 0;
  for (auto& [name, seconds] : seconds_of) {
    const harness::Run& run = jobs_.find(name)->run;
    if (!seconds && size > 0 && size_of(run) > 0) seconds = timed / size * size_of(run);
    if (!seconds) {
      ++left.untimed;
      continue;
    }
    if (const auto attempt = running_.find(name); attempt != running_.end()) {
      const AttemptWatch& watch = attempt->second.watch;
      const double done =
          run.updates > 0 ? *seconds * static_cast<double>(watch.progress.step) / work_of(run) : watch.age(now_());
      seconds = std::max(0.0, *seconds - done);
    }
    all += *seconds;
    longest = std::max(longest, *seconds);
    left.seconds = std::max(longest, all / static_cast<double>(in_work));
  }
  return left;
}

std::map<std::string, std::string> Scheduler::why(const std::vector<std::string>& ids) const {
  std::map<std::string, std::string> reasons;
  for (const std::string& id : ids) {
    if (running_.contains(id)) {
      reasons[id] = launcher_.where(id);
    } else if (const Job* job = jobs_.find(id); !job) {
      reasons[id] = why_nobody_works_on(id);
    } else if (!job->origin.empty()) {
      reasons[id] = fmt::format("it derives from run {}, which has no result yet", job->origin);
    } else if (!jobs_.is_queued(id)) {
      reasons[id] = fmt::format("its sweep is paused: {}", job->sweeps.front()->why_paused());
    } else {
      reasons[id];
    }
  }
  std::map<std::string, int64_t> before;  // sweep → its runs that go before the next one
  jobs_.each_queued([&](const std::string& id) {
    const Job& job = *jobs_.find(id);
    if (const auto asked = reasons.find(id); asked != reasons.end()) asked->second = why_waits(job, before);
    ++before[job.first_active()->record.id];
  });
  return reasons;
}

std::map<std::string, std::string> Scheduler::why_idle() const {
  std::map<std::string, const Job*> next;
  jobs_.each_queued([&](const std::string& id) {
    const Job* job = jobs_.find(id);
    next.emplace(job->first_active()->record.id, job);
  });
  std::map<std::string, std::string> reasons;
  for (const auto& [sweep, job] : next) {
    const auto refusal = refusal_of(job->needs());
    reasons[sweep] = refusal ? refusal->why : "";
  }
  return reasons;
}

std::string Scheduler::why_waits(const Job& job, const std::map<std::string, int64_t>& before) const {
  if (stopping_) return "no run is started any more";
  std::string why;
  if (const double rest = job.not_before - now_(); rest > 0) {
    why = fmt::format("its last attempt ended quickly; the next one starts in {:.0f} s", rest);
  } else if (const auto refusal = refusal_of(job.needs())) {
    why = refusal->why;
  }
  std::vector<std::string> first;
  int64_t all = 0;
  for (const auto& [sweep, runs] : before) {
    const bool own = sweep == job.first_active()->record.id;
    first.push_back(fmt::format("{} of {}", counted(runs, "run"), own ? "its own sweep" : sweep));
    all += runs;
  }
  const std::string order = all == 0 ? "it is the next to start"
                                     : fmt::format("{} {} first", fmt::join(first, ", "), all == 1 ? "goes" : "go");
  return why.empty() ? order : fmt::format("{}; {}", why, order);
}

// Of a run whose sweeps were not added.
std::string Scheduler::why_nobody_works_on(const std::string& id) const {
  const std::optional<RunRecord> record = store_.run(id);
  if (!record || record->state != RunState::kQueued) return "";
  for (const std::string& name : store_.sweeps_of(id)) {
    const Sweep sweep = *store_.sweep(name);
    if (sweep.state == SweepState::kPaused) return fmt::format("its sweep is paused: {}", sweep.reason);
  }
  return "the service does not work on its sweep; `tearless run` submits it again";
}

std::string Scheduler::label_of(const std::string& id) const {
  if (const Job* job = jobs_.find(id)) return harness::label_of(job->run);
  const std::vector<std::string> sweeps = store_.sweeps_of(id);  // before a new service has read them
  return sweeps.empty() ? id : harness::label_of(store_.run_of(sweeps.back(), id));
}

void Scheduler::notify(std::string what, const std::string& id, std::string text) const {
  std::vector<std::string> sweeps;
  if (const Job* job = jobs_.find(id)) {
    for (const ActiveSweep* sweep : job->sweeps) sweeps.push_back(sweep->record.id);
  } else {
    sweeps = store_.sweeps_of(id);
  }
  listener_({std::move(what), id, label_of(id), std::move(text), std::move(sweeps)});
}

void Scheduler::notify_sweep(std::string what, const std::string& sweep, std::string text) const {
  listener_({std::move(what), "", "", std::move(text), {sweep}});
}

}  // namespace tearless::harness
