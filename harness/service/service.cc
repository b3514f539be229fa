#include "harness/service/service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/file_stamp.h"
#include "base/time.h"
#include "harness/folders/sweep_directory.h"
#include "harness/store/record.h"
#include "harness/store/writer.h"

namespace tearless::harness {
using nlohmann::json;
namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr double kRestPerLook = 10;  // while runs are left: times as long as taking the looks took

EndEvent end_of_sweep(const Store& store, const std::string& sweep) {
  const StateCounts counts = store.counts_of(sweep);
  const bool done = std::all_of(counts.begin(), counts.end(), [](const auto& entry) {
    return entry.first == RunState::kDone || entry.first == RunState::kDiverged;
  });
  return {
      .event = "sweep", .id = sweep, .sweep = sweep, .state = done ? "done" : "incomplete", .reason = text_of(counts)};
}

std::map<std::string, int64_t> by_name(const StateCounts& counts) {
  std::map<std::string, int64_t> named;
  for (const auto& [state, runs] : counts) named[std::string(name_of(state))] = runs;
  return named;
}

}  // namespace

Service::Service(boost::asio::io_context& io, Store& store, Launcher& launcher, const Workspace& workspace,
                 ServiceOptions options, Listener listener)
    : store_(store),
      workspace_(workspace),
      options_(std::move(options)),
      listener_(std::move(listener)),
      timer_(io),
      launcher_(launcher),
      scheduler_(store, workspace, launcher_, steady_seconds, [this](const SchedulerEvent& event) { on_event(event); }),
      started_at_(utc_now()),
      ownership_(workspace),
      folder_(identity_of_file(workspace.root())),
      hooks_(options_.on_end, workspace.root() / "on_end.log",
             [this](const EndEvent& event, const std::string& what) {
               const std::string text =
                   fmt::format("the command of --on-end for {} {} {}", event.event, event.id, what);
               const bool has_log = scheduler_.knows(event.sweep);
               on_event({"warning", "", "", text, has_log ? std::vector{event.sweep} : std::vector<std::string>{}});
             }),
      busy_at_(steady_seconds()) {}

void Service::begin() {
  is_anothers_ = !ownership_.holds(steady_seconds());
  if (is_anothers_) return;
  scheduler_.let_start(options_.stays);
  scheduler_.begin();
  std::vector<Sweep> active;
  for (const std::string& sweep : store_.active_sweeps())
    titles_[sweep] = active.emplace_back(*store_.sweep(sweep)).title;
  scheduler_.add_active();
  for (const Sweep& sweep : active) follow_looks(sweep);
  tick();
}

Vanished Service::vanished() const {
  if (identity_of_file(workspace_.root()) != folder_) return Vanished::kWorkspace;
  if (is_anothers_) return Vanished::kOwnership;
  return store_.is_gone() ? Vanished::kDatabase : Vanished::kNothing;
}

void Service::tick() {
  if (vanished() == Vanished::kNothing) is_anothers_ = !ownership_.holds(steady_seconds());
  if (vanished() == Vanished::kNothing) {
    scheduler_.tick();
    take_looks();
    note_ended_sweeps();
    hooks_.tick();
  }
  if (is_busy()) {
    busy_at_ = steady_seconds();
    was_used_ = true;
  }
  timer_.expires_after(kTick);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    scheduler_.let_start(true);
    tick();
  });
}

double Service::idle_seconds() const { return is_busy() ? 0 : steady_seconds() - busy_at_; }

void Service::on_event(const SchedulerEvent& event) {
  for (const std::string& sweep : event.sweeps) {
    log_event(workspace_, sweep, event.what, {{"run", event.id}, {"text", event.text}});
  }
  listener_(event);
  const bool ended =
      event.what == "done" || event.what == "diverged" || event.what == "failed" || event.what == "cancelled";
  if (!ended || event.id.empty()) return;
  for (const std::string& sweep : event.sweeps) {
    if (const auto found = look_is_due_.find(sweep); found != look_is_due_.end()) found->second = true;
  }
  hooks_.add({.event = "run",
              .id = event.id,
              .sweep = event.sweeps.empty() ? "" : event.sweeps.front(),
              .state = event.what,
              .reason = event.text});
}

// --- sweeps that are trained until their claims are decided ----------------------------------------------------------

// A kill may have come between the look that asks for runs and the database that has them.
void Service::follow_looks(const Sweep& sweep) {
  if (!sweep.policy.until_decided || !options_.take_looks) return;
  look_is_due_[sweep.id] = true;
  try {
    grow(sweep.id);
  } catch (const MachineError&) {
    throw;
  } catch (const UserError& error) {
    scheduler_.pause(sweep.id, error.what(), OnPause::kContinue);
  }
}

