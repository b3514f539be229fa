// How granted attempts end.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/words.h"
#include "harness/grants/places.h"
#include "harness/grants/publication.h"
#include "harness/grants/trust.h"
#include "harness/grants/worker_launcher.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/progress.h"
#include "harness/runs/verdict.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr double kUnseenFor = 300;  // seconds: as long as files that a worker has named may be unseen

constexpr const char* kNoCheckpoint = "no checkpoint within the ";  // how reasons begin of attempts that lacked time

}  // namespace

// The first file that its worker has named and that is not seen here as it was written; "" if all are.
std::string WorkerLauncher::unseen_file_of(const Attempt& attempt) {
  for (const auto& [name, hash] : attempt.report->files) {
    const fs::path file = attempt.run.attempt(attempt.number) / name;
    try {
      if (sha256_of_file(file) == hash) continue;
    } catch (const UserError&) {  // not there yet
    }
    return file.string();
  }
  const std::optional<RunFiles>& result = attempt.report->result;
  return result ? unseen_file(work_of(attempt.run, attempt.number), *result) : "";
}

// A worker with --shared says so in its own file. Then that file alone is looked at: it must be the user's.
std::string WorkerLauncher::distrusted(const Attempt& attempt) const {
  const WorkerFacts* const worker = workers_.facts_of(attempt.worker);
  const bool is_shared = worker && worker->shared;
  if (is_shared) return distrust({workers_of(workspace_) / (attempt.worker + ".jsonl")});
  const fs::path folder = attempt.run.attempt(attempt.number);
  return distrust({attempt.run.root(), folder, folder / kClaimedFile, work_of(attempt.run, attempt.number).root()});
}

std::optional<Launcher::End> WorkerLauncher::end_of(const std::string& id, Attempt& attempt) {
  const RunDirectory& run = attempt.run;
  if (attempt.taken_back) {
    end_grant(run, attempt.number);
    return End{.never_began = true};
  }
  if (attempt.report) {
    const std::string unseen = unseen_file_of(attempt);
    const bool waits = !unseen.empty() && now_() - attempt.reported_at < kUnseenFor;
    if (waits) return std::nullopt;
    if (unseen.empty()) {
      if (const std::string fault = distrusted(attempt); !fault.empty()) {
        end_grant(run, attempt.number, FailureClass::kMachine, fault);
        return End{.fault = fault};
      }
      if (!publish(run, attempt.number)) return end_without_result(id, attempt, attempt.reported_at);
      end_grant(run, attempt.number);
      blame_of(attempt).note_progress(id, workers_.host_of(attempt.worker));
      return End{.fault = attempt.report->fault};
    }
    end_grant(run, attempt.number);
    return End{.fault = fmt::format("{}, which {} has written, is not seen on this machine", unseen, attempt.worker)};
  }
  const std::optional<Machines::Fate> fate = fate_of(attempt);
  const bool is_gone = !attempt.worker.empty() && workers_.is_gone(attempt.worker, attempt.claimed_at);
  if (!fate && !is_gone) return std::nullopt;
  // Its last words may have been lost with it.
  if (distrusted(attempt).empty() && publish(run, attempt.number)) {
    end_grant(run, attempt.number);
    return End{};
  }
  const double last_sign = workers_.last_sign_of(attempt.worker).value_or(attempt.claimed_at);
  if (fs::exists(run.attempt(attempt.number) / "exit.json")) return end_without_result(id, attempt, last_sign);
  if (!fate) return end_without_result(id, attempt, last_sign);
  const std::string why = fate->is_time_over ? lacks_time(attempt, last_sign) : "";
  why.empty() ? end_grant(run, attempt.number, fate->failure, fate->reason) : end_without_time(attempt, why);
  return End{};
}

// --- runs that need more time than a worker has ----------------------------------------------------------------------

