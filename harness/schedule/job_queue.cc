#include "harness/schedule/job_queue.h"

#include <set>
#include <vector>

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

std::optional<std::string> JobQueue::take(double now, const std::function<bool(const Needs&)>& fits) {
  std::set<const Kind*> asked;  // none of these fits
  std::vector<Kind*> skipped;
  for (const auto& [place, waiting] : jobs_) {
    if (waiting.not_before > now) continue;
    Kind& kind = kinds_.at(waiting.needs);
    if (!asked.insert(&kind).second) continue;
    if (!fits(waiting.needs)) {
      if (kind.skipped_since && now - *kind.skipped_since >= kPatience) return std::nullopt;
      skipped.push_back(&kind);
      continue;
    }
    for (Kind* earlier : skipped) earlier->skipped_since = earlier->skipped_since.value_or(now);
    kind.skipped_since.reset();
    const std::string taken = place.second;
    erase(taken);
    return taken;
  }
  return std::nullopt;
}

}  // namespace tearless::harness
