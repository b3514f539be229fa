#include "harness/slurm/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/sealed_json.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/slurm/script.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr const char* kStates[] = {"asked", "known", "over"};  // as WorkerSubmission::State

// Slurm's sentences (slurm_errno.c), as far as they say that nothing was submitted.
constexpr std::string_view kRefusals[] = {
    "Invalid partition name specified",
    "invalid partition specified",
    "Invalid account",
    "Invalid qos",
    "Invalid generic resource (gres) specification",
    "Invalid Trackable RESource (TRES) specification",
    "Requested node configuration is not available",
    "Requested node config is not available",
    "Requested time limit is invalid",
    "Requested partition configuration not available",
    "Invalid feature specification",
    "Invalid node name specified",
    "Invalid license specification",
    "Invalid wckey specification",
    "Requested reservation is invalid",
    "Memory required by task is not available",
    "Memory specification can not be satisfied",
    "Node count specification invalid",
    "More processors requested than permitted",
    "Job's QOS not permitted to use this partition",
    "User's group not permitted to use this partition",
    "Job's account not permitted to use this partition",
    "Access/permission denied",
    "Unspecified error",  // what a site's own check of submissions answers with
    "Invalid directive found in batch script",
    "unrecognized option",
    "invalid option",
    "Unable to open file",
};
constexpr std::string_view kLimits[] = {
    "Job violates accounting/QOS policy",     "Invalid job array specification", "Resource temporarily unavailable",
    "Slurm temporarily unable to accept job", "Maximum number of jobs",
};

constexpr std::string_view kSilences[] = {
    "Socket timed out",
    "Unable to contact slurm controller",
    "Zero Bytes were transmitted or received",
    "Connection refused",
};

template <size_t count>
bool has_one_of(std::string_view text, const std::string_view (&sentences)[count]) {
  return std::ranges::any_of(sentences, [&](std::string_view sentence) { return text.find(sentence) != text.npos; });
}

// The id that --parsable prints, "17" or "17;cluster"; "" if it is none.
std::string printed_id(const Said& said) {
  const auto lines = split_lines(said.output);
  const std::string_view id = lines.empty() ? "" : lines[0].substr(0, lines[0].find(';'));
  const bool is_id = !id.empty() && id.size() <= 10 && id.find_first_not_of("0123456789") == id.npos;
  return is_id ? std::string(id) : "";
}

Outcome outcome_of_failure(const Said& said) {
  if (said.missing) return {.kind = Outcome::Kind::kRefused, .sentence = said.errors};
  Outcome outcome{.sentence = complaint_of(said)};
  if (said.timed_out) return outcome;
  if (has_one_of(said.errors, kLimits)) {
    outcome.kind = Outcome::Kind::kLimit;
  } else if (has_one_of(said.errors, kRefusals)) {
    outcome.kind = Outcome::Kind::kRefused;
  }
  return outcome;
}

// What is in the name of a submission's file before its ending: "1a2b3c4d" of 1a2b3c4d-3.out.
std::string token_of_file(const fs::path& file) {
  const std::string token = file.stem().string().substr(0, file.stem().string().find('-'));
  return token_in(job_name(token));
}

std::optional<WorkerSubmission> read_submission(const fs::path& file) {
  const std::optional<nlohmann::json> json = read_sealed(file);
  if (!json) return std::nullopt;
  try {
    const auto state = std::ranges::find(kStates, json->at("state").get<std::string>());
    if (state == std::end(kStates)) return std::nullopt;
    Allocation allocation{.gres = json->at("gres"), .gpu_memory_above = json->value("gpu_memory_above", int64_t{0})};
    if (json->contains("memory_bytes")) allocation.memory_bytes = json->at("memory_bytes").get<int64_t>();
    return WorkerSubmission{.token = file.stem().string(),
                            .executor = json->at("executor"),
                            .allocation = std::move(allocation),
                            .count = json->at("count"),
                            .state = static_cast<WorkerSubmission::State>(state - std::begin(kStates)),
                            .job = json->at("job"),
                            .at = json->at("at"),
                            .seconds = json->value("seconds", std::map<int64_t, int64_t>()),
                            .gpus = json->value("gpus", int64_t{0})};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string new_token() { return fmt::format("{:08x}", std::random_device{}()); }

void write_submission(const fs::path& folder, const WorkerSubmission& submission) {
  nlohmann::json json = {{"executor", submission.executor},
                         {"gres", submission.allocation.gres},
                         {"gpu_memory_above", submission.allocation.gpu_memory_above},
                         {"count", submission.count},
                         {"state", kStates[static_cast<size_t>(submission.state)]},
                         {"job", submission.job},
                         {"at", submission.at},
                         {"seconds", submission.seconds},
                         {"gpus", submission.gpus}};
  if (submission.allocation.memory_bytes) json["memory_bytes"] = *submission.allocation.memory_bytes;
  write_atomically(folder / (submission.token + ".json"), sealed(std::move(json)));
}

std::vector<WorkerSubmission> read_submissions(const fs::path& folder, const std::string& executor) {
  std::vector<WorkerSubmission> submissions;
  for (const fs::path& file : entries_of(folder)) {
    if (file.extension() != ".json" || token_of_file(file).empty()) continue;
    const auto submission = read_submission(file);
    if (submission && submission->executor == executor) submissions.push_back(*submission);
  }
  return submissions;
}

int64_t WorkerSubmission::gpu_seconds() const {
  int64_t sum = 0;
  for (const auto& [task, each] : seconds) sum += each;
  return sum * gpus;
}

void remove_submission(const fs::path& folder, const std::string& token) {
  const fs::path record = folder / (token + ".json");
  const auto submission = read_submission(record);
  const bool stays = submission && submission->gpu_seconds() > 0;
  if (!stays) remove_file(record);  // first: without it the others are nobody's
  for (const fs::path& file : entries_of(folder)) {
    if (token_of_file(file) == token && file != record) remove_file(file);
  }
}

void clear_submissions(const fs::path& folder, size_t kept) {
  std::vector<WorkerSubmission> over;
  std::set<std::string> nobodys;
  for (const fs::path& file : entries_of(folder)) {
    const std::string token = token_of_file(file);
    if (token.empty()) continue;
    std::error_code unknown;
    if (!fs::exists(folder / (token + ".json"), unknown) && !unknown) nobodys.insert(token);
    if (file.extension() != ".json") continue;
    const auto submission = read_submission(file);
    if (submission && submission->state == WorkerSubmission::State::kOver) over.push_back(*submission);
  }
  for (const std::string& token : nobodys) remove_submission(folder, token);
  std::ranges::sort(over, std::ranges::greater(), &WorkerSubmission::at);
  for (size_t i = kept; i < over.size(); ++i) remove_submission(folder, over[i].token);
}

bool is_silence(const Said& said) { return said.timed_out || (said.code != 0 && has_one_of(said.errors, kSilences)); }

Outcome outcome_of(const Said& said) {
  const bool is_submitted = said.code == 0 && !said.timed_out;
  if (!is_submitted) return outcome_of_failure(said);
  if (const std::string id = printed_id(said); !id.empty()) return {.kind = Outcome::Kind::kSubmitted, .job = id};
  return {.sentence = "sbatch's answer is not understood"};
}

Outcome outcome_of_test(const Said& said) {
  if (said.code == 0 && !said.timed_out) return {.kind = Outcome::Kind::kSubmitted};
  return outcome_of_failure(said);
}

}  // namespace tearless::harness
