// A caching allocator for CPU tensors. An update allocates much the same sizes as the one before, but malloc() returns
// large blocks to the system when they are freed and pays a page fault for each page when it takes them again.
#pragma once

#include <cstdint>

namespace tearless::engine {

/// From now on the memory of a freed CPU tensor is retained for the next tensor that needs at least half of it; sizes
/// are rounded up by at most an eighth. Where the system has no memory left, all retained memory is returned to it
/// before an allocation fails. Call once, from main().
void cache_freed_memory();

/// Bytes that are retained and not in use.
int64_t cached_memory_bytes();

/// Peak resident set size of the process, in bytes.
int64_t peak_memory_bytes();

}  // namespace tearless::engine
