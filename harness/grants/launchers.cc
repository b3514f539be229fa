#include "harness/grants/launchers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/grants/grant.h"
#include "harness/grants/work_folder.h"
#include "harness/runs/attempt_files.h"

namespace tearless::harness {

Launchers::Launchers(std::unique_ptr<Launcher> local, std::function<std::unique_ptr<Launcher>()> make_workers)
    : local_(std::move(local)), make_workers_(std::move(make_workers)) {
  listen_to(*local_);
}

void Launchers::listen_to(Launcher& launcher) const {
  launcher.on_end = [this](const std::string& id, const End& end) {
    owners_.erase(id);
    on_end(id, end);
  };
}

Launcher& Launchers::workers() const {
  if (!workers_) {
    workers_ = make_workers_();
    listen_to(*workers_);
  }
  return *workers_;
}

void Launchers::start(const Launch& launch) {
  Launcher& launcher = launcher_for(launch.needs);
  if (&launcher == local_.get()) {
    const RunDirectory run(launch.folder);
    const int64_t from = newest_state_before(run, run.newest_attempt() + 1);
    if (from > 0) copy_state(work_of(run, from), run);
  }
  launcher.start(launch);
  owners_[launch.id] = &launcher;
}

bool Launchers::adopt(const std::string& id, const std::filesystem::path& folder, const Needs& needs) {
  const bool granted = is_granted(RunDirectory(folder));
  Launcher& launcher = granted ? workers() : *local_;
  if (!launcher.adopt(id, folder, needs)) return false;
  owners_[id] = &launcher;
  return true;
}

void Launchers::stop(const std::string& id, Stop how, int grace_seconds) {
  if (const auto owner = owners_.find(id); owner != owners_.end()) owner->second->stop(id, how, grace_seconds);
}

void Launchers::expect(const std::map<Needs, int64_t>& waiting) {
  if (workers_) workers_->expect(waiting);
}

std::vector<std::string> Launchers::notes() const {
  std::vector<std::string> notes = local_->notes();
  if (workers_) std::ranges::copy(workers_->notes(), std::back_inserter(notes));
  return notes;
}

void Launchers::poll() {
  local_->poll();
  if (workers_) workers_->poll();
}

}  // namespace tearless::harness
