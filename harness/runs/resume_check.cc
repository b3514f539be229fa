#include "harness/runs/resume_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/omitted.h"
#include "base/sealed_json.h"
#include "base/words.h"

namespace tearless::harness {

std::vector<std::string> differences_between(const RunDirectory& undisturbed, const RunDirectory& resumed) {
  const Done expected = read_done(undisturbed).value(), found = read_done(resumed).value();
  const auto end_of = [](const Done& done) { return std::tie(done.outcome, done.step, done.reason); };
  std::set<std::string> names = {"metrics.jsonl", "scores.json"};
  for (const Done& done : {expected, found}) {
    for (const auto& [name, checksum] : done.files) names.insert(name);
  }
  const Omitted omitted = read_omitted(undisturbed);
  std::vector<std::string> differences;
  if (end_of(expected) != end_of(found)) differences.emplace_back("DONE");
  for (const std::string& name : names) {
    const auto text = read_if_there(undisturbed.root() / name), other = read_if_there(resumed.root() / name);
    if (text == other) continue;
    const auto lacking = text ? omitted.end() : omitted.find(name);
    if (lacking != omitted.end() && other && lacking->second.sha256 == sha256(*other)) continue;
    differences.push_back(name);
    if (!text || !other) continue;
    const auto same = std::mismatch(text->begin(), text->end(), other->begin(), other->end()).first;
    differences.back() += name.ends_with(".f32")
                              ? fmt::format(" from value {}", (same - text->begin()) / sizeof(float) + 1)
                              : fmt::format(" from line {}", std::count(text->begin(), same, '\n') + 1);
  }
  return differences;
}

std::string origin_of(const AttemptRecord& attempt) {
  return fmt::format("{} {} {}", attempt.version, attempt.numerics, machine_of(attempt));
}

std::optional<ResumeCheck> read_resume_check(const RunDirectory& run) {
  if (!std::filesystem::exists(run.resume_check())) return std::nullopt;
  try {
    if (const auto record = read_sealed(run.resume_check())) return record->get<ResumeCheck>();
  } catch (const nlohmann::json::exception&) {
  }
  fail("{} is damaged; delete it, and verify the run again: tearless verify-resume {}", run.resume_check().string(),
       run.id());
}

std::string sentence_of(const ResumeCheck& check) {
  const bool is_equal = check.outcome == "equal";
  const std::string where = fmt::format("{}", fmt::join(check.differences, ", "));
  if (check.attempt > 0) {
    return fmt::format("{} the result of attempt {}, which was given up and trained on elsewhere",
                       is_equal ? "equal to" : fmt::format("DIFFERENT in {} from", where), check.attempt);
  }
  std::vector<std::string> stops;
  for (const TrainingStop& stop : check.stops) {
    stops.push_back(fmt::format("{} at {}{}", stop.signal, stops.empty() ? "update " : "", stop.update));
  }
  return fmt::format("{} after {} ({}; seed {}){}", is_equal ? "equal" : "DIFFERENT",
                     counted(static_cast<int64_t>(stops.size()), "stop"), fmt::join(stops, ", "), check.seed,
                     where.empty() ? "" : " in " + where);
}

}  // namespace tearless::harness
