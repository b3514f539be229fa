#include "harness/schedule/job_queue.h"

#include <algorithm>
#include <vector>

namespace tearless::harness {

void JobQueue::push(const std::string& id, const JobNeeds& needs, const JobOrder& order, double not_before) {
  jobs_[id] = {.needs = needs, .order = order, .not_before = not_before, .delayed = true};
  delayed_.emplace(not_before, id);
}

bool JobQueue::erase(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return false;
  const Waiting& waiting = job->second;
  if (waiting.delayed) {
    delayed_.erase({waiting.not_before, id});
  } else {
    const auto line = lines_.find(waiting.needs);
    line->second.jobs.erase({waiting.order, id});
    if (line->second.jobs.empty()) lines_.erase(line);
  }
  jobs_.erase(job);
  return true;
}

// Moves the jobs whose time has come into their lines.
void JobQueue::let_in(double now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const std::string id = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    Waiting& waiting = jobs_.at(id);
    waiting.delayed = false;
    lines_[waiting.needs].jobs.emplace(waiting.order, id);
  }
}

std::optional<JobQueue::Taken> JobQueue::take(double now, const std::function<bool(const JobNeeds&)>& fits) {
  let_in(now);
  std::vector<std::pair<const JobNeeds, Line>*> lines;
  for (auto& line : lines_) lines.push_back(&line);
  std::sort(lines.begin(), lines.end(),
            [](const auto* a, const auto* b) { return *a->second.jobs.begin() < *b->second.jobs.begin(); });
  for (size_t i = 0; i < lines.size(); ++i) {
    auto& [needs, line] = *lines[i];
    if (!fits(needs)) {
      if (line.skipped_since && now - *line.skipped_since >= kPatience) return std::nullopt;
      continue;
    }
    for (size_t earlier = 0; earlier < i; ++earlier) {
      std::optional<double>& since = lines[earlier]->second.skipped_since;
      since = since.value_or(now);
    }
    line.skipped_since.reset();
    Taken taken{line.jobs.begin()->second, needs};
    erase(taken.id);
    return taken;
  }
  return std::nullopt;
}

}  // namespace tearless::harness
