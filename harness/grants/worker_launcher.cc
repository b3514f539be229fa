#include "harness/grants/worker_launcher.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "base/files.h"
#include "base/sealed_json.h"
#include "base/sys.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/grants/grant.h"
#include "harness/grants/places.h"
#include "harness/grants/publication.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/progress.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

// Seconds.
constexpr double kLookForClaims = 10;    // between two looks at the claims of open grants
constexpr double kBetweenBoards = 0.05;  // of several grants at once
constexpr double kWriteBoardEvery = 5;   // though nothing has changed
constexpr double kLookOnNetwork = 5;     // between two looks at the files of an attempt
constexpr double kTakenWithin = 10;      // a worker that has room claims a grant sooner

// Grants that nobody has claimed: of one kind of run so many as workers take between two ticks, and at most:
constexpr int64_t kMaxOfAKind = 64, kMaxOpen = 256;

constexpr size_t kMaxNamed = 3;  // runs in a sentence

// A claim is a hard link.
bool has_links(const fs::path& folder) {
  const fs::path one = folder / "link.test", other = folder / "link.test2";
  remove_file(one);
  remove_file(other);
  replace_unsynced(one, "");
  const bool works = sys::link(one.c_str(), other.c_str()) == 0;
  remove_file(one);
  remove_file(other);
  return works;
}

// Step of the newest checkpoint that an attempt begins with; `from`: as in Grant.
int64_t checkpoint_at_start(const RunDirectory& run, int64_t from) {
  return (from > 0 ? work_of(run, from) : run).newest_checkpoint();
}

// A node may see the workspace under another path.
fs::path relative_if_inside(const fs::path& program, const Workspace& workspace) {
  const fs::path relative =
      program.lexically_normal().lexically_relative(fs::absolute(workspace.root()).lexically_normal());
  return relative.empty() || *relative.begin() == ".." ? program : relative;
}

}  // namespace

WorkerLauncher::WorkerLauncher(const Workspace& workspace, std::function<double()> now, MachinesOf machines_of)
    : workspace_(workspace),
      now_(std::move(now)),
      machines_of_(std::move(machines_of)),
      workers_(workers_of(workspace), now_) {
  if (!has_links(queue_of(workspace_))) {
    fault_ = fmt::format("{} is on a disk without hard links, on which no worker can claim a run",
                         queue_of(workspace_).string());
  }
  workers_.read();
  recall_blame();
}

// --- claims ----------------------------------------------------------------------------------------------------------

void WorkerLauncher::hear_workers() {
  for (auto& [name, news] : workers_.read()) {
    if (news.facts) newest_secrets_[news.facts->executor] = news.facts->secrets;
    for (const auto& [id, number] : news.claims) {
      const auto found = attempts_.find(id);
      if (found != attempts_.end() && found->second.number == number && is_of(found->second, name)) {
        note_claim(found->second, name);
      }
    }
    for (AttemptReport& report : news.ends) {
      const auto found = attempts_.find(report.id);
      if (found == attempts_.end() || found->second.number != report.attempt) continue;
      if (!is_of(found->second, name)) continue;
      note_claim(found->second, name);
      found->second.report = std::move(report);
      found->second.reported_at = now_();
    }
  }
}

// Not of a lost worker, whose run was deleted and has numbers from 1 again. A claim may be seen later than the line
// that tells of it.
bool WorkerLauncher::is_of(const Attempt& attempt, const std::string& worker) {
  const std::string claimant = attempt.worker.empty() ? claimant_of(attempt.run, attempt.number) : attempt.worker;
  return claimant.empty() || claimant == worker;
}

int64_t WorkerLauncher::memory_above(const Needs& needs) const {
  const Machines* machines = machines_for(needs.executor);
  return machines ? machines->memory_above(needs) : 0;
}

bool WorkerLauncher::has_taker(const Attempt& attempt) const {
  const int64_t above = memory_above(attempt.needs);
  return std::ranges::any_of(workers_.alive(), [&](const WorkerFacts* worker) {
    return fits(*worker, attempt.needs, above) && !attempt.not_on.contains(worker->host);
  });
}

