#include "harness/runs/lost_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/sealed_json.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/progress.h"

namespace tearless::harness {
using nlohmann::json;

namespace {

// An attempt's start.json.
struct Start {
  double time = 0;  // seconds since 1970
  WorkDone found;
};

// Nullopt if the file is missing or damaged.
std::optional<Start> start_of(const RunDirectory& run, int64_t attempt) {
  const json start = read_sealed(run.attempt(attempt) / "start.json").value_or(json::object());
  const json time = start.value("started_at", json());
  const std::optional<int64_t> began = time.is_string() ? seconds_of_utc(time) : std::nullopt;
  const auto number = [&](const char* key) {
    const json value = start.value(key, json());
    return value.is_number_integer() ? value.get<int64_t>() : -1;
  };
  const WorkDone found{
      .checkpoint = number("checkpoint"), .step = number("step"), .reported_ns = number("reported_ns")};
  if (!began || found.checkpoint < 0 || found.step < 0 || found.reported_ns < 0) return std::nullopt;
  return Start{.time = static_cast<double>(*began), .found = found};
}

// How far the run was when the attempt had ended: what the next one found, or what there is now.
std::optional<WorkDone> work_after(const RunDirectory& run, int64_t attempt) {
  for (int64_t next = attempt + 1, newest = run.newest_attempt(); next <= newest; ++next) {
    if (!run.has_begun(next)) continue;
    const std::optional<Start> start = start_of(run, next);
    return start ? std::optional(start->found) : std::nullopt;
  }
  return work_done(folder_of(run, attempt));
}

}  // namespace

LostWork lost_work(const WorkDone& before, const WorkDone& after, double started) {
  // Unchanged metrics were written by an earlier attempt: this one ended before it trained.
  if (after.reported_ns == before.reported_ns) return {};
  LostWork lost{.updates = std::max<int64_t>(0, after.step - after.checkpoint), .seconds = 0};
  const int64_t made = after.step - before.checkpoint;
  const double seconds = static_cast<double>(after.reported_ns) * 1e-9 - started;
  if (made > 0 && seconds > 0) lost.seconds = seconds * static_cast<double>(lost.updates) / static_cast<double>(made);
  return lost;
}

std::optional<LostWork> lost_work_of(const RunDirectory& run, int64_t attempt) {
  // A copy has neither the checkpoints nor the times of the files that it was made from.
  if (std::filesystem::exists(run.omitted())) return std::nullopt;
  const std::optional<Start> start = start_of(run, attempt);
  const std::optional<WorkDone> after = work_after(run, attempt);
  if (!start || !after) return std::nullopt;
  return lost_work(start->found, *after, start->time);
}

std::string text_of(const LostWork& lost) {
  return fmt::format("{}, {}", counted(lost.updates, "update"), duration_text(lost.seconds));
}

json to_json(const LostWork& lost) { return {{"updates", lost.updates}, {"seconds", lost.seconds}}; }

}  // namespace tearless::harness
