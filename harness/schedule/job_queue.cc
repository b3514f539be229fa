#include "harness/schedule/job_queue.h"

#include <algorithm>
#include <vector>

namespace tearless::harness {

void JobQueue::push(const std::string& id, const Needs& needs, const JobOrder& order, double not_before) {
  const bool delayed = not_before > 0;
  jobs_[id] = {.needs = needs, .order = order, .not_before = not_before, .delayed = delayed};
  if (delayed) {
    delayed_.emplace(not_before, id);
  } else {
    join_line(needs, {order, id});
  }
}

bool JobQueue::erase(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return false;
  const Waiting& waiting = job->second;
  if (waiting.delayed) {
    delayed_.erase({waiting.not_before, id});
  } else {
    leave_line(waiting.needs, {waiting.order, id});
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
    join_line(waiting.needs, {waiting.order, id});
  }
}

void JobQueue::join_line(const Needs& needs, const Place& place) {
  std::set<Place>& jobs = lines_[needs].jobs;
  const bool leads = jobs.empty() || place < *jobs.begin();
  if (leads && !jobs.empty()) heads_.erase(*jobs.begin());
  jobs.insert(place);
  if (leads) heads_.emplace(place, needs);
}

void JobQueue::leave_line(const Needs& needs, const Place& place) {
  const auto line = lines_.find(needs);
  std::set<Place>& jobs = line->second.jobs;
  heads_.erase(*jobs.begin());
  jobs.erase(place);
  if (jobs.empty()) {
    lines_.erase(line);
  } else {
    heads_.emplace(*jobs.begin(), needs);
  }
}

std::optional<JobQueue::Taken> JobQueue::take(double now, const std::function<bool(const Needs&)>& fits) {
  let_in(now);
  std::vector<Line*> skipped;
  for (const auto& [place, needs] : heads_) {
    Line& line = lines_.at(needs);
    if (!fits(needs)) {
      if (line.skipped_since && now - *line.skipped_since >= kPatience) return std::nullopt;
      skipped.push_back(&line);
      continue;
    }
    for (Line* earlier : skipped) earlier->skipped_since = earlier->skipped_since.value_or(now);
    line.skipped_since.reset();
    Taken taken{place.second, needs};
    erase(taken.id);
    return taken;
  }
  return std::nullopt;
}

}  // namespace tearless::harness
