// The requests of protocol.h, one row and one function each.
#include <array>
#include <utility>

#include "base/error.h"
#include "harness/folders/delete.h"
#include "harness/folders/sweep_directory.h"
#include "harness/service/protocol.h"
#include "harness/service/service.h"

namespace tearless::harness {
using nlohmann::json;
namespace {

// What became of the sweeps and runs of a request.
class Outcome {
 public:
  void add(SubmissionFacts submission) {
    add(submission.id);
    submitted_.push_back(std::move(submission));
  }
  void add(const std::string& id, bool was_done = true) { (was_done ? done_ : refused_).push_back(id); }
  operator json() const { return {{"done", done_}, {"refused", refused_}, {"submitted", submitted_}}; }

 private:
  std::vector<std::string> done_, refused_;
  std::vector<SubmissionFacts> submitted_;  // what that did with the sweeps of `done_`
};

using OfSweep = void (*)(Scheduler&, const std::string&);
using OfRun = bool (Scheduler::*)(const std::string&);

Outcome each(Service& service, const Request& request, OfSweep of_sweep, OfRun of_run) {
  service.require(request.sweeps);
  Outcome outcome;
  for (const std::string& sweep : request.sweeps) {
    of_sweep(service.scheduler(), sweep);
    outcome.add(sweep);
  }
  for (const std::string& run : request.runs) outcome.add(run, (service.scheduler().*of_run)(run));
  return outcome;
}

json status(Service& service, const Request&) { return service.facts(); }

json why(Service& service, const Request& request) { return {{"why", service.scheduler().why(request.runs)}}; }

Outcome submit_all(Service& service, const Request& request, Scheduler::Add how) {
  Outcome outcome;
  for (const std::string& sweep : request.sweeps) {
    SubmissionFacts submission = service.submit(sweep, how, request.flags.contains("replace"));
    if (request.priority) service.set_priority(sweep, *request.priority);
    outcome.add(std::move(submission));
  }
  return outcome;
}

json submit(Service& service, const Request& request) {
  return submit_all(service, request,
                    request.flags.contains("retry") ? Scheduler::Add::kRetry : Scheduler::Add::kSubmit);
}

json retry(Service& service, const Request& request) {
  Outcome outcome = submit_all(service, request, Scheduler::Add::kRetry);
  for (const std::string& run : request.runs) outcome.add(run, service.scheduler().retry(run));
  return outcome;
}

json pause(Service& service, const Request& request) {
  const auto of_sweep = [](Scheduler& scheduler, const std::string& sweep) {
    scheduler.pause(sweep, "paused on request", OnPause::kStop);
  };
  return each(service, request, of_sweep, &Scheduler::hold);
}

json resume(Service& service, const Request& request) {
  const auto of_sweep = [](Scheduler& scheduler, const std::string& sweep) { scheduler.resume(sweep); };
  return each(service, request, of_sweep, &Scheduler::release);
}

json cancel(Service& service, const Request& request) {
  const auto of_sweep = [](Scheduler& scheduler, const std::string& sweep) { scheduler.cancel(sweep); };
  return each(service, request, of_sweep, &Scheduler::cancel_run);
}

json clean(Service& service, const Request& request) {
  return free_unneeded(service.store(), service.workspace(), {.all = request.flags.contains("all")});
}

// All of it, or nothing if one of the runs is in use.
json delete_all(Service& service, const Request& request) {
  require_deletable(service.store(), service.workspace(), runs_of_no_other(service.store(), request.sweeps));
  require_deletable(service.store(), service.workspace(), request.runs);
  Outcome outcome;
  for (const std::string& run : request.runs) outcome.add(run, service.scheduler().discard(run));
  for (const std::string& sweep : request.sweeps) {
    service.drop(sweep);
    delete_sweep(service.store(), service.workspace(), sweep, request.flags.contains("keep_results"));
    outcome.add(sweep);
  }
  return outcome;
}

json stop(Service& service, const Request& request) {
  const bool is_refused = request.flags.contains("if_idle") && service.is_busy();
  if (!is_refused) service.end(request.flags.contains("now"), !request.flags.contains("hand_over"));
  return {{"done", !is_refused}};
}

constexpr auto kKinds = std::to_array<RequestKind>({
    {"status", RequestTarget::kNothing, "", status},
    {"why", RequestTarget::kRuns, "", why},                       // they wait, or are where they are
    {"submit", RequestTarget::kSweeps, "retry replace", submit},  // their folders are written
    {"pause", RequestTarget::kBoth, "", pause,
     "stop sweeps or runs with checkpoints, and start them no more until they are resumed"},
    {"resume", RequestTarget::kBoth, "", resume, "continue paused sweeps or runs"},
    {"cancel", RequestTarget::kBoth, "", cancel, "give up the unfinished runs of a sweep, or single runs; results stay",
     true},
    {"retry", RequestTarget::kBoth, "", retry, "try failed runs again", true},
    {"delete", RequestTarget::kBoth, "keep_results", delete_all},
    {"clean", RequestTarget::kSweeps, "all", clean},  // of the whole workspace, whichever it names
    // now: attempts stop too. if_idle: only if nothing is to be done. hand_over: another service follows.
    {"stop", RequestTarget::kNothing, "now if_idle hand_over", stop},
});

}  // namespace

std::span<const RequestKind> request_kinds() { return kKinds; }

}  // namespace tearless::harness