// A worker that was killed between its claim and its line has said nothing.
void WorkerLauncher::look_for_claims() {
  if (now_() - looked_at_ < kLookForClaims) return;
  looked_at_ = now_();
  for (auto& [id, attempt] : attempts_) {
    if (!is_open(attempt)) continue;
    if (const std::string claimant = claimant_of(attempt.run, attempt.number); !claimant.empty()) {
      note_claim(attempt, claimant);
    }
  }
}

void WorkerLauncher::note_claim(Attempt& attempt, const std::string& worker) {
  if (!attempt.worker.empty()) return;
  attempt.worker = worker;
  attempt.claimed_at = now_();
  ++claims_[attempt.needs];
  changed_ = true;
}

// --- machines --------------------------------------------------------------------------------------------------------

Machines* WorkerLauncher::machines_for(const std::string& executor) const {
  if (executor == kWorkers || !machines_of_) return nullptr;
  const auto [machines, is_new] = machines_.try_emplace(executor);
  if (is_new) machines->second = machines_of_(executor);
  return machines->second.get();
}

std::set<std::string> WorkerLauncher::lacked_secrets(const Needs& needs) const {
  std::set<std::string> lacked = needs.secrets;
  const auto newest = newest_secrets_.find(needs.executor);
  if (newest == newest_secrets_.end()) return {};
  std::erase_if(lacked, [&](const std::string& name) { return newest->second.contains(name); });
  return lacked;
}

// A grant that nobody there can take waits like a run that was not granted.
void WorkerLauncher::expect(const std::map<Needs, int64_t>& waiting) {
  std::map<std::string, std::map<Needs, int64_t>> by_executor;
  std::map<std::string, std::set<std::string>> not_on;
  for (const auto& [needs, count] : waiting) {
    if (lacked_secrets(needs).empty()) by_executor[needs.executor][needs] = count;
  }
  for (const auto& [id, attempt] : attempts_) {  // the workers that are there may be busy for hours
    const bool is_late = now_() - attempt.granted_at >= kTakenWithin;
    if (!is_open(attempt) || (has_taker(attempt) && !is_late)) continue;
    ++by_executor[attempt.needs.executor][attempt.needs];
    not_on[attempt.needs.executor].insert(attempt.not_on.begin(), attempt.not_on.end());
  }
  for (const auto& [executor, of_it] : by_executor) {
    if (!executor.empty()) machines_for(executor);
  }
  for (const auto& [executor, machines] : machines_) {
    std::vector<ClusterWorker> alive;
    for (const WorkerFacts* worker : workers_.alive()) {
      if (worker->executor == executor)
        alive.push_back({.name = worker->name, .host = worker->host, .job = worker->job});
    }
    for (const auto& [host, bad] : left_out_[executor]) not_on[executor].insert(host);
    if (machines) machines->expect(by_executor[executor], alive, not_on[executor]);
  }
}

std::optional<Machines::Fate> WorkerLauncher::fate_of(const Attempt& attempt) const {
  const WorkerFacts* worker = workers_.facts_of(attempt.worker);
  if (!worker || !workers_.is_silent(attempt.worker)) return std::nullopt;
  Machines* machines = machines_for(worker->executor);
  if (!machines || worker->job.empty()) return std::nullopt;
  std::optional<Machines::Fate> fate =
      machines->fate_of({.name = worker->name, .host = worker->host, .job = worker->job});
  const auto beside =
      std::ranges::count_if(attempts_, [&](const auto& entry) { return entry.second.worker == attempt.worker; });
  if (fate && fate->failure == FailureClass::kOutOfMemory && beside > 1) fate->failure = FailureClass::kStopped;
  return fate;
}

// --- grants ----------------------------------------------------------------------------------------------------------

int64_t WorkerLauncher::takers_of(const Needs& needs) const {
  const int64_t above = memory_above(needs);
  const auto left_out = left_out_.find(needs.executor);
  return std::ranges::count_if(workers_.alive(), [&](const WorkerFacts* worker) {
    const bool is_left_out = left_out != left_out_.end() && left_out->second.contains(worker->host);
    return fits(*worker, needs, above) && !is_left_out;
  });
}

