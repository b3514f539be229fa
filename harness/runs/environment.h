// The environment of a run: that of the service which starts it, but for the variables that a sweep takes from its
// submission. These are the usual ones (kUsualVariables), and those that `[policy] environment` names. The values of
// secrets are in no file: they go over the service's socket and stay in its memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tearless::harness {

/// Name → value.
using Variables = std::map<std::string, std::string>;

/// Those of a process, as it was started. Empty if they cannot be read.
Variables variables_of(int64_t pid, const std::filesystem::path& proc = "/proc");
/// Those of this process as they are now.
Variables own_variables();

/// True for a variable of which a part between underscores is TOKEN, KEY, APIKEY, SECRET, PASSWORD, PASSWD, PASS,
/// CREDENTIAL, CREDENTIALS or AUTH, such as HF_TOKEN. TOKENIZERS_PARALLELISM is none.
bool is_secret(std::string_view name);

/// What a sweep has taken from its submission.
struct SubmittedEnvironment {
  std::vector<std::string> names = {};  // of [policy] environment; may have * and ?
  Variables variables = {};             // the usual ones and those, as far as they were set and are no secrets
  std::set<std::string> secrets = {};   // names of those that are, and of those that are named without * and ?
};
/// Of a submission from a process with the variables `all`. A value that is not UTF-8 is not taken.
SubmittedEnvironment submitted_environment(const Variables& all, const std::vector<std::string>& names);

/// Without the usual ones.
Variables named_only(const Variables& variables);

/// True if [policy] environment with these `names` takes the variable.
bool takes(const std::vector<std::string>& names, const std::string& variable);

/// Of the secrets of `environment` those that `own` has.
Variables secrets_in(const Variables& own, const SubmittedEnvironment& environment);
/// The others, as text: "HF_TOKEN, WANDB_API_KEY"; "" if there are none.
std::string secrets_not_in(const Variables& own, const SubmittedEnvironment& environment);

/// What a process with the variables `own` has to set (or to remove: no value) for a run. Secrets stay as they are.
std::map<std::string, std::optional<std::string>> changes_for(const SubmittedEnvironment& environment,
                                                              const Variables& own);

/// The names of the variables that differ between a submission and the service, and that the sweep does not take. Those
/// that belong to a terminal or a login, such as PWD, are not among them.
std::vector<std::string> not_taken(const SubmittedEnvironment& environment, const Variables& submission,
                                   const Variables& service);

void to_json(nlohmann::json& json, const SubmittedEnvironment& environment);
/// Of a sweep of an older build, which kept the values of secrets, the names alone. nlohmann::json::exception if a
/// member is missing or of another type.
void from_json(const nlohmann::json& json, SubmittedEnvironment& environment);

}  // namespace tearless::harness