// Adds the runs to the sweep that its looks have asked for. A command writes the sweep's folder before it asks the
// service: the folder's policy may be without looks while the database's still has them.
void Service::grow(const std::string& id) {
  const Sweep sweep = read_sweep(workspace_, id);
  if (!sweep.policy.until_decided) look_is_due_.erase(id);
  if (store_.runs_of(id).size() == sweep.runs.size()) return;
  store_.submit(sweep);
  scheduler_.add(id, Scheduler::Add::kRestart);
}

bool Service::is_look_due(const std::string& sweep) const {
  const auto found = look_is_due_.find(sweep);
  return found != look_is_due_.end() && found->second && scheduler_.paused(sweep).empty();
}

bool Service::is_any_look_due() const {
  return std::ranges::any_of(look_is_due_, [&](const auto& entry) { return is_look_due(entry.first); });
}

void Service::take_looks() {
  if (asked_to_end_ || (steady_seconds() < next_looks_at_ && scheduler_.is_busy())) return;
  const double began = steady_seconds();
  for (const auto& [sweep, is_due] : std::map(look_is_due_)) {
    if (is_look_due(sweep)) take_looks_of(sweep);
  }
  next_looks_at_ = steady_seconds() + kRestPerLook * (steady_seconds() - began);
}

void Service::take_looks_of(const std::string& id) {
  const std::optional<Sweep> sweep = store_.sweep(id);
  const auto say = [&](const std::string& text) { on_event({"look", "", "", text, {id}}); };
  const std::optional<double>& hours = sweep->policy.until_decided->max_hours;
  const std::optional<int64_t> began = seconds_of_utc(sweep->submitted_at), now = seconds_of_utc(utc_now());
  const bool may_ask = !hours || !began || static_cast<double>(*now - *began) < 3600 * *hours;
  try {
    const std::vector<std::string> asked = options_.take_looks(id, may_ask, say);
    look_is_due_[id] = false;
    if (asked.empty()) return;
    grow(id);
    for (const std::string& run : asked) {
      if (store_.known_run(run).state == RunState::kCancelled) scheduler_.retry(run);  // with another sweep
    }
  } catch (const MachineError&) {
    throw;
  } catch (const UserError& error) {
    look_is_due_[id] = false;
    scheduler_.pause(id, error.what(), OnPause::kContinue);
  }
}

void Service::note_ended_sweeps() {
  for (const auto& [id, title] : titles_) {
    const SweepCounts counts = scheduler_.counts(id);
    if (counts.waiting + counts.running > 0 || is_look_due(id)) {
      unfinished_.insert(id);
    } else if (unfinished_.erase(id) > 0) {
      hooks_.add(end_of_sweep(store_, id));
    }
  }
}

void Service::finish_hooks() {
  note_ended_sweeps();
  hooks_.finish();
}

SubmissionFacts Service::submit(const std::string& id, Scheduler::Add how, bool replace) {
  if (!std::filesystem::exists(workspace_.sweep(id) / "sweep.json")) {
    fail("there is no sweep {} in {}", id, workspace_.root().string());
  }
  const std::optional<Sweep> before = store_.sweep(id);
  const StateCounts left = store_.counts_of(id);
  const Sweep sweep = submit_sweep(store_, workspace_, id);
  titles_[id] = sweep.title;
  scheduler_.add(id, how);
  look_is_due_.erase(id);
  follow_looks(sweep);
  const StateCounts now = store_.counts_of(id);
  SubmissionFacts facts{.id = id,
                        .kept_place = sweep.submission.queued != sweep.submission.newest,
                        .resumed = before && before->state == SweepState::kPaused,
                        .new_build = before && before->program != sweep.program,
                        .states = by_name(now)};
  for (const auto& [state, runs] : left) {
    const auto still = now.find(state);
    const int64_t fewer = runs - (still == now.end() ? 0 : still->second);
    if (is_inactive(state) && fewer > 0) facts.queued_again[std::string(name_of(state))] = fewer;
  }
  facts.beside = others_of(sweep);
  if (replace) facts.replaced = std::exchange(facts.beside, {});
  for (const std::string& other : facts.replaced) {
    require({other});
    scheduler_.cancel(other);
  }
  note_ended_sweeps();  // it may end before the next tick
  return facts;
}

