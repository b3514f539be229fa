#include "harness/slurm/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// All in seconds.
constexpr double kMaxSbatchSeconds = 150;  // sbatch itself tries for 120 where the queue is full
constexpr double kMaxTestSeconds = 60;
constexpr double kMaxScancelSeconds = 60;
constexpr double kRestAfterRefusal = 300;
constexpr double kRestAfterSilence = 60;
constexpr int64_t kWriteUseEvery = 300;  // that each job has run longer
constexpr double kIdle = 60;             // without waiting runs, before pending jobs are cancelled
constexpr double kLeftOut = 3600;        // a node that ends jobs before their workers begin
constexpr double kUnseen = 300;          // a job that runs without its worker being seen
constexpr double kFreshList = 60;        // older lists may be of before the worker fell silent
constexpr int kMaxMisses = 2;            // lists without a job, after which it does not count; 30 s between two
constexpr size_t kMaxKeptSubmissions = 50;
constexpr size_t kMaxRememberedJobs = 10'000;
constexpr int64_t kMaxWorkersAtOnce = 1000;
constexpr const char* kHeldAfterLaunch = "launch failed requeued held";  // it never starts by itself

std::string key_of(const SlurmJob& job) { return job.id() + "@" + token_in(job.name); }

}  // namespace

std::string refusal_by_test(SlurmCommands& commands, const Workspace& workspace, const Executor& executor) {
  std::set<std::string> kinds = {executor.gres};
  for (const Executor::Instead& instead : executor.instead) kinds.insert(instead.gres);
  const fs::path folder = fs::absolute(jobs_folder(workspace)).lexically_normal();
  for (const std::string& gres : kinds) {
    std::vector<std::string> words = sbatch_options(
        executor, {.token = new_token(), .allocation = {.gres = gres, .memory_bytes = executor.memory_bytes}}, folder);
    words.insert(words.begin(), {"sbatch", "--test-only"});
    words.emplace_back("--wrap=true");
    const Outcome outcome = outcome_of_test(say(commands, words, kMaxTestSeconds));
    if (outcome.kind == Outcome::Kind::kRefused) return outcome.sentence;
  }
  return "";
}

bool Slurm::Element::is_over() const {
  if (has_worker) return false;
  return job ? job->state() == JobState::kEnded : misses >= kMaxMisses;
}

Slurm::Slurm(const Workspace& workspace, Executor executor, fs::path tearless, std::shared_ptr<JobList> list,
             std::unique_ptr<SlurmCommands> commands, std::function<double()> now)
    : executor_(std::move(executor)),
      root_(fs::absolute(workspace.root()).lexically_normal()),
      folder_(fs::absolute(jobs_folder(workspace)).lexically_normal()),
      tearless_(std::move(tearless)),
      list_(std::move(list)),
      commands_(std::move(commands)),
      now_(std::move(now)),
      read_answers_(list_->answers()),
      most_at_once_(std::min(executor_.workers, kMaxWorkersAtOnce)) {
  (void)sbatch_options(executor_, {.token = "00000000"}, folder_);  // refuses a path that Slurm does not take
  make_folders(folder_);
  clear_submissions(folder_, kMaxKeptSubmissions);
  for (WorkerSubmission& record : read_submissions(folder_, executor_.name)) {
    if (record.state == WorkerSubmission::State::kOver) {
      gpu_seconds_of_over_ += record.gpu_seconds();
      continue;
    }
    const auto count = static_cast<size_t>(std::clamp<int64_t>(record.count, 0, kMaxWorkersAtOnce));
    tracked_.push_back({.record = std::move(record), .elements = std::vector<Element>(count), .answered_at = now_()});
  }
  needs_list_ = !tracked_.empty();
}

void Slurm::expect(const std::map<Needs, int64_t>& waiting, const std::vector<ClusterWorker>& alive,
                   const std::set<std::string>& not_on) {
  not_on_ = not_on;
  commands_->poll();
  list_->poll();
  note_workers(alive);
  if (list_->answers() != read_answers_) read_list();
  for (const auto& [needs, runs] : waiting) {
    if (needs.alone && !needs.resource_class.empty()) larger_.insert(needs.resource_class);
  }
  const auto submitted = std::ssize(tracked_) - (batch_ ? 1 : 0);
  if (submitted > 0) list_->want();
  const Demand demand = demand_of(waiting);
  cancel_if_idle(demand);
  submit_if_needed(demand);
}