std::string WorkerLauncher::why_nobody(const Needs& needs) const {
  const Machines* machines = machines_for(needs.executor);
  const std::set<std::string> lacked = lacked_secrets(needs);
  const bool is_any_there = std::ranges::any_of(
      workers_.alive(), [&](const WorkerFacts* worker) { return worker->executor == needs.executor; });
  std::string why;
  if (machines && !lacked.empty()) {
    why = fmt::format(
        "its jobs have no {0} in their environment, which the runs need: set it where the service runs, or by `setup` "
        "of the section {1}, then: tearless stop, and tearless resume",
        fmt::join(lacked, ", "), needs.executor);
  } else if (machines) {
    why = machines->why_none();
    if (why.empty()) why = "no worker is there yet";
  } else {
    why = !is_any_there     ? "no worker is there"
          : !lacked.empty() ? fmt::format("no worker has {}", fmt::join(lacked, ", "))
                            : "no worker has what it needs";
    why += "; start one:";
    for (const std::string& name : needs.secrets) why += fmt::format(" {}=…", name);
    why += fmt::format(" tearless worker --workspace {}",
                       shell_word(fs::absolute(workspace_.root()).lexically_normal().string()));
  }
  for (const std::string& sentence : hosts_left_out(needs.executor)) why += "; " + sentence;
  return why;
}

std::optional<Launcher::Refusal> WorkerLauncher::refusal_of(const Needs& needs) const {
  if (!fault_.empty()) return Refusal{.why = fault_, .others_may_pass = true};
  int64_t open = 0, of_kind = 0;
  for (const auto& [id, attempt] : attempts_) {
    if (!is_open(attempt)) continue;
    ++open;
    of_kind += attempt.needs == needs && has_taker(attempt);
  }
  if (const Machines* machines = machines_for(needs.executor)) {
    if (std::string never = machines->never_fits(needs); !never.empty())
      return Refusal{.why = std::move(never), .for_good = true, .others_may_pass = true};
  }
  const int64_t fitting = takers_of(needs);
  if (fitting == 0) return Refusal{.why = why_nobody(needs), .others_may_pass = true};
  const auto claims = last_claims_.find(needs);
  const int64_t wanted =
      std::clamp(claims == last_claims_.end() ? 0 : 2 * claims->second, fitting, std::max(fitting, kMaxOfAKind));
  if (of_kind >= wanted || open >= kMaxOpen)
    return Refusal{.why = "the workers have enough to take", .others_may_pass = true};
  return std::nullopt;
}

void WorkerLauncher::start(const Launch& launch) {
  const RunDirectory run(launch.folder);
  const std::string settings = read_file(run.settings());
  Grant grant{.id = launch.id,
              .settings = settings,
              .local = read_file(run.local()),
              .program = launch.program,
              .needs = launch.needs,
              .origins = origins_of(workspace_, settings)};
  grant.program.path = relative_if_inside(launch.program.path, workspace_);
  grant.attempt = run.make_attempt();
  grant.from = newest_state_before(run, grant.attempt);
  clear_old_work(run, grant.from);
  write_grant(run, grant);
  attempts_.insert_or_assign(launch.id, Attempt{.run = run,
                                                .number = grant.attempt,
                                                .needs = launch.needs,
                                                .granted_at = now_(),
                                                .checkpoint_before = checkpoint_at_start(run, grant.from),
                                                .not_on = blame_[launch.needs.executor].not_on(launch.id, now_())});
  changed_ = true;
  if (now_() - written_at_ >= kBetweenBoards) write_board_if_due();  // a worker may have a free slot
}

bool WorkerLauncher::adopt(const std::string& id, const fs::path& folder, const Needs&) {
  const RunDirectory run(folder);
  if (!is_granted(run)) return false;
  const int64_t number = run.newest_attempt();
  const std::optional<Grant> grant = read_grant(run, number);
  // A damaged grant nobody can claim, and one that was being taken back nobody has.
  const bool is_over = claimant_of(run, number).empty() ? !grant : claimant_of(run, number) == kService;
  if (is_over) {
    end_grant(run, number);
    return false;
  }
  Attempt attempt{.run = run,
                  .number = number,
                  .needs = grant ? grant->needs : Needs{},
                  .granted_at = now_(),
                  .checkpoint_before = grant ? checkpoint_at_start(run, grant->from) : 0};
  note_claim(attempt, claimant_of(run, number));
  attempt.gets_on = !attempt.worker.empty();
  attempts_.insert_or_assign(id, std::move(attempt));
  workers_.read_again();  // what its worker has said was read before it was known
  return true;
}

