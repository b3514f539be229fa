// How often the kernel has killed for want of memory in the control group that we are in.
#pragma once

#include <cstdint>

namespace tearless::harness {

/// The count of "oom_kill" in the group's memory.events (cgroup v2) or memory.oom_control (v1), or in the file that
/// TEARLESS_MEMORY_EVENTS names; 0 where it cannot be read: a kill then counts as one from outside.
int64_t memory_kills();

}  // namespace tearless::harness
