#include "harness/results/cost.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/time.h"
#include "base/words.h"

namespace tearless::harness {

void TrainingCost::add(const Row& row) {
  for (const AttemptRecord& attempt : row.result.attempts) {
    ++attempts;
    const auto began = seconds_of_utc(attempt.started_at), ended = seconds_of_utc(attempt.ended_at);
    if (!began || !ended) {
      ++of_unknown_length;
      continue;
    }
    const double hours = static_cast<double>(*ended - *began) / 3600;
    if (attempt.device == "cpu") {
      core_hours += hours * row.run.needs.threads;
    } else {
      gpu_hours += hours;
    }
    from = from.empty() ? attempt.started_at : std::min(from, attempt.started_at);
    to = std::max(to, attempt.ended_at);
  }
}

std::string hours_text(double core_hours, double gpu_hours) {
  std::vector<std::string> hours;
  if (core_hours > 0 || gpu_hours == 0) hours.push_back(fmt::format("{:.2f} core-hours", core_hours));
  if (gpu_hours > 0) hours.push_back(fmt::format("{:.2f} GPU-hours", gpu_hours));
  return fmt::format("{}", fmt::join(hours, " and "));
}

void CostOfGrids::add(const std::vector<Row>& rows, size_t seeds) {
  for (const Group& group : group(rows, [](const Row& row) {
         RowKey key;
         for (const auto& [axis, label] : row.run.coordinates) key.insert(key.end(), {axis, label});
         return key;
       })) {
    // A cell of another grid is the same one if it has a run of this.
    const auto known = std::ranges::find_if(group.rows, [&](const Row* row) { return runs_.contains(row->run.id); });
    const size_t index = known == group.rows.end() ? cells_.size() : runs_.at((*known)->run.id);
    if (index == cells_.size()) cells_.emplace_back();
    Cell& cell = cells_[index];
    cell.all_seeds = std::max(cell.all_seeds, seeds);
    for (const Row* row : group.rows) {
      if (!runs_.emplace(row->run.id, index).second) continue;
      TrainingCost own;
      own.add(*row);
      took_.add(*row);
      ++states_[row->result.state];
      ++cell.runs;
      cell.core_hours += own.core_hours;
      cell.gpu_hours += own.gpu_hours;
      cell.seeds.insert(row->run.seed);
      if (own.attempts > own.of_unknown_length) cell.begun.insert(row->run.seed);
    }
  }
}

CostOfGrids::Whole CostOfGrids::whole() const {
  Whole whole;
  for (const Cell& cell : cells_) {
    const auto all = static_cast<double>(std::max(cell.all_seeds, cell.seeds.size()));
    const int64_t runs = std::llround(static_cast<double>(cell.runs) * all / static_cast<double>(cell.seeds.size()));
    whole.runs += runs;
    if (cell.begun.empty()) {
      whole.not_begun += runs;
      continue;
    }
    whole.core_hours += cell.core_hours * all / static_cast<double>(cell.begun.size());
    whole.gpu_hours += cell.gpu_hours * all / static_cast<double>(cell.begun.size());
  }
  return whole;
}

std::string CostOfGrids::Whole::text() const {
  return fmt::format(
      "about {}{}", hours_text(core_hours, gpu_hours),
      not_begun == 0 ? "" : fmt::format(" without {}, of which no seed was trained", counted(not_begun, "run")));
}

std::string CostOfGrids::text() const {
  std::string text = fmt::format("{} ({}) took {} and {}", counted(runs(), "run"), text_of(states_),
                                 counted(took_.attempts, "attempt"), hours_text(took_.core_hours, took_.gpu_hours));
  if (took_.of_unknown_length > 0)
    text += fmt::format(", without {} of unknown length", counted(took_.of_unknown_length, "attempt"));
  if (const Whole all = whole(); all.runs > runs()) {
    text += fmt::format("; with all seeds they are {} and {}", counted(all.runs, "run"), all.text());
  }
  return text;
}

}  // namespace tearless::harness
