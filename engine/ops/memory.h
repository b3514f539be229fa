// Memory of tensors, kept from one step to the next. A step asks for the same sizes as the one before; the C library
// gives large blocks back to the system and takes them again, page by page, at each.
#pragma once

#include <cstdint>

namespace tearless::engine {

/// From now on memory that a CPU tensor frees is kept for the next tensor of about its size (at most an eighth larger).
/// When the system has no more, what is kept is given back before the allocation fails. Call once, from main().
void keep_freed_memory();

/// Bytes that are kept and not in use.
int64_t kept_memory_bytes();

/// The most memory that the process has held so far, of all kinds, in bytes.
int64_t peak_memory_bytes();

}  // namespace tearless::engine
