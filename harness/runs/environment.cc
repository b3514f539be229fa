#include "harness/runs/environment.h"

#include <fmt/ranges.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/utf8.h"

namespace tearless::harness {
namespace {

// Where programs and their libraries are found, and how many threads those use.
constexpr const char* kUsualVariables[] = {"PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_*",   "PYTHON*", "LANG",
                                           "LC_*", "OMP_*",           "MKL_*",       "OPENBLAS_*"};
// What secrets are called, between underscores.
constexpr std::string_view kSecretParts[] = {"TOKEN",  "KEY",  "APIKEY",     "SECRET",      "PASSWORD",
                                             "PASSWD", "PASS", "CREDENTIAL", "CREDENTIALS", "AUTH"};
// Each run gets its own.
constexpr const char* kOwnVariables[] = {"CUDA_VISIBLE_DEVICES", "TEARLESS_*"};
// Of terminals, shells and logins.
constexpr const char* kVariablesOfTerminals[] = {
    "_",        "SHLVL",    "PWD",     "OLDPWD",   "SHELL",      "TERM*",         "COLORTERM",      "COLUMNS",
    "LINES",    "WINDOW*",  "PS?",     "PROMPT*",  "HIST*",      "LS_*",          "LESS*",          "PAGER",
    "EDITOR",   "VISUAL",   "DISPLAY", "WAYLAND*", "XAUTHORITY", "XDG_*",         "DBUS_*",         "SSH_*",
    "GPG_*",    "TMUX*",    "STY",     "VTE_*",    "GNOME_*",    "KONSOLE_*",     "KDE_*",          "DESKTOP_*",
    "VSCODE_*", "LOGNAME",  "USER",    "MAIL",     "SYSTEMD_*",  "INVOCATION_ID", "JOURNAL_STREAM", "MANAGERPID*",
    "BASH_*",   "DIRENV_*", "MAKE*",   "MFLAGS"};

bool matches(const char* pattern, const std::string& name) { return ::fnmatch(pattern, name.c_str(), 0) == 0; }
template <class Patterns>
bool matches_any(const Patterns& patterns, const std::string& name) {
  return std::any_of(std::begin(patterns), std::end(patterns),
                     [&](const char* pattern) { return matches(pattern, name); });
}

bool is_taken(const std::string& name, const std::vector<std::string>& names) {
  if (matches_any(kOwnVariables, name)) return false;
  return (matches_any(kUsualVariables, name) && !is_secret(name)) ||
         std::ranges::any_of(names, [&](const std::string& pattern) { return matches(pattern.c_str(), name); });
}

void add_variable(Variables& variables, std::string_view entry) {
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos || equals == 0) return;
  variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
}

void add(SubmittedEnvironment& environment, const std::string& name, const std::string& value) {
  if (is_secret(name)) {
    environment.secrets.insert(name);
  } else {
    environment.variables[name] = value;
  }
}

}  // namespace

Variables variables_of(int64_t pid, const std::filesystem::path& proc) {
  std::ifstream in(proc / std::to_string(pid) / "environ", std::ios::binary);
  Variables variables;
  for (std::string entry; std::getline(in, entry, '\0');) add_variable(variables, entry);
  return variables;
}

Variables own_variables() {
  Variables variables;
  for (char** entry = environ; *entry; ++entry) add_variable(variables, *entry);
  return variables;
}

bool is_secret(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (size_t begin = 0; begin <= upper.size();) {
    const size_t end = std::min(upper.find('_', begin), upper.size());
    if (std::ranges::find(kSecretParts, std::string_view(upper).substr(begin, end - begin)) != std::end(kSecretParts))
      return true;
    begin = end + 1;
  }
  return false;
}

SubmittedEnvironment submitted_environment(const Variables& all, const std::vector<std::string>& names) {
  SubmittedEnvironment environment{.names = names};
  for (const std::string& name : names) {
    if (is_secret(name) && name.find_first_of("*?") == std::string::npos) environment.secrets.insert(name);
  }
  for (const auto& [name, value] : all) {
    if (!is_taken(name, names) || !tearless::valid_utf8(name) || !tearless::valid_utf8(value)) continue;
    add(environment, name, value);
  }
  return environment;
}

bool takes(const std::vector<std::string>& names, const std::string& variable) { return is_taken(variable, names); }

Variables secrets_in(const Variables& own, const SubmittedEnvironment& environment) {
  Variables found = own;
  std::erase_if(found, [&](const auto& variable) {
    return !environment.secrets.contains(variable.first) || !tearless::valid_utf8(variable.second);
  });
  return found;
}

std::string secrets_not_in(const Variables& own, const SubmittedEnvironment& environment) {
  std::set<std::string> missing = environment.secrets;
  for (const auto& [name, value] : secrets_in(own, environment)) missing.erase(name);
  return fmt::format("{}", fmt::join(missing, ", "));
}

Variables named_only(const Variables& variables) {
  Variables named = variables;
  std::erase_if(named, [](const auto& variable) { return matches_any(kUsualVariables, variable.first); });
  return named;
}

std::map<std::string, std::optional<std::string>> changes_for(const SubmittedEnvironment& environment,
                                                              const Variables& own) {
  std::map<std::string, std::optional<std::string>> changes(environment.variables.begin(), environment.variables.end());
  for (const auto& [name, value] : own) {
    const bool stays = environment.secrets.contains(name) || !is_taken(name, environment.names);
    if (!stays) changes.emplace(name, std::nullopt);
  }
  return changes;
}

std::vector<std::string> not_taken(const SubmittedEnvironment& environment, const Variables& submission,
                                   const Variables& service) {
  std::set<std::string> names;
  for (const auto& [name, value] : submission) names.insert(name);
  for (const auto& [name, value] : service) names.insert(name);
  const auto value_in = [](const Variables& variables, const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  std::erase_if(names, [&](const std::string& name) {
    return is_taken(name, environment.names) || matches_any(kOwnVariables, name) ||
           matches_any(kVariablesOfTerminals, name) || value_in(submission, name) == value_in(service, name);
  });
  return {names.begin(), names.end()};
}

void to_json(nlohmann::json& json, const SubmittedEnvironment& environment) {
  json = {{"names", environment.names}, {"variables", environment.variables}};
  if (!environment.secrets.empty()) json["secrets"] = environment.secrets;
}

void from_json(const nlohmann::json& json, SubmittedEnvironment& environment) {
  json.at("names").get_to(environment.names);
  environment.secrets = json.value("secrets", std::set<std::string>());
  for (const auto& [name, value] : json.at("variables").get<Variables>()) add(environment, name, value);
}

}  // namespace tearless::harness