void Slurm::note_workers(const std::vector<ClusterWorker>& alive) {
  alive_.clear();
  std::map<std::string_view, Tracked*> by_token;
  for (Tracked& tracked : tracked_) {
    by_token[tracked.record.token] = &tracked;
    for (Element& element : tracked.elements) element.has_worker = false;
  }
  for (const ClusterWorker& worker : alive) {
    alive_[worker.job].insert(worker.name);
    const auto listed = jobs_.find(worker.job);
    if (listed != jobs_.end() && !listed->second.node.empty()) node_of_[worker.host] = listed->second.node;
    const auto job = worker_job(worker.job);
    if (!job) continue;
    const auto found = by_token.find(job->token);
    if (found == by_token.end() || job->task >= std::ssize(found->second->elements)) continue;
    Element& element = found->second->elements[static_cast<size_t>(job->task)];
    element.has_worker = element.had_worker = true;
  }
}

// --- what squeue says ------------------------------------------------------------------------------------------------

void Slurm::read_list() {
  read_answers_ = list_->answers();
  needs_list_ = false;
  if (jobs_.size() > kMaxRememberedJobs) jobs_.clear();
  std::map<std::string, std::vector<const SlurmJob*>> by_token;
  for (const SlurmJob& job : list_->jobs()) {
    const std::string token = token_in(job.name);
    if (!job.task || token.empty()) continue;
    jobs_[key_of(job)] = job;
    by_token[token].push_back(&job);
  }
  for (Tracked& tracked : tracked_) find_jobs(tracked, by_token[tracked.record.token]);
  for (Tracked& tracked : tracked_) {
    note_use(tracked);
    if (!is_over(tracked)) continue;
    gpu_seconds_of_over_ += tracked.record.gpu_seconds();
    tracked.record.state = WorkerSubmission::State::kOver;
    if (tracked.record.job.empty()) {  // it was never submitted
      remove_submission(folder_, tracked.record.token);
    } else {
      write_submission(folder_, tracked.record);
      over_.push_back(tracked.record.token);
    }
  }
  for (; over_.size() > kMaxKeptSubmissions; over_.pop_front()) remove_submission(folder_, over_.front());
  std::erase_if(tracked_,
                [](const Tracked& tracked) { return tracked.record.state == WorkerSubmission::State::kOver; });
}

void Slurm::find_jobs(Tracked& tracked, const std::vector<const SlurmJob*>& jobs) {
  const bool is_being_asked = batch_ && batch_->token == tracked.record.token;
  if (is_being_asked || list_->asked_at() <= tracked.answered_at) return;
  const double now = now_();
  std::vector<bool> seen(tracked.elements.size());
  std::string array;
  std::vector<std::string> held;
  for (const SlurmJob* const job : jobs) {
    if (*job->task >= std::ssize(tracked.elements)) continue;
    const auto task = static_cast<size_t>(*job->task);
    Element& element = tracked.elements[task];
    element.job = *job;
    seen[task] = true;
    array = job->array;
    const JobState state = job->state();
    if (state == JobState::kRunning && element.running_since == 0) element.running_since = now;
    if (state == JobState::kPending) element.running_since = 0;
    if (state == JobState::kPending && job->reason == kHeldAfterLaunch) held.push_back(job->id());
  }
  for (size_t task = 0; task < seen.size(); ++task) {
    Element& element = tracked.elements[task];
    const bool has_ended = element.job && element.job->state() == JobState::kEnded;  // and may be forgotten
    element.misses = seen[task] ? 0 : element.misses + 1;
    if (!seen[task] && !has_ended) element.job.reset();
  }
  if (tracked.record.state == WorkerSubmission::State::kAsked) {
    if (!array.empty()) {
      tracked.record.state = WorkerSubmission::State::kKnown;
      tracked.record.job = array;
      write_submission(folder_, tracked.record);
      problem_.clear();
    } else {
      ++tracked.misses;
    }
  }
  note_lost(tracked);
  if (!held.empty()) cancel(tracked, held);
}

bool Slurm::is_over(const Tracked& tracked) const {
  if (batch_ && batch_->token == tracked.record.token) return false;
  if (tracked.record.state == WorkerSubmission::State::kAsked) return tracked.misses >= kMaxMisses;
  return std::ranges::all_of(tracked.elements, &Element::is_over);
}

// A job that was queued again counts from then on: its longest time is kept.
void Slurm::note_use(Tracked& tracked) {
  for (size_t task = 0; task < tracked.elements.size(); ++task) {
    const std::optional<SlurmJob>& job = tracked.elements[task].job;
    if (!job || job->seconds == 0) continue;
    int64_t& seconds = tracked.record.seconds[static_cast<int64_t>(task)];
    seconds = std::max(seconds, job->seconds);
  }
  const int64_t now = tracked.record.gpu_seconds();
  if (now - tracked.gpu_seconds_written < kWriteUseEvery * tracked.record.gpus || now == 0) return;
  tracked.gpu_seconds_written = now;
  write_submission(folder_, tracked.record);
}

