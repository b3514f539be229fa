#include "harness/slurm/job_list.h"

#include <optional>
#include <utility>

namespace tearless::harness {
namespace {

constexpr double kMaxSqueueSeconds = 60;

}  // namespace

JobList::JobList(std::unique_ptr<SlurmCommands> commands, std::function<double()> now)
    : commands_(std::move(commands)), now_(std::move(now)), next_at_(now_()) {}

void JobList::poll() {
  commands_->poll();
  const double now = now_();
  if (!wanted_ || asking_ || now < next_at_) return;
  wanted_ = false;
  asking_ = true;
  next_at_ = now + kBetween;
  commands_->ask(squeue_words(), kMaxSqueueSeconds, [this, now](const Said& said) { note(said, now); });
}

void JobList::note(const Said& said, double started_at) {
  asking_ = false;
  std::optional<std::vector<SlurmJob>> jobs = jobs_in(said);
  if (!jobs) {
    fault_ = said.code == 0 ? "squeue's answer is not understood" : complaint_of(said);
    return;
  }
  jobs_ = std::move(*jobs);
  asked_at_ = started_at;
  ++answers_;
  fault_.clear();
}

}  // namespace tearless::harness
