// The environment of a run: that of the service which starts it, but for the variables that a sweep takes from its
// submission. These are the usual ones (kUsualVariables), and those that `[policy] environment` names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

/// Name → value.
using Variables = std::map<std::string, std::string>;

/// Those of a process, as it was started. Empty if they cannot be read.
Variables variables_of(int64_t pid, const std::filesystem::path& proc = "/proc");
/// Those of this process as they are now.
Variables own_variables();

/// What a sweep has taken from its submission.
struct SubmittedEnvironment {
  std::vector<std::string> names = {};  // of [policy] environment; may have * and ?
  Variables variables = {};             // the usual ones and those, as far as they were set
};
/// Of a submission from a process with the variables `all`. A value that is not UTF-8 is not taken.
SubmittedEnvironment submitted_environment(const Variables& all, const std::vector<std::string>& names);

/// Without the usual ones.
Variables named_only(const Variables& variables);

/// What a process with the variables `own` has to set (or to remove: no value) for a run.
std::map<std::string, std::optional<std::string>> changes_for(const SubmittedEnvironment& environment,
                                                              const Variables& own);

/// The names of the variables that differ between a submission and the service, and that the sweep does not take. Those
/// that belong to a terminal or a login, such as PWD, are not among them.
std::vector<std::string> not_taken(const SubmittedEnvironment& environment, const Variables& submission,
                                   const Variables& service);

void to_json(nlohmann::json& json, const SubmittedEnvironment& environment);
/// nlohmann::json::exception if a member is missing or of another type.
void from_json(const nlohmann::json& json, SubmittedEnvironment& environment);

}  // namespace tearless::harness
