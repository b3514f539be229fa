#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/memory_size.h"
#include "base/table_reader.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

// Of the classes in runs/states.h, those of which the tries are counted and can be limited.
constexpr auto kLimitedClasses = {"out_of_memory", "crashed", "stalled"};
constexpr int kMaxTries = 1000;
constexpr double kMaxMinutes = 1e6;
constexpr int kMaxGrace = 86'400;  // seconds

std::optional<int> whole_number(TableReader& reader, const std::string& key, int from, int to) {
  const std::optional<double> number = reader.number(key);
  if (!number) return std::nullopt;
  if (!(*number >= from && *number <= to) || *number != std::floor(*number)) {
    fail("{}: {} must be a whole number from {} to {}", reader.location(key), key, from, to);
  }
  return static_cast<int>(*number);
}

// Why `environment` may not have a name, one phrase; "" if it may.
std::string fault_of_variable(const std::string& name) {
  if (name == "CUDA_VISIBLE_DEVICES") return "the service gives each run its own";
  if (name.starts_with("TEARLESS_")) return "variables of tearless itself are not handed on";
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_*?";
  const bool is_name = !name.empty() && name.find_first_not_of(kAllowed) == std::string::npos;
  return is_name ? "" : "it is no name of a variable, nor one with * or ?, such as \"HF_*\"";
}

}  // namespace

GridPolicy load_policy(const toml::table* table, const std::string& file) {
  GridPolicy policy;
  if (!table) return policy;
  TableReader reader(*table, "[policy]", file);
  policy.stall_minutes = reader.number("stall_timeout");
  if (policy.stall_minutes && !(*policy.stall_minutes >= 0 && *policy.stall_minutes <= kMaxMinutes)) {
    fail("{}: stall_timeout must be minutes, 0 for never", reader.location("stall_timeout"));
  }
  policy.grace_seconds = whole_number(reader, "grace", 0, kMaxGrace);
  if (const auto memory = reader.text("memory")) {
    policy.memory_bytes = parse_memory(*memory);
    if (!policy.memory_bytes)
      fail("{}: memory = \"{}\" is not a size such as \"8 GiB\"", reader.location("memory"), *memory);
  }
  if (const toml::node* const same_device = reader.any("same_device")) {
    if (!same_device->is_boolean()) fail("{}: same_device must be true or false", reader.location("same_device"));
    policy.same_device = **same_device->as_boolean();
  }
  policy.environment = reader.texts("environment");
  for (const std::string& name : policy.environment) {
    if (const std::string fault = fault_of_variable(name); !fault.empty()) {
      fail("{}: environment names \"{}\": {}", reader.location("environment"), name, fault);
    }
  }
  const toml::table* tries = reader.table("tries");
  reader.refuse_leftovers();
  if (!tries) return policy;
  TableReader classes(*tries, "[policy.tries]", file);
  for (const char* name : kLimitedClasses) {
    if (const auto most = whole_number(classes, name, 1, kMaxTries)) policy.tries[name] = *most;
  }
  classes.refuse_leftovers();
  return policy;
}

}  // namespace tearless::harness
