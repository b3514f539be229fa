#include "harness/runs/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace tearless::harness {

void Progress::take(const std::vector<MetricLine>& lines, double now) {
  if (lines.empty()) {
    if (first_step_ < 0 && !waiting_since_) waiting_since_ = now;
    return;
  }
  for (const MetricLine& line : lines) {
    step = line.step;  // not the maximum: a resumed attempt rolls back to its checkpoint
    if (line.name == "train.loss") loss = line.value;
    if (dev_name.empty() && line.name.starts_with("dev.")) dev_name = line.name;
    if (line.name == dev_name) dev_score = line.value;
  }
  if (first_step_ < 0 || step < first_step_) {
    first_step_ = step;
    first_time_ = now;
    // Until the second report: a speed that includes the preparation. A file's first line is of a run from its
    // beginning.
    const bool from_beginning = lines.front().position == 0 && waiting_since_ && now > *waiting_since_;
    if (from_beginning) updates_per_second = static_cast<double>(step) / (now - *waiting_since_);
    waiting_since_.reset();
  } else if (now > first_time_ && step > first_step_) {
    updates_per_second = static_cast<double>(step - first_step_) / (now - first_time_);
  }
}

std::optional<double> Progress::seconds_left() const {
  if (updates_per_second <= 0 || updates <= 0) return std::nullopt;
  return static_cast<double>(std::max<int64_t>(0, updates - step)) / updates_per_second;
}

std::string speed_text(const std::vector<Progress>& runs) {
  double tokens = 0, updates = 0;
  bool all_report_tokens = true;
  for (const Progress& run : runs) {
    all_report_tokens &= run.tokens_per_second.has_value();
    tokens += run.tokens_per_second.value_or(0);
    updates += run.updates_per_second;
  }
  const bool of_tokens = all_report_tokens && tokens > 0;
  const double speed = of_tokens ? tokens : updates;
  if (speed <= 0) return "";
  const std::string number = of_tokens || speed >= 100 ? fmt::format("{:.0f}", speed) : fmt::format("{:.3g}", speed);
  return fmt::format("{} {}/s", number, of_tokens ? "tokens" : "updates");
}

std::string duration_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  const auto whole = static_cast<int64_t>(*seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace tearless::harness
