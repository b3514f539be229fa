#include "harness/commands/plan_seeds.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/archive/archive.h"
#include "harness/archive/open_archive.h"
#include "harness/launch/machine.h"
#include "harness/results/curves.h"

namespace tearless::harness {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::vector<Table> tables_of(GridState& state) {
  add_defined_scores(state.grid, state.results);
  return tables_of(state.grid, state.views, state.results.rows);
}

std::string sweep_like(const Store& store, const fs::path& grid, const fs::path& archive) {
  const std::vector<Sweep> sweeps = store.sweeps();
  const auto same =
      std::ranges::find(sweeps, grid.stem(), [](const Sweep& sweep) { return fs::path(sweep.grid_file).stem(); });
  if (same != sweeps.end()) return same->id;
  if (sweeps.size() == 1) return sweeps.front().id;
  std::vector<std::string> names;
  for (const Sweep& sweep : sweeps) names.push_back(sweep.id);
  fail("--like {}: it has no sweep of a grid file {}; it has {}", archive.string(), grid.filename().string(),
       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

GridState state_like(const fs::path& archive, const fs::path& grid, const Globals& globals) {
  if (!has_archive_name(archive) || !fs::exists(archive))
    fail("--like {}: there is no such archive; tearless copy FILE.tar.gz writes one", archive.string());
  Globals there = globals;
  there.workspace = open_workspace(archive);
  return look_up_sweep({sweep_like(*require_store(there), grid, archive)}, there, grid, LaidSeeds::kOfSweep);
}

// --- text ------------------------------------------------------------------------------------------------------------

std::string range_text(const std::string& least, const std::string& most) {
  return least == most ? least : fmt::format("{} to {}", least, most);
}

std::string text_of(const std::optional<size_t>& seeds) {
  return seeds ? std::to_string(*seeds) : fmt::format("more than {}", kMaxSeeds);
}

/// "4 to 29 seeds for 0.3 bleu; s_d 0.18 from 3 seeds".
std::string text_of(const SeedsNeeded& needed, const ClaimSpec& claim, const ClaimTests& tests) {
  const std::string deviation = needed.is_paired && claim.kind->form != ClaimKind::Form::kValue ? "s_d" : "s";
  const std::string what = needed.difference ? fmt::format("{:.3g} {}", *needed.difference, last_word(needed.score))
                                             : fmt::format("one {}", deviation);
  std::string text;
  if (needed.at_looks) {
    const auto& [best, worst] = *needed.at_looks;
    const auto percent = [](double share) { return fmt::format("{:.0f}", 100 * share); };
    text += fmt::format("at most {} seeds, {} on average, find {} in {} %", tests.looks.back(),
                        range_text(fmt::format("{:.1f}", best.seeds), fmt::format("{:.1f}", worst.seeds)), what,
                        range_text(percent(worst.power), percent(best.power)));
  } else {
    text += fmt::format("{} seeds for {}", range_text(text_of(needed.least), text_of(needed.most)), what);
  }
  if (needed.deviation) {
    text += fmt::format("; {} {:.3g} from {}", deviation, *needed.deviation,
                        counted(static_cast<int64_t>(needed.seeds), "seed"));
    std::vector<std::string> labels;
    for (const auto& [axis, label] : needed.place) labels.push_back(label);
    if (!labels.empty()) text += fmt::format(" ({})", fmt::join(labels, ", "));
  } else if (needed.difference) {
    text += fmt::format("; a guess, that {} is as large: no two seeds of its cells have run", deviation);
  }
  return text;
}

json json_of(const PowerAtLooks& power) {
  return {{"decided", power.decided}, {"power", power.power}, {"seeds", power.seeds}};
}

}  // namespace

SeedsPlan seeds_plan_of(GridState& state, const fs::path& like, const Globals& globals) {
  SeedsPlan plan{.tests = state.grid.claims};
  const auto is_claim = [](const View& view) { return std::holds_alternative<ClaimSpec>(view.spec); };
  if (std::ranges::none_of(state.views, is_claim) || !state.errors.empty()) return plan;
  const std::vector<Table> tables = tables_of(state);
  if (like.empty()) {
    plan.claims = seeds_needed(state.views, tables, tables, plan.tests);
  } else {
    GridState other = state_like(like, state.grid.file, globals);
    plan.claims = seeds_needed(state.views, tables, tables_of(other), plan.tests);
  }
  std::set<std::string> seen;
  for (const Row& row : state.results.rows) {
    const bool is_first = row.is_trained() && row.run.seed == state.grid.seeds.front();
    if (is_first && seen.insert(row.run.id).second) plan.further.add(row.run);
  }
  plan.further.estimate_with(state.results.store.get(), Workspace(globals.workspace));
  return plan;
}

std::vector<std::string> lines_of(const SeedsPlan& plan, const std::vector<View>& views, const std::string& calibrate) {
  std::vector<std::string> lines;
  if (plan.claims.empty()) return lines;
  lines.push_back(plan.tests.looks.empty()
                      ? "Seeds with which a claim is decided in 80 %, if the difference is there:"
                      : fmt::format("Claims with looks at {} seeds:", fmt::join(plan.tests.looks, ", ")));
  std::map<std::string, int64_t> alike;  // claims of which nothing is known
  for (const SeedsNeeded& one : plan.claims) {
    const View& view = views[one.claim];
    const auto& claim = std::get<ClaimSpec>(view.spec);
    const std::string text = text_of(one, claim, plan.tests);
    if (one.difference || one.deviation) {
      lines.push_back(
          printable(fmt::format("  {}{}{}: {}", claim.name, claim.name.empty() ? "" : " ", view.title.text, text)));
    } else {
      ++alike[text];
    }
  }
  for (const auto& [text, count] : alike)
    lines.push_back(fmt::format("  {} of unknown spread: {}", counted(count, "claim"), text));
  const std::vector<std::string> cost =
      estimate_lines(plan.further.estimate, static_cast<int>(cores_of_process().size()), /*gpus=*/0, calibrate);
  lines.push_back(
      fmt::format("  One more seed: {}; {}", counted(std::ssize(plan.further.runs), "run"), fmt::join(cost, "; ")));
  return lines;
}

json to_json(const SeedsPlan& plan, const std::vector<View>& views) {
  json claims = json::array();
  const auto number = [](const auto& value) { return value ? json(*value) : json(); };
  for (const SeedsNeeded& one : plan.claims) {
    const auto& claim = std::get<ClaimSpec>(views[one.claim].spec);
    json& printed = claims.emplace_back(json{{"name", claim.name},
                                             {"text", views[one.claim].title.text},
                                             {"kind", claim.kind->name},
                                             {"score", one.score},
                                             {"place", json::object()},
                                             {"paired", one.is_paired},
                                             {"difference", number(one.difference)},
                                             {"deviation", number(one.deviation)},
                                             {"deviation_seeds", one.seeds},
                                             {"least_seeds", number(one.least)},
                                             {"most_seeds", number(one.most)}});
    for (const auto& [axis, label] : one.place) printed["place"][axis] = label;
    if (one.at_looks) printed["looks"] = {json_of(one.at_looks->first), json_of(one.at_looks->second)};
  }
  return {{"claims", claims},
          {"further_seed",
           {{"runs", plan.further.runs.size()},
            {"runs_without", plan.further.estimate.unknown},
            {"cpu_seconds", plan.further.estimate.cpu_seconds},
            {"gpu_seconds", plan.further.estimate.gpu_seconds}}}};
}

}  // namespace tearless::harness
