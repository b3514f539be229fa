#include "harness/check/recorded_looks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/folders/sweep_directory.h"
#include "harness/results/curves.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace {

std::string checksum_of(const Store& store, const std::string& run) {
  const std::optional<RecordedResult> result = store.recorded_result(run);
  return result && result->scores ? sha256(*result->scores) : "";
}

std::vector<RecordedLook> compared(const Store& store, std::vector<LookTaken> looks) {
  std::vector<RecordedLook> all;
  for (LookTaken& look : looks) {
    RecordedLook& one = all.emplace_back(RecordedLook{.taken = std::move(look)});
    for (const auto& [run, checksum] : one.taken.saw) {
      if (!store.recorded_result(run) || checksum_of(store, run) != checksum) one.changed = run;
    }
  }
  return all;
}

/// Whether they saw runs of this grid, of its first seeds.
bool are_of(const std::vector<LookTaken>& looks, const Grid& grid, const ResultSet& results) {
  std::map<std::string, ptrdiff_t> place;  // run → that of its seed
  for (const Row& row : results.rows)
    place[row.run.id] = std::ranges::find(grid.seeds, row.run.seed) - grid.seeds.begin();
  return std::ranges::all_of(looks, [&](const LookTaken& look) {
    return std::ranges::all_of(look.saw, [&](const auto& one) {
      const auto found = place.find(one.first);
      return found != place.end() && found->second < static_cast<ptrdiff_t>(look.seeds);
    });
  });
}

/// The runs of all grid points that the claim's cells at its place are made of, or chosen from: those of the first
/// `seeds` of the grid that are not in `wanted` yet.
std::vector<std::string> runs_to_ask(const Grid& grid, const Check& check, const std::vector<View>& views,
                                     const std::vector<Row>& rows, size_t seeds, const std::set<std::string>& wanted) {
  const auto& claim = std::get<ClaimSpec>(views[check.claim].spec);
  const Arrangement& arrangement = views[claim.table].table().arrangement;
  std::set<std::string> free = {kDerivedLabel};  // axes of which the cells may have any label
  for (const size_t axis : arrangement.select ? arrangement.select->over : std::vector<size_t>())
    free.insert(grid.axes[axis].name);
  const auto fixed = [&](const Row& row) {
    Labels labels = row.run.coordinates;
    std::erase_if(labels, [&](const auto& entry) { return free.contains(entry.first); });
    return labels;
  };
  const std::set<std::string> seen(check.runs.begin(), check.runs.end());
  std::set<Labels> points;
  for (const Row& row : rows) {
    if (seen.contains(row.run.id)) points.insert(fixed(row));
  }
  const std::set<int64_t> first(grid.seeds.begin(), grid.seeds.begin() + static_cast<ptrdiff_t>(seeds));
  std::vector<std::string> runs;
  for (const Row& row : rows) {
    if (first.contains(row.run.seed) && points.contains(fixed(row)) && !wanted.contains(row.run.id))
      runs.push_back(row.run.id);
  }
  return runs;
}

/// When the claims were first submitted; empty if no sweep says it.
std::map<std::string, std::string> declared_of(const Grid& grid, const ResultSet& results) {
  if (!results.store || results.rows.empty()) return {};
  const Workspace workspace(results.store->root());
  if (const std::string sweep = results.rows.front().sweep_id(); !sweep.empty())
    return declarations_of(workspace, sweep);
  std::map<std::string, std::string> declared;
  for (const Sweep& sweep : results.store->sweeps()) {
    if (!is_of_grid(sweep, grid.file)) continue;
    for (const auto& [hash, time] : declarations_of(workspace, sweep.id)) {
      const auto [known, is_new] = declared.emplace(hash, time);
      if (!is_new) known->second = std::min(known->second, time);
    }
  }
  return declared;
}

/// "2026-01-31"; "" for a claim that was not submitted.
std::string day_of(const Check& check, const std::map<std::string, std::string>& declared) {
  const auto at = declared.find(check.hash);
  return at == declared.end() ? "" : at->second.substr(0, std::string_view("2026-01-31").size());
}

std::string declaration_of(const Check& check, const std::map<std::string, std::string>& declared,
                           const std::vector<Row>& rows) {
  const auto at = declared.find(check.hash);
  const std::set<std::string> own(check.runs.begin(), check.runs.end());
  std::set<std::string> all, before;
  for (const Row& row : rows) {
    if (!own.contains(row.run.id) || !row.result.state || !has_result(*row.result.state)) continue;
    all.insert(row.run.id);
    const std::string end = row.result.attempts.empty() ? "" : row.result.attempts.back().ended_at;
    if (at == declared.end() || (!end.empty() && end < at->second)) before.insert(row.run.id);
  }
  if (before.empty()) return "";
  return fmt::format("declared {}, after {} of its {} existed",
                     check.declared_on.empty() ? "and not submitted yet" : "on " + check.declared_on, before.size(),
                     counted(std::ssize(all), "result"));
}

std::string place_text(const Place& place) {
  std::vector<std::string> words;
  for (const auto& [axis, label] : place) words.push_back(axis + "=" + label);
  return words.empty() ? "" : fmt::format(" at {}", fmt::join(words, ", "));
}

