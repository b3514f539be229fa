#include "harness/commands/sweep_watch.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <utility>

#include "base/print.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/schedule/scheduler.h"
#include "harness/screen/screen.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr double kPlainSummaryEvery = 60;  // seconds, if the output is not a terminal
constexpr double kMaxRest = 1;             // seconds between two looks
constexpr double kSilence = 1;             // seconds without an answer, after which the user is told
constexpr double kRestPart = 0.05;         // of the time so far: a short sweep is not made longer by watching it
constexpr size_t kMaxReasons = 10;

volatile std::sig_atomic_t g_interrupts = 0;

}  // namespace

class SweepWatch::Display {
 public:
  Display() : screen_(stdout) {}

  void say(const std::string& line) { screen_.print(line); }
  void show(const SweepFacts& facts) {
    const std::string summary =
        fmt::format("{} · {} so far", summary_of(facts), duration_text(steady_seconds() - began_));
    screen_.draw(facts.attempts, summary);
    if (screen_.is_live() || steady_seconds() - last_summary_ <= kPlainSummaryEvery) return;
    screen_.print(summary);
    last_summary_ = steady_seconds();
  }
  void clear() { screen_.clear(); }

 private:
  Screen screen_;
  double began_ = steady_seconds(), last_summary_ = steady_seconds();
};

// Lines of a sweep's events.jsonl from now on.
class SweepWatch::Events {
 public:
  explicit Events(const fs::path& file) : file_(file), seen_(fs::exists(file) ? fs::file_size(file) : 0) {}

  template <class F>
  void each_new(const F& show) {
    std::ifstream in(file_, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(seen_));
    for (std::string line; std::getline(in, line) && !in.eof(); seen_ += line.size() + 1) {
      const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
      if (event.is_object()) show(event.value("event", ""), event.value("run", ""), event.value("text", ""));
    }
  }

 private:
  fs::path file_;
  uint64_t seen_;
};

SweepWatch::SweepWatch(const Workspace& workspace, const std::string& sweep, const SweepPolicy& policy,
                       const std::vector<Run>& runs, std::optional<ServiceStart> start)
    : workspace_(workspace),
      sweep_(sweep),
      grace_seconds_(policy.grace_seconds),
      start_(std::move(start)),
      display_(std::make_unique<Display>()),
      events_(std::make_unique<Events>(workspace.sweep(sweep) / "events.jsonl")) {
  for (const Run& run : runs) labels_[run.id] = label_of(run);
  std::signal(SIGINT, [](int) { g_interrupts = g_interrupts + 1; });
}

SweepWatch::~SweepWatch() { std::signal(SIGINT, SIG_DFL); }

void SweepWatch::say(const std::string& line) { display_->say(line); }

WatchEnd SweepWatch::follow() {
  const double began = steady_seconds();
  while (!has_ended()) {
    const double rest = std::min(kMaxRest, kRestPart * (steady_seconds() - began));
    ::poll(nullptr, 0, 1 + static_cast<int>(1000 * rest));
  }
  display_->clear();
  return end_;
}

// Looks once, shows what is new, and does what Ctrl-C asks for.
bool SweepWatch::has_ended() {
  const std::optional<ServiceFacts> facts = facts_of_service(workspace_);
  events_->each_new([&](const std::string& what, const std::string& id, const std::string& text) {
    if (what != "submitted") say(sentence_of({what, id, labels_[id], text, {}}));
  });
  if (!facts) return has_ended_without_service();
  silent_since_.reset();
  const SweepFacts* sweep = facts->sweep(sweep_);
  if (!sweep || sweep->idle()) {
    if (sweep) end_.paused = sweep->reason;
    return true;
  }
  display_->show(*sweep);
  if (g_interrupts == 0) return false;
  const bool was_interrupted = std::exchange(end_.interrupted, true);
  if (!start_ || facts->stays || g_interrupts > 1) {
    end_.left_to = facts->pid;
    return true;
  }
  if (!was_interrupted) pause(sweep->running);
  return false;
}

void SweepWatch::pause(int64_t running) {
  say(fmt::format("Stopping {} at their next checkpoint, within {} s (Ctrl-C again: exit, and let them finish)",
                  running, grace_seconds_));
  request(workspace_, {.name = "pause", .sweeps = {sweep_}}, *start_);
}

bool SweepWatch::has_ended_without_service() {
  if (has_writer(workspace_)) {  // it starts or ends, or waits for a full disk
    if (!is_silent() || g_interrupts == 0) return false;
    end_.interrupted = true;
    return true;
  }
  const std::unique_ptr<const Store> store = Store::open_reader(workspace_);
  const std::optional<Sweep> sweep = store ? store->sweep(sweep_) : std::nullopt;
  if (!sweep) return true;
  StateCounts counts = store->counts_of(sweep_);
  if (counts[RunState::kQueued] + counts[RunState::kRunning] == 0) return true;
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
  return rows_of(store, sweep, Read::kStates, {RunState::kFailed, RunState::kHeld, RunState::kWaitingData});
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
