#include "harness/runs/verdict.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/words.h"

namespace tearless::harness {
namespace {

/// Who or what ended an attempt's program.
enum class EndedBy {
  kItself,   // it exited, or died of a signal that only its own fault sends (SIGSEGV, SIGABRT …)
  kRequest,  // the harness asked it to stop, on a user's request
  kStall,    // the harness asked it to stop, because it gave no sign of life
  kMemory,   // the kernel's OOM killer
  kOutside,  // something else: a kill by hand, a limit on CPU time, a shutdown
};

/// A rule for attempts that ended without a result. Rules do not read the attempt's phase (starting, preparing,
/// training, evaluating, publishing), which appears in the message. But a silent attempt is stopped sooner while it
/// trains, and is then kStalled (schedule/attempt_watch.cc).
struct EndRule {
  EndedBy by;
  std::optional<int64_t> code;  // the program's exit code; kAnyCode: any code or signal
  bool disk_full;               // true: applies only if the disk was full at the end
  FailureClass failure;
};
constexpr std::nullopt_t kAnyCode = std::nullopt;

// clang-format off
/// The first rule that matches applies. Which classes count as a try: harness/runs/policy.h.
constexpr EndRule kEndRules[] = {
    {EndedBy::kRequest, kAnyCode,             false, FailureClass::kStopped},   // whatever its exit code
    {EndedBy::kStall,   kAnyCode,             false, FailureClass::kStalled},
    {EndedBy::kMemory,  kAnyCode,             false, FailureClass::kOutOfMemory},
    {EndedBy::kOutside, kAnyCode,             false, FailureClass::kKilled},
    {EndedBy::kItself,  kExitStopped,         false, FailureClass::kStopped},   // asked by something else: preempted
    {EndedBy::kItself,  kExitSettingsRefused, false, FailureClass::kSettings},
    {EndedBy::kItself,  kExitOutOfMemory,     false, FailureClass::kOutOfMemory},
    {EndedBy::kItself,  kExitMachine,         false, FailureClass::kMachine},
    {EndedBy::kItself,  kExitData,            false, FailureClass::kData},
    {EndedBy::kItself,  kAnyCode,             true,  FailureClass::kMachine},   // a program that does not use code 74
    {EndedBy::kItself,  kAnyCode,             false, FailureClass::kCrashed},
};
// clang-format on

Verdict failed(FailureClass failure, std::string reason) {
  return {.state = RunState::kFailed, .failure = failure, .reason = std::move(reason), .step = std::nullopt};
}

// Signals that a program does not send itself: they come from a user, a resource limit or another program. SIGXFSZ is
// not among them, because the program itself wrote the file that exceeded the limit.
bool comes_from_outside(int64_t signal) {
  for (const int one : {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGPWR}) {
    if (signal == one) return true;
  }
  return false;
}

/// REQUIRES: the attempt has an exit.json.
EndedBy ended_by(const AttemptRecord& attempt) {
  const int64_t signal = attempt.signal.value_or(0);
  if (attempt.asked == "stall") return EndedBy::kStall;
  if (!attempt.asked.empty()) return EndedBy::kRequest;
  if (signal == SIGKILL && attempt.killed_for_memory) return EndedBy::kMemory;
  return comes_from_outside(signal) ? EndedBy::kOutside : EndedBy::kItself;
}

/// `code` is unset if a signal ended the program.
FailureClass class_of_end(EndedBy by, std::optional<int64_t> code, bool disk_full) {
  for (const EndRule& rule : kEndRules) {
    if (rule.by == by && (!rule.code || rule.code == code) && (!rule.disk_full || disk_full)) {
      return rule.failure;
    }
  }
  throw std::logic_error("no rule covers this end of an attempt");
}

std::string how_it_ended(const AttemptRecord& attempt, EndedBy by) {
  const int64_t signal = attempt.signal.value_or(0);
  const char* why = by == EndedBy::kStall     ? "no new output; "
                    : by == EndedBy::kRequest ? "on request; "
                    : by == EndedBy::kMemory  ? "the machine had no memory left; "
                    : by == EndedBy::kOutside ? "from outside; "
                                              : "";
  const std::string end = signal == 0
                              ? fmt::format("exit code {}", attempt.code.value_or(0))
                              : fmt::format("killed by signal {} ({})", signal, ::strsignal(static_cast<int>(signal)));
  return why + end + (attempt.phase.empty() ? "" : " while " + attempt.phase);
}

}  // namespace

std::string Verdict::outcome() const {
  return std::string(state == RunState::kFailed ? name_of(failure) : name_of(state));
}

std::optional<Verdict> verdict_of_done(const RunDirectory& run) {
  try {
    const std::optional<Done> done = read_done(run);
    if (!done) return std::nullopt;
    const std::string id = run.id();
    if (const std::string settings = run_id(read_file(run.settings())); settings != id) {
      return failed(FailureClass::kSettings,
                    fmt::format("{} holds the settings of run {}: the folder was copied or changed; delete it to train "
                                "the run",
                                run.root().string(), settings));
    }
    if (!done->id.empty() && done->id != id) {
      return failed(FailureClass::kSettings, fmt::format("{} belongs to run {}; delete the run's folder to train it",
                                                         run.done().string(), done->id));
    }
    if (const std::string changed = changed_result_file(run, *done); !changed.empty()) {
      return failed(
          FailureClass::kSettings,
          fmt::format("{} is not what the run had written; restore it, or delete the run's folder to train it again",
                      (run.root() / changed).string()));
    }
    const bool has_scores = std::filesystem::exists(run.scores());
    if (has_scores && done->outcome == "done" && !done->files.contains("scores.json")) {
      return failed(FailureClass::kSettings,
                    fmt::format("{} has no checksum of scores.json (docs/run_directory.md)", run.done().string()));
    }
    read_scores(run);
    return Verdict{.state = done->outcome == "diverged" ? RunState::kDiverged : RunState::kDone,
                   .failure = FailureClass::kNone,
                   .reason = done->reason,
                   .step = done->step};
  } catch (const UserError& damaged) {
    return failed(FailureClass::kSettings, damaged.what());
  }
}

Verdict verdict_of(const RunDirectory& run, int64_t attempt) {
  if (const std::optional<Verdict> done = verdict_of_done(run)) return *done;
  return verdict_of_exit(run, attempt);
}

Verdict verdict_of_exit(const RunDirectory& run, int64_t attempt) {
  if (const GrantEnd end = grant_end_of(run, attempt); end.failure != FailureClass::kNone) {
    return failed(end.failure, end.reason);
  }
  const AttemptRecord record = read_attempt(run, attempt);
  if (!record.code)
    return failed(FailureClass::kLost, "the machine or the supervisor failed before it recorded the end");

  const EndedBy by = ended_by(record);
  const int64_t signal = record.signal.value_or(0);
  const FailureClass failure = class_of_end(by, signal == 0 ? record.code : kAnyCode, record.disk_full);
  std::string reason = how_it_ended(record, by);
  if (failure == FailureClass::kMachine && record.disk_full) reason += "; the disk is full";
  if (failure == FailureClass::kCrashed && signal == 0 &&
      (*record.code == kExitDone || *record.code == kExitDiverged)) {
    reason += " without DONE";
  }
  const std::string said = last_log_line(run, attempt);
  return failed(failure, said.empty() ? reason : reason + ": " + said);
}

std::string failure_signature(const std::string& reason) {
  std::string signature;
  for (const std::string_view word : split_words(reason)) {
    const bool is_path = word.find('/') != std::string_view::npos;
    const bool has_number = std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
    const bool is_exit =
        signature.ends_with("code ") || signature.ends_with("signal ");  // these numbers distinguish kinds of crashes
    signature += is_path ? "/" : has_number && !is_exit ? "#" : std::string(word);
    signature += ' ';
  }
  return signature;
}

}  // namespace tearless::harness
