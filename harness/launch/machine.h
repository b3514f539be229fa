// What this process may use of the machine: cores and memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

namespace tearless::harness {

/// The numbers of the CPU cores that this process may use, at least one. Under taskset or a container's CPU set, fewer
/// than the machine has.
std::vector<int> cores_of_process();

/// The machine's memory in bytes, or the limit of this process's control group if that is less. `proc` and `cgroups`
/// are where the kernel's file systems are mounted. 0 if neither can be read.
int64_t memory_of_process(const std::filesystem::path& proc = "/proc",
                          const std::filesystem::path& cgroups = "/sys/fs/cgroup");

/// The memory that only these processes use, in bytes: without what files share with others, such as libraries. Those
/// that have ended count nothing.
int64_t private_memory_of(const std::set<int64_t>& pids, const std::filesystem::path& proc = "/proc");

}  // namespace tearless::harness