int64_t Slurm::gpu_seconds() const {
  int64_t sum = gpu_seconds_of_over_;
  for (const Tracked& tracked : tracked_) sum += tracked.record.gpu_seconds();
  return sum;
}

bool Slurm::is_used_up() const {
  return executor_.max_gpu_hours && static_cast<double>(gpu_seconds()) >= 3600 * *executor_.max_gpu_hours;
}

std::vector<std::string> Slurm::notes() const {
  if (!executor_.max_gpu_hours) return {};
  return {fmt::format("{}: {:.1f} of {:g} GPU hours are used{}", executor_.name,
                      static_cast<double>(gpu_seconds()) / 3600, *executor_.max_gpu_hours,
                      is_used_up() ? ", and no further workers are submitted (--max-gpu-hours)" : "")};
}

// Jobs that this service has submitted, and that ended before a worker was seen.
void Slurm::note_lost(Tracked& tracked) {
  if (!tracked.is_own || tracked.record.state != WorkerSubmission::State::kKnown) return;
  for (size_t task = 0; task < tracked.elements.size(); ++task) {
    Element& element = tracked.elements[task];
    if (!element.is_over() || element.had_worker || element.is_cancelled || element.is_noted) continue;
    element.is_noted = true;
    if (!element.job) {
      rest(kRestAfterRefusal,
           fmt::format("job {}_{} has left squeue's list, and its worker was never seen", tracked.record.job, task));
      continue;
    }
    const SlurmJob& job = *element.job;
    if (job.word == "PREEMPTED") continue;
    const std::string what = fmt::format("job {} {} ({}, {}) and its worker was never seen", job.id(),
                                         meaning_of(job.word).phrase, job.word, job.reason);
    if (job.node.empty() || job.word == "CANCELLED") {
      rest(kRestAfterRefusal, what);
    } else {
      left_out_[job.node] = now_() + kLeftOut;
      problem_ = fmt::format("{}: {} is left out for an hour; see {}", what, job.node,
                             (folder_ / output_name(tracked.record.token, static_cast<int64_t>(task))).string());
    }
  }
}

// --- how many --------------------------------------------------------------------------------------------------------

Slurm::Demand Slurm::demand_of(const std::map<Needs, int64_t>& waiting) const {
  return workers_for(executor_, waiting, [this](const Needs& needs) { return allocation_of(needs); });
}

Allocation Slurm::allocation_of(const Needs& needs) const {
  return allocation_for(executor_, needs, has_larger_ && (needs.alone || larger_.contains(needs.resource_class)));
}

int64_t Slurm::memory_above(const Needs& needs) const {
  const Allocation allocation = allocation_of(needs);
  if (needs.device == "cuda") return allocation.gpu_memory_above;
  return allocation.memory_bytes > executor_.memory_bytes ? *executor_.memory_bytes : 0;
}

// Workers that were asked for and may come, or are there. With `allocation`: those that may come, with this one.
int64_t Slurm::occupied(const Allocation* allocation) const {
  int64_t sum = 0;
  for (const Tracked& tracked : tracked_) {
    if (allocation && tracked.record.allocation != *allocation) continue;
    sum += std::ranges::count_if(tracked.elements, [&](const Element& element) {
      return !element.is_over() && !(allocation && element.has_worker);
    });
  }
  return sum;
}

void Slurm::submit_if_needed(const Demand& demand) {
  if (batch_ || needs_list_ || is_used_up() || now_() < rests_until_) return;
  const bool is_unknown = std::ranges::any_of(
      tracked_, [](const Tracked& tracked) { return tracked.record.state == WorkerSubmission::State::kAsked; });
  if (is_unknown) return;
  const int64_t room = executor_.workers - occupied(nullptr);
  for (const auto& [allocation, workers] : demand) {
    const int64_t missing = std::min({workers - occupied(&allocation), room, most_at_once_});
    if (missing <= 0) continue;
    return begin(allocation, missing);
  }
}

void Slurm::rest(double seconds, std::string why) {
  rests_until_ = std::max(rests_until_, now_() + seconds);
  problem_ = std::move(why);
}

// A host of which no job in the list has told Slurm's name is not left out: sbatch would refuse another one.
std::vector<std::string> Slurm::nodes_left_out() {
  const double now = now_();
  std::erase_if(left_out_, [now](const auto& node) { return node.second <= now; });
  std::set<std::string> nodes;
  for (const auto& [node, until] : left_out_) nodes.insert(node);
  for (const std::string& host : not_on_) {
    const auto node = node_of_.find(host);
    if (excludes_ && node != node_of_.end()) nodes.insert(node->second);
  }
  return {nodes.begin(), nodes.end()};
}

