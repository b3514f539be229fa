#include "harness/schedule/attempt_watch.h"

#include <filesystem>
#include <system_error>

#include "base/sealed_json.h"
#include "harness/store/record.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

int64_t size_or_zero(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

int64_t AttemptWatch::number() const {
  const int64_t newest = run_.newest_begun_attempt();
  return newest > attempts_before_ ? newest : 0;
}

void AttemptWatch::poll(Store& store, const Workspace& workspace, double now) {
  const int64_t attempt = number();
  if (attempt == 0) return;
  if (attempt != recorded_) record_start(store, workspace, progress.id, attempt);
  recorded_ = attempt;
  const RunDirectory folder = folder_of(run_, attempt);
  progress.take(record_new_metrics(store, progress.id, folder), now);
  const auto measured = read_sealed(run_.attempt(attempt) / "measured.json").value_or(nlohmann::json::object());
  const auto speed = measured.find("tokens_per_second");
  if (speed != measured.end() && speed->is_number() && *speed > 0) progress.tokens_per_second = speed->get<double>();
  signs_.note(size_or_zero(folder.metrics()), size_or_zero(run_.attempt(attempt) / "log.txt"), now);
}

// While a program trains it reports again and again, so that a gap much longer than all before means that it hangs.
// What else it does (it evaluates, writes a checkpoint) may take longer than anything seen before.
bool AttemptWatch::hangs(double stall_seconds, double now) const {
  if (recorded_ == 0 || stall_seconds <= 0) return false;
  const double quiet = signs_.quiet(now);
  if (quiet > stall_seconds) return true;
  return quiet > signs_.longest_in_training() && phase_of(run_, recorded_) == "training";
}

}  // namespace tearless::harness
