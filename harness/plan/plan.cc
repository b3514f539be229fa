#include "harness/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tearless::harness {
namespace {

// The setting of a decoding that a refusal is about; null if it is about none of its own.
const Setting* refused_in(const Grid& grid, const std::string& decoding, const std::string& key) {
  if (decoding.empty()) return nullptr;
  const Decoding& own = grid.decoding(decoding);
  if (const auto found = own.set.find(key); found != own.set.end()) return &found->second;
  return own.outputs.empty() ? nullptr : refused_in(grid, own.outputs, key);
}

std::string location_of_refusal(const Grid& grid, const PlannedRun& run) {
  const auto& [error, key, refused] = run.answer;
  const Setting* setting = refused_in(grid, run.decoding, key);
  if (!setting) setting = refused_setting(grid, run.point, key, error);
  if (setting) return setting->location;
  return error.find("derived.") != std::string::npos && !run.decoding.empty() ? grid.decoding(run.decoding).location
                                                                              : grid.file.string();
}

}  // namespace

std::vector<PlannedRun> plan_runs(const Grid& grid, const Only& only, const Program& program, bool smoke) {
  const std::vector<GridPoint> points = runs_of(grid, only);
  const size_t count = points.size();
  const auto decoding_at = [&](size_t i) { return i < count ? nullptr : &grid.decodings[i / count - 1]; };
  std::vector<CheckAnswer> answers = program.check(count * (1 + grid.decodings.size()), [&](size_t i) {
    RunSpec spec = materialise(grid, points[i % count], decoding_at(i));
    spec.smoke = smoke;
    return spec;
  });
  std::vector<PlannedRun> plan;
  for (size_t i = 0; i < answers.size(); ++i) {
    const GridPoint& point = points[i % count];
    const Decoding* decoding = decoding_at(i);
    Run& run = answers[i].run;
    run.seed = point.seed;
    for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
      run.coordinates.emplace_back(grid.axes[axis].name, grid.axes[axis].points[point.index[axis]].label);
    }
    if (decoding) run.coordinates.emplace_back(kDecodingLabel, decoding->name);
    plan.push_back({point, std::move(answers[i]), decoding ? decoding->name : ""});
  }
  return plan;
}

std::vector<std::string> errors_of(const Grid& grid, const std::vector<PlannedRun>& plan) {
  std::vector<std::string> errors;
  for (const PlannedRun& run : plan) {
    if (run.answer.error.empty()) continue;
    std::string sentence = fmt::format("{}: {}", location_of_refusal(grid, run), run.answer.error);
    if (std::find(errors.begin(), errors.end(), sentence) == errors.end()) errors.push_back(std::move(sentence));
  }
  return errors;
}

}  // namespace tearless::harness