// on_end is left to poll(): the scheduler may be going through its attempts.
void WorkerLauncher::stop(const std::string& id, Stop how, int grace_seconds) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end() || found->second.taken_back) return;
  Attempt& attempt = found->second;
  changed_ = true;
  if (attempt.worker.empty() && claim_grant(attempt.run, attempt.number, kService)) {
    attempt.taken_back = true;
    return;
  }
  attempt.stop = StopOrder{.id = id, .attempt = attempt.number, .how = how, .grace = grace_seconds};
}

// --- machines that may be at fault -----------------------------------------------------------------------------------

// For what is about to be noted.
Blame& WorkerLauncher::blame_of(const Attempt& attempt) {
  is_blame_new_ = true;
  return blame_[attempt.needs.executor];
}

// What an earlier service has kept. Its clock was another one; the time of the day tells how long ago that was.
void WorkerLauncher::recall_blame() {
  const std::optional<json> kept = read_sealed(blame_file_of(workspace_));
  if (!kept) return;
  try {
    const int64_t now = *seconds_of_utc(utc_now()), then = seconds_of_utc(kept->at("written_at")).value_or(now);
    const auto ago = static_cast<double>(std::max<int64_t>(0, now - then));
    for (const auto& [executor, blame] : kept->at("executors").items())
      blame_[executor] = Blame::from_json(blame, ago, now_());
  } catch (const json::exception&) {  // of another version
  }
}

void WorkerLauncher::keep_blame() {
  if (!std::exchange(is_blame_new_, false)) return;
  json executors = json::object();
  for (const auto& [executor, blame] : blame_) {
    if (!blame.is_empty()) executors[executor] = blame.to_json(now_());
  }
  if (executors.empty()) return;
  write_atomically(blame_file_of(workspace_), sealed({{"written_at", utc_now()}, {"executors", executors}}));
}

void WorkerLauncher::note_blame() {
  for (auto& [id, attempt] : attempts_) {
    const bool is_claimed = !attempt.worker.empty() && !attempt.gets_on;
    if (!is_claimed || now_() - attempt.claimed_at < Blame::kSoon) continue;
    if (workers_.last_sign_of(attempt.worker).value_or(0) - attempt.claimed_at < Blame::kSoon) continue;
    attempt.gets_on = true;
    blame_of(attempt).note_progress(id, workers_.host_of(attempt.worker));
  }
  for (const auto& [executor, blame] : blame_) left_out_[executor] = blame.left_out(now_());
  for (auto& [id, attempt] : attempts_) {
    if (!is_open(attempt)) continue;
    std::set<std::string> not_on = blame_[attempt.needs.executor].not_on(id, now_());
    changed_ = changed_ || not_on != attempt.not_on;
    attempt.not_on = std::move(not_on);
  }
}

// A sentence for each host.
std::vector<std::string> WorkerLauncher::hosts_left_out(const std::string& executor) const {
  std::vector<std::string> sentences;
  const auto left_out = left_out_.find(executor);
  if (left_out == left_out_.end()) return sentences;
  for (const auto& [host, bad] : left_out->second) {
    std::vector<std::string> runs;
    for (const std::string& run : bad.runs) runs.push_back(run.substr(0, 8));
    sentences.push_back(fmt::format("{} is left out for {}: {} failed there within a minute", host,
                                    counted(static_cast<int64_t>(std::ceil((bad.until - now_()) / 60)), "minute"),
                                    some_of(runs, kMaxNamed)));
  }
  return sentences;
}

std::vector<std::string> WorkerLauncher::notes() const {
  std::vector<std::string> notes;
  for (const auto& [executor, hosts] : left_out_)
    std::ranges::copy(hosts_left_out(executor), std::back_inserter(notes));
  for (const auto& [executor, machines] : machines_) {
    if (machines) std::ranges::copy(machines->notes(), std::back_inserter(notes));
  }
  return notes;
}

// --- each second or two ----------------------------------------------------------------------------------------------

