// tearless-engine settings: prints docs/engine_settings.md, made from the option structs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/task/run_options.h"

namespace tearless::engine {
namespace {

std::string limits(const DescribedField& f) {
  if (!f.field.choices.empty()) return fmt::format("{}", fmt::join(f.field.choices, ", "));
  const bool low = std::isfinite(f.field.min);
  const bool high = std::isfinite(f.field.max);
  if (low && high) return fmt::format("{} … {}", f.field.min, f.field.max);
  if (low) return fmt::format("≥ {}", f.field.min);
  if (high) return fmt::format("≤ {}", f.field.max);
  return f.type;
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\|");
  return text;
}

}  // namespace

Action command_settings(CLI::App&) {
  return [] {
    RunOptions options;
    fmt::print(
        "# Engine settings\n\nMade by `tearless-engine settings` from the option structs: do not edit. Settings marked "
        "*local* never enter a "
        "run's identity.\n");
    std::string table;
    for (const DescribedField& f : list_settings(description_of(options))) {
      const std::string head = f.key.substr(0, f.key.rfind('.'));
      if (head != table) {
        table = head;
        fmt::print("\n## [{}]\n\n| key | default | values | meaning |\n|---|---|---|---|\n", table);
      }
      fmt::print("| `{}` | {} | {} | {}{} |\n", f.field.key,
                 f.value.is_null() ? "unset" : "`" + toml_value(f.value) + "`", cell(limits(f)), cell(f.field.meaning),
                 f.field.identity == Identity::kLocal ? " *(local)*" : "");
    }
    return static_cast<int>(kExitDone);
  };
}

}  // namespace tearless::engine
