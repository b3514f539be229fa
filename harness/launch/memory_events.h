// Counts the kills of the kernel's OOM killer in this process's control group.
#pragma once

#include <cstdint>

namespace tearless::harness {

/// The counter "oom_kill" in the group's memory.events (cgroup v2) or memory.oom_control (v1), or in the file that the
/// environment variable TEARLESS_MEMORY_EVENTS names. 0 if it cannot be read: OOM kills then count as kKilled.
int64_t memory_kills();

}  // namespace tearless::harness