void WorkerLauncher::poll() {
  last_claims_ = std::exchange(claims_, {});
  hear_workers();
  look_for_claims();
  note_blame();
  std::vector<std::pair<std::string, End>> ended;
  for (auto& [id, attempt] : attempts_) {
    if (std::optional<End> end = end_of(id, attempt)) ended.emplace_back(id, std::move(*end));
  }
  for (const auto& [id, end] : ended) {
    const Attempt over = std::move(attempts_.extract(id).mapped());
    if (fs::exists(over.run.done())) clear_old_work(over.run, 0);
    changed_ = true;
    on_end(id, end);  // which may start others
  }
  note_blame();
  // Not before the attempts of an earlier service are adopted: these files say how they ended.
  std::set<std::string> awaited;
  for (const auto& [id, attempt] : attempts_) awaited.insert(attempt.worker);
  workers_.forget_all_but(awaited);
  keep_blame();
  write_board_if_due();
}

// One idle worker for each run that is to be granted again when its own gives no sign of life for longer.
std::set<std::string> WorkerLauncher::needed_soon() const {
  std::set<std::string> busy, needed;
  for (const auto& [id, attempt] : attempts_) busy.insert(attempt.worker);
  for (const auto& [id, attempt] : attempts_) {
    if (!is_silent(attempt)) continue;
    for (const WorkerFacts* worker : workers_.alive()) {
      const bool is_free = !busy.contains(worker->name) && !needed.contains(worker->name);
      if (!is_free || !fits(*worker, attempt.needs, memory_above(attempt.needs))) continue;
      needed.insert(worker->name);
      break;
    }
  }
  return needed;
}

void WorkerLauncher::write_board_if_due() {
  std::set<std::string> present = workers_.present(), needed = needed_soon();
  changed_ = changed_ || present != seen_ || needed != needed_;
  if (!changed_ && now_() - written_at_ < kWriteBoardEvery) return;
  Board board{.beat = ++beat_, .seen = present, .stay = needed};
  for (const auto& [id, attempt] : attempts_) {
    if (is_open(attempt)) {
      board.grants.push_back({id, attempt.number, attempt.needs, attempt.not_on, memory_above(attempt.needs)});
    }
    if (attempt.stop) board.stops.push_back(*attempt.stop);
  }
  write_board(board_of(workspace_), board);
  changed_ = false;
  seen_ = std::move(present);
  needed_ = std::move(needed);
  written_at_ = now_();
}

std::string WorkerLauncher::where(const std::string& id) const {
  const Attempt& attempt = attempts_.at(id);
  if (attempt.worker.empty()) {
    const std::string why = standing_of(id).waits_for;
    return fmt::format("granted; no worker has taken it yet{}{}",
                       attempt.not_on.empty() ? "" : fmt::format(", not on {}", fmt::join(attempt.not_on, ", ")),
                       why.empty() ? "" : ": " + why);
  }
  const std::string silence = standing_of(id).waits_for;
  return fmt::format("on worker {}{}", attempt.worker, silence.empty() ? "" : "; " + silence);
}

bool WorkerLauncher::is_silent(const Attempt& attempt) const {
  return !attempt.worker.empty() && !attempt.report && workers_.is_silent(attempt.worker);
}

Launcher::Standing WorkerLauncher::standing_of(const std::string& id) const {
  const Attempt& attempt = attempts_.at(id);
  if (attempt.worker.empty()) {
    return {.phase = Phase::kGranted,
            .waits_for = takers_of(attempt.needs) == 0 ? why_nobody(attempt.needs) : "",
            .executor = attempt.needs.executor};
  }
  if (!is_silent(attempt)) return {.executor = attempt.needs.executor};
  const double silent = now_() - workers_.last_sign_of(attempt.worker).value_or(attempt.claimed_at);
  return {.phase = Phase::kSilent,
          .waits_for = fmt::format("its worker {} is silent for {}; the run is granted again after {}", attempt.worker,
                                   duration_text(silent), duration_text(Workers::kGone)),
          .executor = attempt.needs.executor};
}

double WorkerLauncher::look_every(const std::string&) const { return workspace_.is_apart() ? kLookOnNetwork : 0; }

}  // namespace tearless::harness
