// Initial scales of the weight matrices (knobs.md §7). Biases start at 0, norm gains as their kind says.
#pragma once

#include "engine/model/options.h"
#include "engine/model/parameters.h"

namespace tearless::engine {

enum class MatrixRole { kAttentionQkv, kAttentionOutput, kFeedForward };

/// For a matrix [fan_out, fan_in] of that role.
Initial initial_matrix(const ModelOptions& options, MatrixRole role, int64_t fan_in, int64_t fan_out);
/// For the rows of an embedding: N(0, d^-½), or U(±0.01) under FixNorm, where this number decides how fast directions
/// turn (knobs.md §5: keep it exactly).
Initial initial_embedding(const ModelOptions& options);

}  // namespace tearless::engine