// Why the next attempt may end like this one, a sentence; "" if it may not. REQUIRES: its worker has stopped it, or its
// time was over.
std::string WorkerLauncher::lacks_time(const Attempt& attempt, double ended_at) const {
  const WorkerFacts* worker = workers_.facts_of(attempt.worker);
  if (!worker || !worker->until) return "";
  const double whole = *worker->until;
  if (attempt.stop || ended_at - attempt.claimed_at < whole / 2 || made_checkpoint(attempt)) return "";
  return fmt::format(
      "{}{} that its worker had: give workers more time (time of the executor's section, or --until), or have the run "
      "write checkpoints more often (train.evaluate_updates of tearless-engine)",
      kNoCheckpoint, duration_text(whole));
}

// The first such end costs nothing: the attempt may have come late. After the second in a row there would be no end.
void WorkerLauncher::end_without_time(const Attempt& attempt, const std::string& why) {
  int64_t before = attempt.number - 1;
  while (before > 0 && !attempt.run.has_begun(before)) --before;
  const bool again = before > 0 && grant_end_of(attempt.run, before).reason.starts_with(kNoCheckpoint);
  end_grant(attempt.run, attempt.number, again ? FailureClass::kSettings : FailureClass::kStopped, why);
}

// --- machines that may be at fault -----------------------------------------------------------------------------------

bool WorkerLauncher::made_checkpoint(const Attempt& attempt) const {
  return folder_of(attempt.run, attempt.number).newest_checkpoint() > attempt.checkpoint_before;
}

bool WorkerLauncher::blames_machine(const std::string& id, const Attempt& attempt, FailureClass failure,
                                    double ended_at) {
  const std::string host = workers_.host_of(attempt.worker);
  const bool may_be_machine =
      failure == FailureClass::kCrashed || failure == FailureClass::kMachine || failure == FailureClass::kLost;
  const bool is_soon = !attempt.gets_on && ended_at - attempt.claimed_at < Blame::kSoon;
  if (host.empty() || attempt.stop || !may_be_machine || !is_soon) return false;
  if (made_checkpoint(attempt)) {
    blame_of(attempt).note_progress(id, host);
    return false;
  }
  std::set<std::string> hosts;
  const int64_t above = memory_above(attempt.needs);
  for (const WorkerFacts* worker : workers_.alive()) {
    if (fits(*worker, attempt.needs, above)) hosts.insert(worker->host);
  }
  const bool is_sound = std::ranges::any_of(attempts_, [&](const auto& entry) {
    return entry.second.gets_on && workers_.host_of(entry.second.worker) == host;
  });
  return blame_of(attempt).note_failure(id, host, std::move(hosts), is_sound, now_());
}

Launcher::End WorkerLauncher::end_without_result(const std::string& id, Attempt& attempt, double ended_at) {
  const RunDirectory& run = attempt.run;
  const std::string fault = attempt.report ? attempt.report->fault : "";
  Verdict verdict = verdict_of_exit(run, attempt.number);
  const bool is_recorded = verdict.failure != FailureClass::kLost;  // by its supervisor
  if (!is_recorded && !attempt.report)
    verdict.reason = fmt::format("its worker {} gives no sign of life", attempt.worker);
  if (!fault.empty()) verdict.reason = fault;
  if (blames_machine(id, attempt, verdict.failure, ended_at)) {
    end_grant(
        run, attempt.number, FailureClass::kStopped,
        fmt::format("{}; {} may be at fault: it is tried elsewhere", verdict.reason, workers_.host_of(attempt.worker)));
    return {.never_began = !run.has_begun(attempt.number)};
  }
  if (const std::string why = verdict.failure == FailureClass::kStopped ? lacks_time(attempt, ended_at) : "";
      !why.empty()) {
    end_without_time(attempt, why);
    return {};
  }
  const bool says_why = !is_recorded && !attempt.report;
  end_grant(run, attempt.number, says_why ? FailureClass::kLost : FailureClass::kNone, says_why ? verdict.reason : "");
  return {.fault = fault};
}

}  // namespace tearless::harness
