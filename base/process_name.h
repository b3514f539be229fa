// Processes that are named once and for all: pids are reused, a pid with its start time and the machine's boot is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tearless {

/// The boot id of this machine.
std::string boot_id();
/// When a process started, in clock ticks since boot; nothing where there is no such process.
std::optional<int64_t> process_start_ticks(int64_t pid);

struct ProcessName {
  int64_t pid = 0;
  int64_t start_ticks = 0;
  std::string boot_id;

  /// The calling process.
  static ProcessName own();
  /// True while that very process exists on this machine (a zombie counts as gone).
  bool is_alive() const;
};

}  // namespace tearless
