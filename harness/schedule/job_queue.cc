#include "harness/schedule/job_queue.h"

#include <map>
#include <set>

namespace tearless::harness {

void JobQueue::push(const std::string& id, const Needs& needs, const JobOrder& order, double not_before) {
  orders_[id] = order;
  jobs_[{order, id}] = {.needs = needs, .not_before = not_before};
  ++kinds_[needs].jobs;
}

bool JobQueue::erase(const std::string& id) {
  const auto order = orders_.find(id);
  if (order == orders_.end()) return false;
  const auto job = jobs_.find({order->second, id});
  const auto kind = kinds_.find(job->second.needs);
  if (--kind->second.jobs == 0) kinds_.erase(kind);
  jobs_.erase(job);
  orders_.erase(order);
  return true;
}

std::map<Needs, int64_t> JobQueue::waiting() const {
  std::map<Needs, int64_t> waiting;
  for (const auto& [needs, kind] : kinds_) waiting[needs] = static_cast<int64_t>(kind.jobs);
  return waiting;
}

std::optional<std::string> JobQueue::take(double now, const RefusalOf& refusal_of) {
  std::set<const Kind*> asked;    // none of these fits
  std::set<std::string> blocked;  // executors
  std::map<Kind*, std::string> skipped;
  for (const auto& [place, waiting] : jobs_) {
    if (waiting.not_before > now || blocked.contains(waiting.needs.executor)) continue;
    Kind& kind = kinds_.at(waiting.needs);
    if (!asked.insert(&kind).second) continue;
    if (const auto refusal = refusal_of(waiting.needs)) {
      if (refusal->others_may_pass) {
        kind.skipped_since.reset();
      } else if (kind.skipped_since && now - *kind.skipped_since >= kPatience) {
        blocked.insert(waiting.needs.executor);
      } else {
        skipped.emplace(&kind, waiting.needs.executor);
      }
      if (asked.size() == kinds_.size()) return std::nullopt;  // the others are like one of these
      continue;
    }
    for (const auto& [earlier, executor] : skipped) {
      if (executor == waiting.needs.executor) earlier->skipped_since = earlier->skipped_since.value_or(now);
    }
    kind.skipped_since.reset();
    const std::string taken = place.second;
    erase(taken);
    return taken;
  }
  return std::nullopt;
}

}  // namespace tearless::harness
