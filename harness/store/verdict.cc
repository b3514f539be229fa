#include "harness/store/verdict.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "harness/store/attempt_files.h"

namespace tearless::harness {
namespace {

Verdict failed(FailureClass failure, std::string reason) {
  return {.state = RunState::kFailed, .failure = failure, .reason = std::move(reason), .step = std::nullopt};
}

FailureClass class_of_code(int64_t code) {
  switch (code) {
    case kExitSettingsRefused:
      return FailureClass::kSettings;
    case kExitOutOfMemory:
      return FailureClass::kOutOfMemory;
    case kExitStopped:
      return FailureClass::kStopped;
    default:
      return FailureClass::kCrashed;
  }
}

}  // namespace

std::string Verdict::outcome() const {
  return std::string(state == RunState::kFailed ? name_of(failure) : name_of(state));
}

std::optional<Verdict> verdict_of_done(const RunDirectory& run) {
  try {
    const std::optional<Done> done = read_done(run);
    if (!done) return std::nullopt;
    if (const std::string changed = changed_result_file(run, *done); !changed.empty()) {
      return failed(
          FailureClass::kSettings,
          fmt::format("{} is not what the run had written; restore it, or delete the run's folder to train it again",
                      (run.root() / changed).string()));
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

Verdict judge(const RunDirectory& run, int64_t attempt) {
  if (const std::optional<Verdict> done = verdict_of_done(run)) return *done;
  return judge_exit(run, attempt);
}

Verdict judge_exit(const RunDirectory& run, int64_t attempt) {
  const AttemptRecord record = read_attempt(run, attempt);
  if (!record.code) return failed(FailureClass::kLost, "the machine or the supervisor went away");

  const std::string said = last_log_line(run, attempt);
  const std::string last_words = said.empty() ? "" : ": " + said;
  if (const int64_t signal = record.signal.value_or(0); signal != 0) {
    return failed(FailureClass::kCrashed,
                  fmt::format("killed by signal {} ({}){}", signal, ::strsignal(static_cast<int>(signal)), last_words));
  }
  if (*record.code == kExitDone || *record.code == kExitDiverged) {
    return failed(FailureClass::kCrashed,
                  fmt::format("ended with code {} but left no DONE{}", *record.code, last_words));
  }
  return failed(class_of_code(*record.code), fmt::format("exit code {}{}", *record.code, last_words));
}

}  // namespace tearless::harness
