// The rate of matmuls that this machine can reach: what an update is measured against.
#pragma once

namespace tearless::engine {

/// Floating-point operations per second of the fastest matmul of square fp32 matrices of 512 to 2048 rows, by any
/// matmul library of this build, on the processor with the current number of threads. Takes some seconds. Leaves the
/// automatic choice of the library in use.
double peak_operations_per_second();

}  // namespace tearless::engine
