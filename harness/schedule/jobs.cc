#include "harness/schedule/jobs.h"

#include "harness/runs/policy.h"

namespace tearless::harness {

ActiveSweep* Job::first_active() const {
  ActiveSweep* first = nullptr;
  const auto order = [](const ActiveSweep& sweep) {
    return std::pair(-sweep.record.priority, sweep.record.submission.queued);
  };
  for (ActiveSweep* sweep : sweeps) {
    if (sweep->is_active() && (!first || order(*sweep) < order(*first))) first = sweep;
  }
  return first;
}

Needs Job::needs() const {
  Needs needs = run.needs;
  for (const ActiveSweep* sweep : sweeps) {
    if (!sweep->record.policy.same_device) continue;
    needs.kind = sweep->kind;
    needs.first_of = sweep->kind.empty() ? sweep->record.id : "";
    if (!needs.kind.empty()) break;
  }
  return needs;
}

const Job* Jobs::find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

void Jobs::attach(ActiveSweep& sweep, const RunRecord& record) {
  const auto [entry, is_new] = jobs_.try_emplace(record.id);
  Job& job = entry->second;
  const bool alone =
      is_new ? policy_of(record.failure).alone && record.state == RunState::kQueued : job.run.needs.alone;
  if (is_new) job = {.run = record, .place = record.place};
  // A new submission may change what is not part of the run's id.
  job.run.updates = record.updates;
  job.run.local = record.local;
  job.run.data = record.data;
  job.run.needs = record.needs;
  job.run.needs.alone = alone;
  job.run.needs.executor = sweep.record.policy.executor;
  const auto& environment = sweep.record.policy.environment;
  const bool by_workers = environment && !job.run.needs.executor.empty();
  job.run.needs.secrets = by_workers ? environment->secrets : std::set<std::string>();
  const int64_t declared = sweep.record.policy.memory_bytes;
  job.run.needs.declared = declared > 0;
  if (declared > 0) job.run.needs.memory_bytes = declared;
  if (!sweep.jobs.insert(record.id).second) return;  // it is twice in the grid, or was there
  job.sweeps.push_back(&sweep);
}

void Jobs::detach(ActiveSweep& sweep, const std::string& id) {
  Job& job = jobs_.at(id);
  std::erase(job.sweeps, &sweep);
  sweep.jobs.erase(id);
  job.sweeps.empty() ? drop(id) : enqueue(id);
}

void Jobs::drop(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  for (ActiveSweep* sweep : job->second.sweeps) sweep->jobs.erase(id);
  wait_for(id, "");
  queue_.erase(id);
  jobs_.erase(job);
}

void Jobs::wait_for(const std::string& id, const std::string& origin) {
  std::string& before = jobs_.at(id).origin;
  const auto [begin, end] = derived_.equal_range(before);
  for (auto at = begin; at != end;) at = at->second == id ? derived_.erase(at) : std::next(at);
  before = origin;
  if (!origin.empty()) derived_.emplace(origin, id);
}

std::vector<std::string> Jobs::waiting_for(const std::string& origin) const {
  std::vector<std::string> jobs;
  const auto [begin, end] = derived_.equal_range(origin);
  for (auto at = begin; at != end; ++at) jobs.push_back(at->second);
  return jobs;
}

void Jobs::enqueue(const std::string& id) {
  queue_.erase(id);
  const Job& job = jobs_.at(id);
  const ActiveSweep* sweep = job.first_active();
  if (!sweep || is_running_(id) || !job.origin.empty()) return;
  queue_.push(id, job.needs(),
              {.priority = sweep->record.priority,
               .submission = sweep->record.submission.queued,
               .rank = job.run.rank,
               .work = job.run.updates,
               .place = job.place},
              job.not_before);
}

void Jobs::enqueue_all(const ActiveSweep& sweep) {
  for (const std::string& id : sweep.jobs) enqueue(id);
}

}  // namespace tearless::harness
