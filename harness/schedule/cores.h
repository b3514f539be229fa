// The processor cores of this process.
#pragma once

namespace tearless::harness {

/// The cores that this process may use, at least 1. Under taskset or a container's CPU set, fewer than the machine has.
int available_cores();

}  // namespace tearless::harness
