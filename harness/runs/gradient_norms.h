// Reads gradient_norms.f32 of a run directory (docs/statistics_files.md): the gradient norm of every update. It may
// have millions of values, which are not held in memory.
#pragma once

#include <cstdint>
#include <functional>

#include "base/run_directory.h"

namespace tearless::harness {

/// Calls `read` for each update, in order, from 1 on; not at all if there is no such file, as in a copy of results
/// alone that an older version made (base/omitted.h). UserError, before any call, for a file of a finished run
/// that ends within a value; of another run such a value is left out.
void read_gradient_norms(const RunDirectory& run, const std::function<void(int64_t update, double norm)>& read);

}  // namespace tearless::harness
