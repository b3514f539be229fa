#include "harness/grants/grant.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/sealed_json.h"
#include "base/sys.h"
#include "harness/runs/attempt_files.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

bool are_one(const fs::path& a, const fs::path& b) {
  struct stat one {
  }, other{};
  return ::lstat(a.c_str(), &one) == 0 && ::lstat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

}  // namespace

void write_grant(const RunDirectory& run, const Grant& grant) {
  json record = grant;
  record["program"] = grant.program.path.string();
  record["stamp"] = grant.program.stamp;
  record["grace"] = grant.program.grace_seconds;
  if (grant.program.environment) record["environment"] = *grant.program.environment;
  write_atomically(run.attempt(grant.attempt) / kGrantFile, sealed(std::move(record)));
}

std::optional<Grant> read_grant(const RunDirectory& run, int64_t attempt) {
  const std::optional<json> record = read_sealed(run.attempt(attempt) / kGrantFile);
  if (!record) return std::nullopt;
  try {
    Grant grant = record->get<Grant>();
    grant.program = {.path = record->at("program").get<std::string>(),
                     .stamp = record->at("stamp"),
                     .grace_seconds = record->at("grace")};
    if (record->contains("environment")) {
      grant.program.environment = record->at("environment").get<SubmittedEnvironment>();
    }
    const bool is_it = grant.id == run.id() && grant.attempt == attempt && run_id(grant.settings) == grant.id;
    return is_it ? std::optional(std::move(grant)) : std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

bool claim_grant(const RunDirectory& run, int64_t attempt, std::string_view who) {
  const fs::path folder = run.attempt(attempt), own = folder / fmt::format("claim.{}", who),
                 taken = folder / kClaimedFile;
  if (const std::string claimant = claimant_of(run, attempt); !claimant.empty()) return claimant == who;
  write_atomically(own, fmt::format("{}\n", who));  // a line: a file of another machine may be seen in part
  sys::link(own.c_str(), taken.c_str());
  const bool is_ours = are_one(own, taken);
  // A server that forgot a claim would give one number to two workers.
  sync_folder(folder);
  if (!is_ours) remove_file(own);
  return is_ours;
}

int64_t newest_state_before(const RunDirectory& run, int64_t number) {
  std::optional<int64_t> newest;
  for (int64_t attempt = number - 1; attempt > 0; --attempt) {
    const RunDirectory work = work_of(run, attempt);
    const bool has_work = is_there(work.root());
    const bool was_here = run.has_begun(attempt) && !is_there(run.attempt(attempt) / kGrantFile);
    if (!has_work && !was_here) continue;
    const int64_t place = has_work ? attempt : 0;
    if ((has_work ? work : run).newest_checkpoint() > 0) return place;
    if (!newest) newest = place;
  }
  return newest.value_or(0);
}

}  // namespace tearless::harness