std::vector<RecordedLook> recorded_looks(const Grid& grid, const ResultSet& results) {
  if (grid.claims.looks.empty() || !results.store || results.rows.empty()) return {};
  const Store& store = *results.store;
  const Workspace workspace(store.root());
  if (const std::string sweep = results.rows.front().sweep_id(); !sweep.empty())
    return compared(store, read_looks(workspace, sweep));
  for (const Sweep& sweep : store.sweeps()) {
    if (!is_of_grid(sweep, grid.file)) continue;
    std::vector<LookTaken> looks = read_looks(workspace, sweep.id);
    if (!looks.empty() && are_of(looks, grid, results)) return compared(store, std::move(looks));
  }
  return {};
}

}  // namespace

GridChecks check_with_looks(const Grid& grid, const std::vector<View>& views, const ResultSet& results) {
  GridChecks checks =
      check_grid(grid, views, tables_of(grid, views, results.rows), results, recorded_looks(grid, results));
  const std::map<std::string, std::string> declared = declared_of(grid, results);
  if (!declared.empty()) {
    for (Check& check : checks.claims) {
      check.declared_on = day_of(check, declared);
      check.declared = declaration_of(check, declared, results.rows);
    }
  }
  return checks;
}

namespace {

/// What take_looks() takes.
std::vector<LookTaken> looks_due(const Workspace& workspace, const std::string& id, bool may_ask) {
  const Sweep sweep = read_sweep(workspace, id, SweepRuns::kAll);
  if (!sweep.policy.until_decided) return {};
  const Grid grid = frozen_grid(workspace, id);
  const std::vector<View> views = views_of(grid);
  ResultSet results{.store = Store::open_reader(workspace), .windows = sweep.windows};
  for (const Run& run : sweep.runs) {
    Row& row = results.rows.emplace_back(Row{.run = run});
    row.derivation = derivation_of(run);
  }
  set_trained(results.rows);
  read_results(results.store.get(), results.rows);
  add_defined_scores(grid, results);

  std::set<std::string> wanted;
  for (const Run& run : read_sweep(workspace, id).runs) wanted.insert(run.id);
  const std::vector<RecordedLook> recorded = compared(*results.store, read_looks(workspace, id));
  std::vector<LookTaken> taken;
  for (const ClaimLooks& looks : looks_at_claims(grid, views, results, recorded)) {
    for (const Check& check : looks) {
      const Finding& finding = check.finding;
      const bool is_decided = finding.verdict == ClaimVerdict::kHeld || finding.verdict == ClaimVerdict::kContradicted;
      if (!is_decided && finding.verdict != ClaimVerdict::kCannotTell) continue;
      LookTaken look{.claim = check.text.text,
                     .hash = check.hash,
                     .place = check.place,
                     .look = check.look->number,
                     .seeds = check.look->seeds,
                     .verdict = name_of(finding.verdict),
                     .level = finding.level,
                     .estimate = finding.estimate,
                     .n = finding.n,
                     .reason = finding.reason,
                     .shown = check.shown,
                     .at = utc_now()};
      if (finding.interval) std::tie(look.low, look.high) = *finding.interval;
      for (const std::string& run : check.runs) look.saw[run] = checksum_of(*results.store, run);
      if (!is_decided && may_ask && look.look < grid.claims.looks.size())
        look.asks = runs_to_ask(grid, check, views, results.rows, grid.claims.looks[look.look], wanted);
      wanted.insert(look.asks.begin(), look.asks.end());
      const bool is_new = std::ranges::none_of(recorded, [&](const auto& one) { return is_of(one.taken, check); });
      if (is_new || !look.asks.empty()) taken.push_back(std::move(look));
    }
  }
  return taken;
}

}  // namespace

std::vector<LookTaken> take_looks(const Workspace& workspace, const std::string& sweep, bool may_ask) {
  std::vector<LookTaken> taken = looks_due(workspace, sweep, may_ask);
  if (!taken.empty()) append_looks(workspace, sweep, taken);
  return taken;
}

bool is_look_due(const Store& store, const std::string& id) {
  const std::optional<Sweep> sweep = store.sweep(id);
  if (!sweep || !sweep->policy.until_decided || sweep->state != SweepState::kActive) return false;
  const Workspace workspace(store.root());
  return read_sweep(workspace, id).runs.size() != store.runs_of(id).size() ||
         !looks_due(workspace, id, /*may_ask=*/false).empty();
}

std::string sentence_of(const LookTaken& look) {
  const std::string more = look.asks.empty() ? "" : fmt::format("; {} more", counted(std::ssize(look.asks), "run"));
  return fmt::format("\"{}\"{}, look {} with {} seeds: {}{}{}", look.claim, place_text(look.place), look.look,
                     look.seeds, look.verdict, look.shown.empty() ? "" : " " + look.shown, more);
}

std::vector<std::string> claims_held_open(const GridChecks& checks, const ResultSet& results,
                                          const std::string& options) {
  std::vector<std::string> sentences;
  for (const Check& check : checks.claims) {
    if (!check.look || check.finding.verdict != ClaimVerdict::kNotTested) continue;
    const std::set<std::string> own(check.runs.begin(), check.runs.end());
    const auto ended = std::ranges::find_if(results.rows, [&](const Row& row) {
      const std::optional<RunState>& state = row.result.state;
      return own.contains(row.run.id) && state && is_inactive(*state) && !has_result(*state);
    });
    if (ended == results.rows.end()) continue;
    sentences.push_back(fmt::format(
        "\"{}\"{} waits at look {} for run {}, which is {}: tearless retry {}{}; without it the claim is not "
        "tested",
        check.text.text, place_text(check.place), check.look->number, ended->run.id, name_of(*ended->result.state),
        ended->run.id, options));
  }
  return sentences;
}

}  // namespace tearless::harness
