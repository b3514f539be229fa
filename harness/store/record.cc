#include "harness/store/record.h"

#include "base/files.h"
#include "harness/runs/attempt_files.h"

namespace tearless::harness {

std::vector<MetricLine> record_new_metrics(Store& store, const std::string& id, const RunDirectory& folder) {
  const int64_t reached = store.metrics_bytes(id);
  MetricsRead read = read_metrics(folder, reached);
  if (read.to != reached) {
    store.in_transaction([&] { store.put_metrics(id, read.from, read.lines, read.to); });
  }
  return std::move(read.lines);
}

void record_start(Store& store, const Workspace& workspace, const std::string& id, int64_t attempt) {
  store.in_transaction([&] { store.put_attempt(id, read_attempt(workspace.run(id), attempt)); });
}

void record_end(Store& store, const Workspace& workspace, const std::string& id, int64_t attempt,
                const Verdict& verdict) {
  const RunDirectory run = workspace.run(id);
  store.in_transaction([&] {
    if (attempt > 0) {
      AttemptRecord record = read_attempt(run, attempt);
      record.outcome = verdict.outcome();
      record.reason = verdict.reason;
      if (verdict.state == RunState::kFailed) record.lost = lost_work_of(run, attempt);
      store.put_attempt(id, record);
    }
    const MetricsRead metrics = read_metrics(folder_of(run, attempt), attempt > 1 ? 0 : store.metrics_bytes(id));
    store.put_metrics(id, metrics.from, metrics.lines, metrics.to);
    if (has_result(verdict.state)) {
      std::optional<std::string> scores = read_if_there(run.scores());
      if (scores) scores = scores_as_json(*scores);
      store.put_result(id, {.done = read_file(run.done()), .scores = std::move(scores)});
    }
  });
}

}  // namespace tearless::harness
