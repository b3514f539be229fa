#include "harness/commands/sweep_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/print.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/check/recorded_looks.h"
#include "harness/schedule/scheduler.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr double kSilence = 1;  // seconds without an answer, after which the user is told
constexpr size_t kMaxReasons = 10;

}  // namespace

SweepWatch::SweepWatch(const Workspace& workspace, const std::string& sweep, const std::vector<std::string>& together,
                       const SweepPolicy& policy, const std::vector<Run>& runs, std::optional<ServiceStart> start)
    : workspace_(workspace),
      sweep_(sweep),
      together_(together.begin(), together.end()),
      grace_seconds_(policy.grace_seconds),
      start_(std::move(start)),
      events_(workspace.sweep(sweep) / "events.jsonl"),
      events_seen_(fs::exists(events_) ? fs::file_size(events_) : 0) {
  for (const Run& run : runs) labels_[run.id] = label_of(run);
}

WatchEnd SweepWatch::follow() {
  screen_.follow([this] { return !has_ended(); });
  return end_;
}

void SweepWatch::say_new_events() {
  std::ifstream in(events_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(events_seen_));
  for (std::string line; std::getline(in, line) && !in.eof(); events_seen_ += line.size() + 1) {
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object() || event.value("event", "") == "submitted") continue;
    const std::string id = event.value("run", "");
    say(sentence_of({event.value("event", ""), id, labels_[id], event.value("text", ""), {}}));
  }
}

void SweepWatch::show(const SweepFacts& facts, const std::vector<SweepFacts>& all) {
  const std::string time = duration_text(steady_seconds() - began_);
  const std::string waits = facts.reason.empty() ? "" : "; " + facts.reason;
  screen_.draw(
      frame_of(facts.attempts, screen_.columns(),
               fmt::format("{}{} · {} so far{}", summary_of(facts), time_left_text(all, together_), time, waits)));
}

// Looks once, shows what is new, and does what Ctrl-C asks for.
bool SweepWatch::has_ended() {
  const std::optional<ServiceFacts> facts = facts_of_service(workspace_);
  say_new_events();
  if (!facts) return has_ended_without_service();
  silent_since_.reset();
  const SweepFacts* sweep = facts->sweep(sweep_);
  if (!sweep || sweep->idle()) {
    if (sweep) end_.paused = sweep->reason;
    return true;
  }
  show(*sweep, facts->sweeps);
  if (screen_.interrupts() == 0) return false;
  const bool was_interrupted = std::exchange(end_.interrupted, true);
  if (!start_ || facts->stays || screen_.interrupts() > 1) {
    end_.left_to = facts->pid;
    return true;
  }
  if (!was_interrupted) pause(sweep->running);
  return false;
}

void SweepWatch::pause(int64_t running) {
  say(fmt::format("Stopping {} at their next checkpoint, within {} s (Ctrl-C again: exit, and let them finish)",
                  running, grace_seconds_));
  Request pause{.name = "pause", .sweeps = {sweep_}};
  const std::optional<ServiceFacts> facts = facts_of_service(workspace_);
  for (const SweepFacts& other : facts ? facts->sweeps : std::vector<SweepFacts>()) {
    if (other.id != sweep_ && together_.contains(other.id) && !other.idle()) pause.sweeps.push_back(other.id);
  }
  request(workspace_, pause, *start_);
}

bool SweepWatch::has_ended_without_service() {
  if (has_writer(workspace_)) {  // it starts or ends, or waits for a full disk
    if (!is_silent() || screen_.interrupts() == 0) return false;
    end_.interrupted = true;
    return true;
  }
  const std::unique_ptr<const Store> store = Store::open_reader(workspace_);
  const std::optional<Sweep> sweep = store ? store->sweep(sweep_) : std::nullopt;
  if (!sweep) return true;
  StateCounts counts = store->counts_of(sweep_);
  if (counts[RunState::kQueued] + counts[RunState::kRunning] == 0) {
    if (!start_ || !is_look_due(*store, sweep_)) return true;
    require_service(workspace_, *start_);
    return false;
  }
  if (sweep->state != SweepState::kActive && counts[RunState::kRunning] == 0) {
    end_.paused = sweep->reason;
    return true;
  }
  if (was_stopped(workspace_)) {
    end_.paused = "the service was stopped on request";
    return true;
  }
  if (!start_) {
    end_.paused = fmt::format("no tearless works in {} any more", workspace_.root().string());
    return true;
  }
  say("The service has ended before its work; another one takes over");
  require_service(workspace_, *start_);
  return false;
}

// Says why, once.
bool SweepWatch::is_silent() {
  if (!silent_since_) silent_since_ = steady_seconds();
  if (steady_seconds() - *silent_since_ < kSilence) return false;
  std::string last;
  std::ifstream log(service_log(workspace_));
  for (std::string line; std::getline(log, line);) last = line;
  if (std::exchange(told_, last) != last) say("The service does not answer. Its log: " + last);
  return true;
}

std::vector<std::string> reason_lines(const std::vector<Row>& rows) {
  std::map<std::pair<RunState, std::string>, std::vector<std::string>> runs_of;  // state and reason → runs
  for (const Row& row : rows) runs_of[{*row.result.state, row.result.reason}].push_back(row.run.id);
  std::vector<std::string> lines;
  for (const auto& [why, ids] : runs_of) {
    if (lines.size() == kMaxReasons) {
      lines.push_back(fmt::format("… and {} more reasons", runs_of.size() - kMaxReasons));
      break;
    }
    const std::string others = ids.size() > 1 ? fmt::format(" and {} more", ids.size() - 1) : "";
    lines.push_back(fmt::format("{}: {}{}: {}", name_of(why.first), ids.front(), others, why.second));
  }
  return lines;
}

std::vector<Row> stuck_rows_of(const Store& store, const Sweep& sweep) {
  return rows_of(store, sweep, {RunState::kFailed, RunState::kHeld, RunState::kWaitingData});
}

StateCounts print_outcome(const Store& store, const std::string& sweep) {
  StateCounts counts;
  std::vector<Row> listed;
  store.in_snapshot([&] {
    counts = store.counts_of(sweep);
    if (const std::optional<Sweep> known = store.sweep(sweep)) listed = stuck_rows_of(store, *known);
  });
  int64_t all = 0;
  for (const auto& [state, runs] : counts) all += runs;
  print("{}: {}\n", counted(all, "run"), text_of(counts));
  for (const std::string& line : reason_lines(listed)) print("  {}\n", line);
  return counts;
}

}  // namespace tearless::harness
