#include "harness/worker/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fault.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/print.h"
#include "base/process_name.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/grants/board.h"
#include "harness/grants/grant.h"
#include "harness/grants/places.h"
#include "harness/grants/trust.h"
#include "harness/grants/work_folder.h"
#include "harness/grants/worker_file.h"
#include "harness/launch/local_launcher.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/verdict.h"
#include "harness/worker/node_folder.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr auto kLook = std::chrono::seconds(1);
// Seconds.
constexpr double kBeatEvery = 5;
constexpr double kAskEvery = 10;      // whether its attempts are wanted still
constexpr double kNoBoardFor = 120;   // then it ends
constexpr double kUnseenFor = 600;    // likewise, while the service does not see its file
constexpr double kLateFor = 120;      // as long as a grant, or a result that its run derives from, may be unseen here
constexpr double kBeforeTheEnd = 60;  // besides the grace time, for what its clock and the machine's owner differ

class Worker {
 public:
  explicit Worker(const WorkerOptions& options)
      : options_(options),
        folder_(node_folder()),
        signals_(io_),
        timer_(io_),
        launcher_(io_, launcher_options(options, facts_)),
        began_at_(steady_seconds()),
        busy_at_(began_at_) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
      if (!is_ignored(signal)) signals_.add(signal);
    }
    ::setenv("TEARLESS_CACHE", (folder_ / "cache").c_str(), /*overwrite=*/0);  // its lock is a flock
    make_folders_unsynced(folder_ / "locks");
    launcher_.on_end = [this](const std::string& id, const Launcher::End& end) { report_end(id, end.fault); };
  }

  void run() {
    fault::begin(fault::kWorker);
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (!error) end("asked");
    });
    look();
    while (!is_over_) io_.run_one();
    if (!fault_.empty()) throw UserError(fault_);
  }

 private:
  struct Claimed {
    int64_t attempt = 0;
    double since = 0;
    bool is_started = false;
    int grace_seconds = 0;
    std::optional<Stop> stop = {};  // as the board asked last
    fs::path lock = {};
  };

  static LocalLauncher::Options launcher_options(const WorkerOptions& worker, WorkerFacts& facts) {
    LocalLauncher::Options options = local_options(worker.limits);
    options.ends_attempts = true;
    facts = {.name = new_worker_name(),
             .host = this_machine(),
             .executor = worker.executor,
             .job = worker.job,
             .cores = std::ssize(options.capacity.cores),
             .memory_bytes = options.capacity.memory_bytes,
             .processor = options.capacity.processor,
             .until = worker.until_seconds,
             .shared = worker.is_shared};
    for (const auto& [name, value] : own_variables()) {
      if (is_secret(name)) facts.secrets.insert(name);
    }
    for (const Device& device : options.capacity.devices) {
      facts.devices.push_back({.name = device.name, .memory_bytes = device.memory_bytes});
    }
    return options;
  }

  void look() {
    is_looking_ = true;
    looks_again_ = false;
    const double now = steady_seconds();
    if (!fs::exists(options_.workspace.root())) {
      fault_ = fmt::format("{} is gone", options_.workspace.root().string());
      is_over_ = true;
      return;
    }
    if (const auto board = read_board(board_of(options_.workspace))) {
      const std::string fault = distrusted({queue_of(options_.workspace), board_of(options_.workspace)});
      if (!fault.empty()) {
        fault_ = fault;
        end("refused");
      } else {
        introduce_myself();
        note_stops(*board);
      }
      if (fault.empty() && board->seen.contains(facts_.name)) {
        if (seen_at_ == 0) busy_at_ = now;
        seen_at_ = now;
        if (board->stay.contains(facts_.name)) busy_at_ = now;
        if (!ending()) take_grants(*board);
      }
    }
    start_claimed();
    if (now - asked_at_ >= kAskEvery) stop_given_up();
    launcher_.poll();
    if (file_ && now - beat_at_ >= kBeatEvery) {
      file_->beat();
      beat_at_ = now;
    }
    if (!claimed_.empty()) busy_at_ = now;
    note_reasons_to_end(now);
    if (ending() && claimed_.empty()) {
      if (file_) file_->bye(why_it_ends_);
      print("{} ends: {}\n", facts_.name, why_it_ends_);
      is_over_ = true;
      return;
    }
    is_looking_ = false;
    looks_again_ ? look_soon() : look_in(kLook);
  }

  // Instead of at the next look.
  void look_soon() {
    looks_again_ = true;
    if (!is_looking_) look_in(std::chrono::seconds(0));
  }

  void look_in(std::chrono::seconds rest) {
    timer_.expires_after(rest);
    timer_.async_wait([this](boost::system::error_code error) {
      if (!error) look();
    });
  }

  std::string distrusted(std::initializer_list<fs::path> paths) const {
    const std::string fault = options_.is_shared ? "" : distrust(paths);
    return fault.empty() ? "" : fmt::format("{} (on {}; workers with --shared take it as it is)", fault, facts_.host);
  }

  // Not before there is a board: without one, this may be a folder that no service sees. Of a new workspace the board
  // may be seen before the folder of the workers.
  void introduce_myself() {
    if (file_) return;
    try {
      file_.emplace(workers_of(options_.workspace), facts_);
    } catch (const UserError& error) {
      why_alone_ = error.what();
      return;
    }
    print("{} works for {}\n", facts_.name, fs::absolute(options_.workspace.root()).string());
  }

  void note_reasons_to_end(double now) {
    if (ending()) return;
    const double left = options_.until_seconds ? began_at_ + *options_.until_seconds - now : kBeforeTheEnd + 1e9;
    int grace = 0;
    for (const auto& [id, mine] : claimed_) grace = std::max(grace, mine.grace_seconds);
    if (left < kBeforeTheEnd + grace) return end("until");
    if (!file_ && now - began_at_ > kNoBoardFor) {
      fault_ = !why_alone_.empty()
                   ? why_alone_
                   : fmt::format(
                         "this machine ({}) does not see {}: is the folder on a disk that it shares, does a "
                         "service run, and was a grid submitted with --executor workers?",
                         facts_.host, board_of(options_.workspace).string());
      return end("alone");
    }
    if (file_ && now - std::max(seen_at_, began_at_) > kUnseenFor && claimed_.empty()) {
      fault_ = fmt::format("no service has seen {} for ten minutes: does one run, and does it see this folder?",
                           (workers_of(options_.workspace) / (facts_.name + ".jsonl")).string());
      return end("alone");
    }
    if (seen_at_ > 0 && now - busy_at_ > options_.idle_seconds) end("idle");
  }

  bool ending() const { return !why_it_ends_.empty(); }

  void end(const std::string& why) {
    if (ending()) return;
    why_it_ends_ = why;
    std::vector<std::string> unstarted;
    for (auto& [id, mine] : claimed_) {
      if (!mine.is_started) {
        unstarted.push_back(id);
      } else if (!mine.stop) {
        mine.stop = Stop::kOnRequest;
        launcher_.stop(id, Stop::kOnRequest, mine.grace_seconds);
      }
    }
    for (const std::string& id : unstarted) report_end(id, "");
    look_soon();
  }

  void note_stops(const Board& board) {
    for (const StopOrder& order : board.stops) {
      const auto found = claimed_.find(order.id);
      if (found == claimed_.end() || found->second.attempt != order.attempt || found->second.stop == order.how)
        continue;
      if (!found->second.is_started) continue;  // it will be asked as soon as it is
      found->second.stop = order.how;
      launcher_.stop(order.id, order.how, order.grace);
    }
  }

  // The service gives up the attempts of a worker that it has not heard for long: this machine was cut off, or slept.
  void stop_given_up() {
    asked_at_ = steady_seconds();
    for (auto& [id, mine] : claimed_) {
      if (mine.is_started && !mine.stop && is_given_up(options_.workspace.run(id).attempt(mine.attempt))) {
        mine.stop = Stop::kOnRequest;
        launcher_.stop(id, Stop::kOnRequest, mine.grace_seconds);
      }
    }
  }

  // Or deleted. False while the disk does not answer.
  static bool is_given_up(const fs::path& attempt) {
    std::error_code unreachable;
    if (fs::exists(attempt / kEndedFile, unreachable)) return true;
    return !fs::exists(attempt, unreachable) && !unreachable;
  }

  void take_grants(const Board& board) {
    for (const OpenGrant& grant : board.grants) {
      const bool waits = std::ranges::any_of(claimed_, [](const auto& entry) { return !entry.second.is_started; });
      if (waits) return;  // for files, and it needs the room that there is
      if (!fits(facts_, grant.needs, grant.memory_above) || grant.not_on.contains(facts_.host)) continue;
      if (claimed_.contains(grant.id) || launcher_.refusal_of(grant.needs)) continue;
      if (!tried_.insert({grant.id, grant.attempt}).second) continue;
      const RunDirectory run = options_.workspace.run(grant.id);
      try {
        if (!claim_grant(run, grant.attempt, facts_.name)) continue;
      } catch (const UserError&) {  // its folder is not seen here yet, or no more
        tried_.erase({grant.id, grant.attempt});
        continue;
      }
      file_->claimed(grant.id, grant.attempt);
      claimed_[grant.id] = {.attempt = grant.attempt, .since = steady_seconds()};
      start_claimed();
    }
  }

  void start_claimed() {
    std::map<std::string, std::string> faults;
    for (auto& [id, mine] : claimed_) {
      if (mine.is_started) continue;
      try {
        start(id, mine);
      } catch (const UserError& error) {
        faults[id] = error.what();
      }
    }
    for (const auto& [id, fault] : faults) report_end(id, fault);
  }

  // Does nothing while what it needs is not seen here.
  void start(const std::string& id, Claimed& mine) {
    const bool is_late = steady_seconds() - mine.since > kLateFor;
    std::error_code unreachable;
    if (fs::exists(options_.workspace.run(id).attempt(mine.attempt) / kEndedFile, unreachable)) {
      fail("the service has given this attempt up before it began");  // this machine slept
    }
    std::optional<Grant> grant = read_grant(options_.workspace.run(id), mine.attempt);
    if (!grant && is_late) fail("{} is damaged, or not seen on {}", grant_file(id, mine.attempt), facts_.host);
    if (!grant) return;
    for (const auto& [of, files] : grant->origins) {
      const std::string unseen = unseen_file(options_.workspace.run(of), files);
      if (unseen.empty()) continue;
      if (is_late) fail("{}, which run {} reads, is not seen on {} as it was written", unseen, id, facts_.host);
      return;
    }
    if (launcher_.refusal_of(grant->needs)) return;
    mine.grace_seconds = grant->program.grace_seconds;
    const fs::path program = grant->program.path = fs::absolute(options_.workspace.root() / grant->program.path);
    const RunDirectory run = options_.workspace.run(id);
    const std::string fault = distrusted({run.root(), run.attempt(mine.attempt), run.attempt(mine.attempt) / kGrantFile,
                                          program.parent_path(), program});
    if (!fault.empty()) fail("{}", fault);
    mine.lock = folder_ / "locks" / fmt::format("{}-{}-{}", facts_.name, id, mine.attempt);
    const RunDirectory work = make_work_folder(options_.workspace, *grant, facts_.name, mine.lock);
    launcher_.start({.id = id,
                     .folder = fs::absolute(work.root()),
                     .needs = grant->needs,
                     .program = grant->program,
                     .attempt = mine.attempt});
    mine.is_started = true;
  }

  std::string grant_file(const std::string& id, int64_t attempt) const {
    return (options_.workspace.run(id).attempt(attempt) / kGrantFile).string();
  }

  void report_end(const std::string& id, const std::string& fault) {
    const Claimed mine = claimed_.extract(id).mapped();
    const RunDirectory run = options_.workspace.run(id);
    AttemptReport report{.id = id, .attempt = mine.attempt, .fault = fault};
    const fs::path attempt = run.attempt(mine.attempt);
    report.files = checksums_for_exit(run, mine.attempt);
    if (const auto exit = read_if_there(attempt / "exit.json")) report.files["exit.json"] = sha256(*exit);
    const RunDirectory work(attempt / fmt::format("work.{}", facts_.name) / id);
    const std::optional<Verdict> verdict = verdict_of_done(work);
    if (verdict && has_result(verdict->state)) report.result = files_of(work);
    if (!mine.lock.empty()) remove_file(mine.lock);
    file_->ended(report);
    look_soon();
  }

  WorkerOptions options_;
  fs::path folder_;  // on this machine
  WorkerFacts facts_;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  LocalLauncher launcher_;
  std::optional<WorkerFile> file_;
  std::map<std::string, Claimed> claimed_;                // by run
  std::set<std::pair<std::string, int64_t>> tried_ = {};  // grants
  double began_at_, busy_at_, seen_at_ = 0, beat_at_ = 0, asked_at_ = 0;
  bool is_looking_ = false, looks_again_ = false, is_over_ = false;
  std::string why_it_ends_, why_alone_, fault_;
};

}  // namespace

void work(const WorkerOptions& options) { Worker(options).run(); }

}  // namespace tearless::harness
