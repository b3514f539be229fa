// Unique names of processes, and facts of the calling one. The kernel reuses pids, but never a pid with the same start
// time and boot id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tearless {

/// The kernel's random id of the current boot.
std::string boot_id();

/// The start time of a process, in clock ticks since boot; nullopt if there is no such process.
std::optional<int64_t> process_start_ticks(int64_t pid);

/// True if the calling process ignores the signal, as nohup has it started.
bool is_ignored(int signal);

struct ProcessName {
  int64_t pid = 0;
  int64_t start_ticks = 0;
  std::string boot_id;

  /// The calling process.
  static ProcessName own();
  /// True while this process, not a later one with its pid, exists on this machine. A zombie counts as ended.
  bool is_alive() const;
  /// True while it is stopped (SIGSTOP, Ctrl-Z). One that is traced is not.
  bool is_stopped() const;
};

}  // namespace tearless
