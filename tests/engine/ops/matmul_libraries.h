// The matmul libraries of this machine, one after another.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "engine/ops/matmul.h"

namespace tearless::engine::test {

/// As main() of the engine arranges: before any test calls a matmul.
inline const bool kMatmulOrderIsFixed = (fix_matmul_order(), true);

/// Calls f with bf16 matmuls in use, where the processor has them.
inline void with_bf16_matmuls(const std::function<void()>& f) {
  if (!this_processor().bf16) return;
  use_bf16_matmuls(true);
  const testing::ScopedTrace trace(__FILE__, __LINE__, "matmuls by " + matmul_library_name());
  f();
  use_bf16_matmuls(false);
}

/// Calls f with each library in use that this machine has; afterwards the automatic choice is in use again.
inline void for_each_matmul_library(const std::function<void()>& f) {
  for (const MatmulLibrary library : {MatmulLibrary::kMkl, MatmulLibrary::kOpenBlas}) {
    if (library == MatmulLibrary::kOpenBlas && !why_no_openblas().empty()) continue;
    use_matmul_library(library);
    const testing::ScopedTrace trace(__FILE__, __LINE__, "matmuls by " + matmul_library_name());
    f();
  }
  use_matmul_library(std::nullopt);
}

}  // namespace tearless::engine::test