// Sweeps of the same grid file that are not over. If they are cancelled, runs that both have go on.
std::vector<std::string> Service::others_of(const Sweep& sweep) const {
  std::vector<std::string> others;
  for (const Sweep& other : store_.sweeps()) {
    if (other.id == sweep.id || other.grid_file != sweep.grid_file || store_.is_over(other.id)) continue;
    others.push_back(other.id);
  }
  return others;
}

void Service::require(const std::vector<std::string>& sweeps) {
  for (const std::string& id : sweeps) {
    if (scheduler_.knows(id)) continue;
    const std::optional<Sweep> sweep = store_.sweep(id);
    if (!sweep) fail("there is no sweep {} in {}", id, workspace_.root().string());
    titles_[id] = sweep->title;
    scheduler_.add(id, Scheduler::Add::kRestart);
    follow_looks(*sweep);
  }
}

void Service::set_priority(const std::string& id, int64_t priority) {
  log_event(workspace_, id, "priority", {{"priority", priority}, {"text", std::to_string(priority)}});
  scheduler_.set_priority(id, priority);
}

void Service::drop(const std::string& id) {
  note_ended_sweeps();  // this one, too, if it has ended since the last tick
  scheduler_.drop(id);
  look_is_due_.erase(id);
  titles_.erase(id);
  unfinished_.erase(id);
}

void Service::end(bool now, bool is_stop) {
  asked_to_end_ = true;
  if (now) scheduler_.stop();
  if (is_stop && scheduler_.is_busy()) note_stop(workspace_);
}

void Service::keep_secrets(const Request& request) {
  for (const std::string& sweep : request.sweeps) scheduler_.keep_secrets(sweep, request.secrets);
  for (const std::string& run : request.runs) {
    for (const std::string& sweep : store_.sweeps_of(run)) scheduler_.keep_secrets(sweep, request.secrets);
  }
}

json Service::answer(const Request& request) {
  const RequestKind& kind = *find_request_kind(request.name);
  try {
    if (vanished() == Vanished::kWorkspace) {
      fail("{} was moved or deleted while this process used it", workspace_.root().string());
    }
    if (is_anothers_) fail("{} was taken over by another service", workspace_.root().string());
    store_.require_there();
    if (asked_to_end_ && kind.target != RequestTarget::kNothing) fail("the service is ending; try again");
    if (!request.secrets.empty()) keep_secrets(request);
    json answer = kind.carry_out(*this, request);
    if (kind.target == RequestTarget::kNothing) return answer;
    scheduler_.let_start(true);
    busy_at_ = steady_seconds();
    was_used_ = true;
    return answer;
  } catch (const MachineError& error) {
    machine_fault_ = error.what();
    return {{"error", error.what()}};
  } catch (const UserError& error) {
    return {{"error", error.what()}};
  }
}

ServiceFacts Service::facts() const {
  ServiceFacts facts{.stays = options_.stays,
                     .build = std::string(build_stamp()),
                     .arguments = options_.arguments,
                     .busy = is_busy(),
                     .ends = asked_to_end_,
                     .pid = ::getpid(),
                     .started_at = started_at_,
                     .devices = launcher_.devices(),
                     .notes = launcher_.notes(),
                     .sweeps = {}};
  std::optional<std::map<std::string, std::string>> why_idle;  // one pass over all that is queued
  for (const auto& [id, title] : titles_) {
    const SweepCounts counts = scheduler_.counts(id);
    const std::string paused = scheduler_.paused(id);
    const Scheduler::TimeLeft left = scheduler_.time_left(id);
    const bool is_idle = paused.empty() && counts.running == 0 && counts.waiting > 0;
    if (is_idle && !why_idle) why_idle = scheduler_.why_idle();
    facts.sweeps.push_back({.id = id,
                            .title = title,
                            .state = paused.empty() ? "active" : "paused",
                            .reason = is_idle ? (*why_idle)[id] : paused,
                            .priority = scheduler_.priority(id),
                            .total = counts.total,
                            .waiting = counts.waiting,
                            .held = counts.held,
                            .seconds_left = left.seconds,
                            .untimed = left.untimed,
                            .look_is_due = is_look_due(id),
                            .attempts = scheduler_.progress(id)});
    SweepFacts& sweep = facts.sweeps.back();
    for (const Progress& attempt : sweep.attempts) {
      if (attempt.phase == Phase::kGranted && sweep.reason.empty()) sweep.reason = attempt.waits_for;
      ++(attempt.phase == Phase::kRunning   ? sweep.running
         : attempt.phase == Phase::kGranted ? sweep.granted
                                            : sweep.silent);
    }
  }
  return facts;
}

}  // namespace tearless::harness
