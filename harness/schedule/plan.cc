#include "harness/schedule/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tearless::harness {
namespace {

/// The questions about the runs of a grid. The runs of a cell follow each other: what they share is written once.
class Questions {
 public:
  Questions(const Grid& grid, bool smoke) : grid_(grid), smoke_(smoke) {}

  /// Sets `coordinates` too.
  std::string about(const GridPoint& point, std::map<std::string, std::string>& coordinates) {
    if (point.index != cell_) {
      RunSpec spec = materialise(grid_, point);
      coordinates_ = std::move(spec.coordinates);
      line_ = line_around({std::move(spec.settings), grid_.folder.string(), std::move(spec.folders), smoke_},
                          grid_.seed_key);
      cell_ = point.index;
    }
    coordinates = coordinates_;
    return fmt::format("{}{}{}", line_.before, point.seed, line_.after);
  }

 private:
  const Grid& grid_;
  bool smoke_;
  std::optional<std::vector<uint32_t>> cell_;  // GridPoint::index
  std::map<std::string, std::string> coordinates_;
  LineAround line_;
};

}  // namespace

std::vector<PlannedRun> plan_runs(const Grid& grid, const Only& only, const Program& program, bool smoke) {
  std::vector<PlannedRun> plan;
  for (GridPoint& point : runs_of(grid, only)) {
    plan.push_back({.point = std::move(point), .coordinates = {}, .answer = {}});
  }
  Questions questions(grid, smoke);
  program.check(
      plan.size(), [&](size_t i) { return questions.about(plan[i].point, plan[i].coordinates); },
      [&](size_t i, CheckAnswer answer) { plan[i].answer = std::move(answer); });
  return plan;
}

std::vector<std::string> errors_of(const Grid& grid, const std::vector<PlannedRun>& plan) {
  std::vector<std::string> errors;
  for (const PlannedRun& run : plan) {
    if (run.answer.error.empty()) continue;
    const Setting* setting = refused_setting(grid, run.point, run.answer.key, run.answer.error);
    std::string sentence = fmt::format("{}: {}", setting ? setting->location : grid.file.string(), run.answer.error);
    if (std::find(errors.begin(), errors.end(), sentence) == errors.end()) errors.push_back(std::move(sentence));
  }
  return errors;
}

}  // namespace tearless::harness
