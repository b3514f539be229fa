#include "harness/plan/score_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "base/pattern.h"
#include "base/words.h"
#include "harness/runs/measured.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxNames = 12;  // in one sentence

// "" for the trained run, else the derivation by whose name a score begins.
std::string derivation_of_score(const Grid& grid, const std::string& score) {
  for (const Derivation& derivation : grid.derivations) {
    if (score.starts_with(derivation.name + ".")) return derivation.name;
  }
  return "";
}

// Of the runs that are done, by the derivation that made them.
std::map<std::string, std::set<std::string>> scores_by_derivation(const std::vector<Row>& rows) {
  std::map<std::string, std::set<std::string>> scores;
  for (const Row& row : rows) {
    if (row.result.state != RunState::kDone) continue;
    for (const auto& [name, value] : row.result.scores) scores[row.derivation].insert(name);
    for (const auto& [name, instead] : row.result.no_numbers) scores[row.derivation].insert(name);
  }
  return scores;
}

// Of trained runs, and of those that the grid derives from them.
std::vector<std::string> measured_names_of(const Grid& grid) {
  std::vector<std::string> names = measured_names();
  for (const Derivation& derivation : grid.derivations) {
    for (const std::string& name : measured_names()) names.push_back(derivation.name + "." + name);
  }
  return names;
}

std::string sentence_about(const TableSpec::NamedScore& named, const std::vector<std::string>& known) {
  std::string nearest = did_you_mean(named.name, known);
  if (nearest.empty()) nearest = did_you_mean(named.name, measured_names());
  if (nearest.empty()) {  // "dev.bleu" is far from "dev.bleu_13a"
    const auto longer =
        std::ranges::find_if(known, [&](const auto& name) { return name.starts_with(named.name + "_"); });
    if (longer != known.end()) nearest = fmt::format(" (did you mean \"{}\"?)", *longer);
  }
  std::vector<std::string> shown = known;
  std::ranges::sort(shown);
  return fmt::format("{}: {}: no run of this grid has a score {}{}; they have: {}", named.location, named.key,
                     named.name, nearest, some_of(shown, kMaxNames));
}

}  // namespace

std::optional<std::vector<std::string>> scores_of(const std::vector<PlannedRun>& plan) {
  std::set<std::string> all;
  const std::vector<std::string>* added = nullptr;
  for (const PlannedRun& planned : plan) {
    if (!planned.answer.error.empty()) continue;
    const auto* scores = planned.answer.scores.get();
    if (!scores) return std::nullopt;
    if (scores != added) all.insert(scores->begin(), scores->end());
    added = scores;
  }
  if (!added) return std::nullopt;
  return std::vector(all.begin(), all.end());
}

std::vector<std::string> errors_of_scores(const Grid& grid, const std::optional<std::vector<std::string>>& known,
                                          const std::vector<Row>& rows) {
  std::vector<std::string> errors;
  const auto seen = known ? std::map<std::string, std::set<std::string>>() : scores_by_derivation(rows);
  std::vector<TableSpec::NamedScore> all = grid.named;
  for (const View& view : grid.views) {
    std::visit([&](const auto& spec) { all.insert(all.end(), spec.named.begin(), spec.named.end()); }, view.spec);
  }
  for (const TableSpec::NamedScore& named : all) {
    if (named.key == "select.by" && is_measured(named.name)) {
      errors.push_back(
          fmt::format("{}: {}: {} says as much of the machine as of the run, and chooses none; name a score",
                      named.location, named.key, named.name));
      continue;
    }
    std::vector<std::string> names = known.value_or(std::vector<std::string>());
    if (is_measured(named.name)) {  // of each run, whatever its program
      names = measured_names_of(grid);
    } else if (!known) {
      const auto of_derivation = seen.find(derivation_of_score(grid, named.name));
      if (of_derivation == seen.end()) continue;
      names.assign(of_derivation->second.begin(), of_derivation->second.end());
    }
    const auto meets = [&](const std::string& name) { return patterns_meet(named.name, name); };
    if (std::ranges::none_of(names, meets)) errors.push_back(sentence_about(named, names));
  }
  return errors;
}

}  // namespace tearless::harness
