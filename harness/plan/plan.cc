#include "harness/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/plan/identity.h"

namespace tearless::harness {
namespace {

// Where the setting of a derivation is that a refusal is about; null if it is about a setting of the run.
const std::string* refused_in(const Grid& grid, const std::string& derivation, const std::string& key) {
  if (derivation.empty()) return nullptr;
  const Derivation& own = grid.derivation(derivation);
  if (const auto found = own.set.find(key); found != own.set.end()) return &found->second.location;
  return own.outputs.empty() ? nullptr : refused_in(grid, own.outputs, key);
}

std::string location_of_refusal(const Grid& grid, const PlannedRun& run) {
  const auto& [error, key] = std::tie(run.answer.error, run.answer.key);
  const std::string* location = refused_in(grid, run.derivation, key);
  if (!location) location = refused_location(grid, run.combination, key, error);
  if (location) return *location;
  return error.find("derived.") != std::string::npos && !run.derivation.empty()
             ? grid.derivation(run.derivation).location
             : grid.file.string();
}

// For a key that the program does not know and settings are computed from.
std::string advice_on(const Grid& grid, const CheckAnswer& answer) {
  const auto needs_it = [&](const Computed& one) {
    return std::ranges::find(one.expression.names(), answer.key) != one.expression.names().end();
  };
  if (answer.error.find("unknown") == std::string::npos || std::ranges::none_of(grid.computed, needs_it)) return "";
  return fmt::format("; if it is none of the program: variables = \"{}\" above the first section of {}", answer.key,
                     grid.file.string());
}

// The seed in the canonical text, where that has one: an answer with another question's is of another run, as when the
// program has answered a line twice.
void require_own_seed(const Grid& grid, const Combination& asked, const Run& answered, const Program& program) {
  const std::string begin = grid.seed_key + " = ";
  for (const std::string_view line : split_lines(answered.settings)) {
    if (!line.starts_with(begin)) continue;
    const auto seed = number_of<int64_t>(line.substr(begin.size()));
    if (!seed || *seed == asked.seed) continue;
    fail(
        "`{} check` answered a question about {}{} with settings that have {}; each question gets one answer, in their "
        "order",
        program.path().string(), begin, asked.seed, printable(line));
  }
}

}  // namespace

std::vector<std::vector<PlannedRun>> plan_grids(const std::vector<PlannedGrid>& grids, const Program& program,
                                                bool smoke) {
  struct Question {
    const Grid* grid;
    const Combination* combination;
    const Derivation* derivation;  // null: the trained run
  };
  std::vector<Question> questions;
  std::vector<std::vector<Combination>> combinations;
  for (const auto& [grid, only] : grids) combinations.push_back(runs_of(*grid, only));
  for (size_t g = 0; g < grids.size(); ++g) {
    const Grid& grid = *grids[g].grid;
    const auto ask_about_all = [&](const Derivation* derivation) {
      for (const Combination& combination : combinations[g]) {
        if (derivation && !derives(grid, *derivation, combination)) continue;
        questions.push_back({&grid, &combination, derivation});
      }
    };
    ask_about_all(nullptr);
    for (const Derivation& derivation : grid.derivations) ask_about_all(&derivation);
  }
  std::vector<CheckAnswer> answers = program.check(questions.size(), [&](size_t i) {
    RunSpec spec = materialise(*questions[i].grid, *questions[i].combination, questions[i].derivation);
    spec.smoke = smoke;
    return spec;
  });
  add_identity(answers, program.probe().identity);
  std::vector<std::vector<PlannedRun>> plans(grids.size());
  size_t next = 0;
  for (size_t g = 0; g < grids.size(); ++g) {
    for (; next < questions.size() && questions[next].grid == grids[g].grid; ++next) {
      const auto& [grid, combination, derivation] = questions[next];
      Run& run = answers[next].run;
      require_own_seed(*grid, *combination, run, program);
      run.seed = combination->seed;
      for (size_t axis = 0; axis < grid->axes.size(); ++axis) {
        run.coordinates.emplace_back(grid->axes[axis].name, grid->axes[axis].points[combination->index[axis]].label);
      }
      if (derivation) run.coordinates.emplace_back(kDerivedLabel, derivation->name);
      plans[g].push_back({*combination, std::move(answers[next]), derivation ? derivation->name : ""});
    }
  }
  return plans;
}

std::vector<PlannedRun> plan_runs(const Grid& grid, const Only& only, const Program& program, bool smoke) {
  return std::move(plan_grids({{&grid, only}}, program, smoke).front());
}

std::vector<std::string> errors_of(const Grid& grid, const std::vector<PlannedRun>& plan) {
  std::vector<std::string> errors;
  for (const PlannedRun& run : plan) {
    if (run.answer.error.empty()) continue;
    std::string sentence =
        fmt::format("{}: {}{}", location_of_refusal(grid, run), run.answer.error, advice_on(grid, run.answer));
    if (std::find(errors.begin(), errors.end(), sentence) == errors.end()) errors.push_back(std::move(sentence));
  }
  return errors;
}

}  // namespace tearless::harness
