#include "harness/slurm/squeue.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/numbers.h"
#include "base/utf8.h"
#include "base/words.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxDigits = 10;
constexpr size_t kMaxWord = 32;

struct KnownWord {
  std::string_view word;
  StateWord meaning;
};

// clang-format off
constexpr KnownWord kWords[] = {
    {"PENDING",       {JobState::kPending}},
    {"REQUEUED",      {JobState::kPending}},
    {"REQUEUE_FED",   {JobState::kPending}},
    {"REQUEUE_HOLD",  {JobState::kPending}},
    {"RESV_DEL_HOLD", {JobState::kPending}},
    {"SPECIAL_EXIT",  {JobState::kPending}},  // queued again and held
    {"CONFIGURING",   {JobState::kRunning}},
    {"RUNNING",       {JobState::kRunning}},
    {"RESIZING",      {JobState::kRunning}},
    {"SIGNALING",     {JobState::kRunning}},
    {"STAGE_OUT",     {JobState::kRunning}},
    {"STOPPED",       {JobState::kRunning}},
    {"SUSPENDED",     {JobState::kRunning}},
    {"COMPLETING",    {JobState::kRunning}},
    {"COMPLETED",     {JobState::kEnded, FailureClass::kStopped, "ended"}},
    {"FAILED",        {JobState::kEnded, FailureClass::kStopped, "failed"}},
    {"CANCELLED",     {JobState::kEnded, FailureClass::kStopped, "was cancelled"}},
    {"TIMEOUT",       {JobState::kEnded, FailureClass::kStopped, "reached its time limit"}},
    {"PREEMPTED",     {JobState::kEnded, FailureClass::kStopped, "was preempted"}},
    {"NODE_FAIL",     {JobState::kEnded, FailureClass::kStopped, "lost its node"}},
    {"BOOT_FAIL",     {JobState::kEnded, FailureClass::kStopped, "got a node that did not start"}},
    {"DEADLINE",      {JobState::kEnded, FailureClass::kStopped, "reached its deadline"}},
    {"REVOKED",       {JobState::kEnded, FailureClass::kStopped, "was moved to another cluster"}},
    {"OUT_OF_MEMORY", {JobState::kEnded, FailureClass::kOutOfMemory, "ran out of memory"}},
};
// clang-format on

std::optional<int64_t> whole_number_in(std::string_view text) {
  return text.size() <= kMaxDigits && !text.starts_with('-') ? number_of<int64_t>(text) : std::nullopt;
}

bool is_state_word(std::string_view text) {
  return !text.empty() && text.size() <= kMaxWord &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

// Of "1-02:03:04", "2:03:04" or "3:04"; 0 for anything else, as for a job that has not begun.
int64_t seconds_in_time(std::string_view text) {
  const size_t dash = text.find('-');
  const auto days = dash == text.npos ? std::optional<int64_t>(0) : whole_number_in(text.substr(0, dash));
  if (dash != text.npos) text.remove_prefix(dash + 1);
  if (std::ranges::count(text, ':') > 2) return 0;
  int64_t seconds = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    const auto part = whole_number_in(text.substr(begin, end - begin));
    if (!part) return 0;
    seconds = 60 * seconds + *part;
    begin = end + 1;
  }
  return days ? 86'400 * *days + seconds : 0;
}

// Of "%F|%K|%T|%N|%M|%j|%r". The reason is last, as it may have any character; a name that has a "|" is not ours.
std::optional<SlurmJob> job_in(std::string_view line) {
  std::array<std::string_view, 7> fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t end = i + 1 < fields.size() ? line.find('|') : line.size();
    if (end == line.npos) return std::nullopt;
    fields[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  const auto& [array, task, word, node, time, name, reason] = fields;
  const bool is_element = task != "N/A";
  if (!whole_number_in(array) || (is_element && !whole_number_in(task)) || !is_state_word(word)) return std::nullopt;
  return SlurmJob{.array = std::string(array),
                  .task = is_element ? whole_number_in(task) : std::nullopt,
                  .word = std::string(word),
                  .node = printable(node),
                  .name = printable(name),
                  .reason = printable(reason),
                  .seconds = seconds_in_time(time)};
}

}  // namespace

StateWord meaning_of(std::string_view word) {
  const auto known = std::ranges::find(kWords, word, &KnownWord::word);
  return known != std::end(kWords) ? known->meaning : StateWord{};
}

std::string SlurmJob::id() const { return task ? array + "_" + std::to_string(*task) : array; }

std::vector<std::string> squeue_words() {
  return {"squeue", "-h", "-r", "-u", std::to_string(::getuid()), "-t", "all", "-o", "%F|%K|%T|%N|%M|%j|%r"};
}

std::optional<std::vector<SlurmJob>> jobs_in(const Said& said) {
  if (said.code != 0 || said.timed_out) return std::nullopt;
  std::vector<SlurmJob> jobs;
  if (said.output.empty()) return jobs;
  if (said.output.back() != '\n') return std::nullopt;  // cut
  for (const std::string_view line : split_lines(said.output)) {
    if (auto job = job_in(line)) jobs.push_back(std::move(*job));
  }
  return jobs.empty() ? std::nullopt : std::optional(std::move(jobs));
}

}  // namespace tearless::harness
