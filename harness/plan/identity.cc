#include "harness/plan/identity.h"

#include <fmt/format.h>

#include <map>

#include "base/run_directory.h"
#include "base/settings.h"

namespace tearless::harness {

void add_identity(std::vector<CheckAnswer>& answers, const std::string& identity) {
  if (identity.empty()) return;
  const std::string line = fmt::format("{} = {}\n", kProgramIdentity, toml_value(identity));
  std::map<std::string, std::string> ids;  // the program's → ours
  for (CheckAnswer& answer : answers) {
    if (!answer.error.empty()) continue;
    Run& run = answer.run;
    std::string& id = ids[run.id];
    if (run.settings.empty()) {  // its data are missing, and the id is provisional
      id = run_id(run.id + line);
    } else {
      if (const std::string of = derived_from(run.settings); ids.contains(of)) {
        run.settings.replace(run.settings.find(of, run.settings.find("derived.of = ")), of.size(), ids.at(of));
      }
      if (!run.settings.ends_with('\n')) run.settings += '\n';
      run.settings += line;
      id = run_id(run.settings);
    }
    run.id = id;
  }
}

std::string identity_in(const std::string& settings) {
  const auto values = parse_toml_settings(settings, "run.toml").values;
  const auto identity = values.find(std::string(kProgramIdentity));
  return identity == values.end() ? "" : identity->second.get<std::string>();
}

}  // namespace tearless::harness