// --- one submission --------------------------------------------------------------------------------------------------

void Slurm::begin(const Allocation& allocation, int64_t count) {
  Batch batch{.token = new_token(), .count = count, .allocation = allocation, .not_on = nodes_left_out()};
  const WorkerSubmission record{.token = batch.token,
                                .executor = executor_.name,
                                .allocation = allocation,
                                .count = count,
                                .at = utc_now(),
                                .gpus = gpus_of(executor_, allocation)};
  write_submission(folder_, record);
  write_atomically(script_of(batch.token), batch_script(executor_, batch, folder_, root_, tearless_));
  tracked_.push_back({.record = record, .elements = std::vector<Element>(static_cast<size_t>(count)), .is_own = true});
  batch_ = std::move(batch);
  if (tested_.contains(allocation)) return call_sbatch();
  std::vector<std::string> words = sbatch_options(executor_, *batch_, folder_);
  words.insert(words.begin(), {"sbatch", "--test-only"});
  words.push_back(script_of(batch_->token).string());
  commands_->ask(std::move(words), kMaxTestSeconds, [this](const Said& said) { on_test(said); });
}

void Slurm::on_test(const Said& said) {
  const Outcome outcome = outcome_of_test(said);
  const bool is_refused = outcome.kind == Outcome::Kind::kRefused || outcome.kind == Outcome::Kind::kLimit;
  if (is_refused || is_silence(said)) return take_back(outcome);
  tested_.insert(batch_->allocation);
  call_sbatch();
}

void Slurm::call_sbatch() {
  std::vector<std::string> words = sbatch_options(executor_, *batch_, folder_);
  words.insert(words.begin(), {"sbatch", "--parsable"});
  words.push_back(script_of(batch_->token).string());
  commands_->ask(std::move(words), kMaxSbatchSeconds, [this](const Said& said) { on_submitted(said); });
}

void Slurm::on_submitted(const Said& said) {
  const Outcome outcome = outcome_of(said);
  if (outcome.kind == Outcome::Kind::kRefused || outcome.kind == Outcome::Kind::kLimit) return take_back(outcome);
  batch_.reset();
  Tracked& tracked = tracked_.back();
  tracked.answered_at = now_();
  if (outcome.kind == Outcome::Kind::kUnknown) {
    problem_ = fmt::format("whether sbatch has submitted workers is not known ({}): squeue is asked", outcome.sentence);
    return;
  }
  problem_.clear();
  tracked.record.state = WorkerSubmission::State::kKnown;
  tracked.record.job = outcome.job;
  write_submission(folder_, tracked.record);
}

// Nothing was submitted.
void Slurm::take_back(const Outcome& outcome) {
  const Batch batch = *std::exchange(batch_, std::nullopt);
  tracked_.pop_back();
  tested_.erase(batch.allocation);
  const bool is_larger = batch.allocation.memory_bytes > executor_.memory_bytes;
  if (is_larger && outcome.kind == Outcome::Kind::kRefused) {
    has_larger_ = false;
    problem_ =
        fmt::format("sbatch refused half as much memory again for runs that ran out of it: {}", outcome.sentence);
  } else if (outcome.kind == Outcome::Kind::kLimit && batch.count > 1) {
    most_at_once_ = batch.count / 2;
    problem_ = fmt::format("sbatch refused {}: {}", counted(batch.count, "worker"), outcome.sentence);
  } else if (outcome.kind == Outcome::Kind::kUnknown) {
    rest(kRestAfterSilence, fmt::format("sbatch does not answer: {}", outcome.sentence));
  } else {
    rest(kRestAfterRefusal, "sbatch: " + outcome.sentence);
  }
  if (outcome.sentence.find("Invalid node name") != std::string::npos) {  // one that the cluster has no more
    left_out_.clear();
    excludes_ = false;
  }
  remove_submission(folder_, batch.token);
}

// --- cancelling ------------------------------------------------------------------------------------------------------

void Slurm::cancel_if_idle(const Demand& demand) {
  const double now = now_();
  for (const auto& [allocation, workers] : demand) last_wanted_[allocation] = now;
  for (Tracked& tracked : tracked_) {
    const double last_wanted = last_wanted_.emplace(tracked.record.allocation, now).first->second;
    const bool is_pending = std::ranges::any_of(tracked.elements, [](const Element& element) {
      return element.job && element.job->state() == JobState::kPending;
    });
    const bool is_asked_already = tracked.cancelled_at > 0 && now - tracked.cancelled_at < kIdle;
    if (is_pending && now - last_wanted >= kIdle && !is_asked_already) cancel(tracked, {});
  }
}

