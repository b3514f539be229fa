// `tearless wait [SWEEP | RUN …]`: returns when they have ended, or when nothing works on them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/print.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/check/recorded_looks.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/plan/grid_state.h"
#include "harness/selection/selectors.h"
#include "harness/service/start.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(500);
constexpr int kRestPerLook = 20;  // in large workspaces: this many times as long as a look takes, but not longer than:
constexpr auto kMaxRest = std::chrono::seconds(10);
constexpr double kSayEvery = 60;  // seconds between two sentences about what it waits for

struct Left {
  int64_t all = 0;
  int64_t pending = 0;         // queued or running
  int64_t without_result = 0;  // neither done nor diverged
};

Left left_of(const Store& store, const Selection& chosen) {
  Left left;
  const auto count = [&](RunState state, int64_t runs) {
    left.all += runs;
    if (state == RunState::kQueued || state == RunState::kRunning) left.pending += runs;
    if (state != RunState::kDone && state != RunState::kDiverged) left.without_result += runs;
  };
  for (const std::string& sweep : chosen.sweeps) {
    const StateCounts counts = store.counts_of(sweep);
    // After them: of a sweep that is deleted in between there is nothing to count, which is not success.
    const std::optional<Sweep> record = store.sweep(sweep);
    if (!record) fail("sweep {} was deleted meanwhile", sweep);
    const bool active = record->state == SweepState::kActive;
    for (const auto& [state, runs] : counts) {
      count(state, runs);
      if (!active && state == RunState::kQueued) left.pending -= runs;  // they will not be started
    }
  }
  for (const std::string& run : chosen.runs) count(store.known_run(run).state, 1);
  return left;
}

// What the words meant, and of which of its runs there is no result.
nlohmann::json outcome_of(const Store& store, const Selection& chosen, const Left& left) {
  nlohmann::json without = nlohmann::json::array();
  std::set<std::string> seen;  // sweeps share runs
  const auto add = [&](const RunRecord& run) {
    if (!has_result(run.state) && seen.insert(run.id).second)
      without.push_back({{"run", run.id}, {"state", name_of(run.state)}, {"reason", run.reason}});
  };
  for (const std::string& sweep : chosen.sweeps) std::ranges::for_each(store.runs_of(sweep), add);
  for (const std::string& run : chosen.runs) add(store.known_run(run));
  return {{"sweeps", chosen.sweeps}, {"runs", left.all}, {"without_result", std::move(without)}};
}

// Whether a look may ask for more runs of one of the sweeps, or has asked for some since `left` was counted.
bool may_grow(const Globals& globals, const Selection& chosen, const Left& left) {
  const std::unique_ptr<const Store> store = require_store(globals);
  const auto is_due = [&](const std::string& sweep) { return is_look_due(*store, sweep); };
  return std::ranges::any_of(chosen.sweeps, is_due) || left_of(*store, chosen).all != left.all;
}

// "waiting for 12 of 24 runs · 1:02:03 left", the time if the service knows it of all the sweeps that have not ended.
std::string sentence_of(const Left& left, const Selection& chosen, const Workspace& workspace) {
  const std::string text = fmt::format("waiting for {} of {}", left.pending, counted(left.all, "run"));
  std::optional<ServiceFacts> facts;
  try {
    facts = facts_of_service(workspace);
  } catch (const UserError&) {
    // It does not answer now. The database says when the runs have ended, so this is no reason to stop waiting.
  }
  std::optional<double> longest;
  for (const std::string& id : chosen.sweeps) {
    const SweepFacts* sweep = facts ? facts->sweep(id) : nullptr;
    if (sweep && sweep->idle()) continue;
    if (!sweep || !sweep->seconds_left) return text;
    longest = std::max(longest.value_or(0), *sweep->seconds_left);
  }
  return longest && chosen.runs.empty() ? fmt::format("{} · {} left", text, duration_text(longest)) : text;
}

int wait(const std::vector<std::string>& words, ServiceFlags service, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  const Selection chosen = select_or_last(*require_store(globals), words);
  if (service.are_typed()) {
    service.keep_in(workspace);
    if (const auto working = facts_of_service(workspace)) notice_if_without_effect(service, *working, globals);
  }
  double said = steady_seconds();
  while (true) {
    const auto began = std::chrono::steady_clock::now();
    const bool served = has_writer(workspace);
    // Opened for each look: another service may have another database, one that was rebuilt.
    const Left left = left_of(*require_store(globals), chosen);
    if (left.pending == 0 && !may_grow(globals, chosen, left)) {
      if (globals.json) print_json(outcome_of(*require_store(globals), chosen, left));
      return left.without_result == 0 ? kOk : kSomethingFailed;
    }
    if (!served && was_stopped(workspace)) {
      fail("{} have not ended, and the service of {} was stopped; to start one: tearless daemon --background{}",
           counted(left.pending, "run"), workspace.root().string(), options_again(globals));
    }
    if (!served) require_service(workspace, {});  // the other one was killed
    if (steady_seconds() - said >= kSayEvery) {
      notice(sentence_of(left, chosen, workspace));
      said = steady_seconds();
    }
    const auto look = std::chrono::steady_clock::now() - began;
    std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(kRestPerLook * look, kBetweenLooks, kMaxRest));
  }
}

}  // namespace

Action command_wait(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("what", *words,
                 "sweeps (ids, names, grid files, last, all) or runs (ids, places, states, axis=label); default: last");
  const auto service = std::make_shared<ServiceFlags>();
  service->add_limits_to(app);
  return [words, service, &globals] { return wait(*words, *service, globals); };
}

}  // namespace tearless::harness