// Its pending jobs; with `jobs`, those of them. Its name and the state guard against ids that are used again, and
// against jobs that have begun meanwhile.
void Slurm::cancel(Tracked& tracked, std::vector<std::string> jobs) {
  std::vector<std::string> words = {"scancel", "--state=PENDING", "--name=" + job_name(tracked.record.token)};
  for (Element& element : tracked.elements) {
    const bool is_meant = element.job && element.job->state() == JobState::kPending &&
                          (jobs.empty() || std::ranges::find(jobs, element.job->id()) != jobs.end());
    element.is_cancelled = element.is_cancelled || is_meant;
  }
  words.insert(words.end(), jobs.begin(), jobs.end());
  tracked.cancelled_at = now_();
  commands_->ask(std::move(words), kMaxScancelSeconds, [](const Said&) {});  // the next list says whether it worked
}

// --- what others ask -------------------------------------------------------------------------------------------------

std::optional<Machines::Fate> Slurm::fate_of(const ClusterWorker& worker) {
  const auto named = worker_job(worker.job);
  if (!named) return std::nullopt;
  const auto alive = alive_.find(worker.job);
  const bool has_other = alive != alive_.end() && alive->second.size() > alive->second.count(worker.name);
  if (has_other) {
    return Fate{FailureClass::kStopped, fmt::format("its job {} was queued again and has another worker", named->id())};
  }
  list_->want();
  const auto found = jobs_.find(worker.job);
  if (found == jobs_.end()) return std::nullopt;
  const SlurmJob& job = found->second;
  const StateWord meaning = meaning_of(job.word);
  if (meaning.state == JobState::kEnded) {  // also if it was forgotten since
    return Fate{.failure = meaning.failure,
                .reason = fmt::format("its job {} {} ({}){}", job.id(), meaning.phrase, job.word,
                                      job.node.empty() ? "" : " on " + job.node),
                .is_time_over = job.word == "TIMEOUT"};
  }
  const bool is_listed = std::ranges::any_of(
      list_->jobs(), [&](const SlurmJob& listed) { return listed.task && key_of(listed) == worker.job; });
  const bool is_fresh = is_listed && now_() - list_->asked_at() <= kFreshList;
  if (meaning.state == JobState::kPending && is_fresh) {
    return Fate{FailureClass::kStopped, fmt::format("its job {} was queued again ({})", job.id(), job.word)};
  }
  return std::nullopt;
}

std::string Slurm::why_none() const {
  std::map<std::string, int64_t> pending;  // by reason
  int64_t starting = 0, asked = 0;
  std::string unseen;
  for (const Tracked& tracked : tracked_) {
    for (size_t task = 0; task < tracked.elements.size(); ++task) {
      const Element& element = tracked.elements[task];
      if (element.is_over() || element.has_worker) continue;
      const JobState state = element.job ? element.job->state() : JobState::kUnknown;
      if (state == JobState::kPending) ++pending[element.job->reason];
      if (state == JobState::kRunning) ++starting;
      if (state == JobState::kUnknown) ++asked;
      const bool runs_unseen = state == JobState::kRunning && element.running_since > 0 && !element.had_worker &&
                               now_() - element.running_since >= kUnseen;
      if (runs_unseen) {
        unseen = fmt::format(
            "job {} runs on {}, and its worker was not seen for 5 minutes: does {} see {}? Its output "
            "is {}",
            element.job->id(), element.job->node, element.job->node, root_.string(),
            (folder_ / output_name(tracked.record.token, static_cast<int64_t>(task))).string());
      }
    }
  }
  std::vector<std::string> phrases;
  if (is_used_up()) phrases = notes();
  if (!unseen.empty()) phrases.push_back(unseen);
  if (!problem_.empty()) phrases.push_back(problem_);
  for (const auto& [reason, count] : pending) {
    phrases.push_back(fmt::format("{} pending ({})", counted(count, "job"), reason));
  }
  if (starting > 0) phrases.push_back(fmt::format("{} starting", counted(starting, "worker")));
  if (asked > 0) phrases.push_back(fmt::format("{} asked for", counted(asked, "worker")));
  if (!tracked_.empty() && !list_->fault().empty()) phrases.push_back("squeue: " + list_->fault());
  if (!phrases.empty()) return fmt::format("{}", fmt::join(phrases, "; "));
  return tracked_.empty() ? "no worker was asked for yet" : "its workers are there";
}

}  // namespace tearless::harness
