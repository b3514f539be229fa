// The initial distribution of each weight matrix and bias (docs/spec/knobs.md §7). Norm biases start at 0, norm gains
// at the value of their kind (engine/norm/norm.h).
#pragma once

#include "engine/model/options.h"
#include "engine/model/parameters.h"

namespace tearless::engine {

enum class Stack { kNone, kEncoder, kDecoder };
enum class MatrixRole { kSelfQkv, kCrossQkv, kAttentionOutput, kFeedForward, kOutput };

/// The place of a matrix in the model.
struct MatrixPlace {
  Stack stack = Stack::kNone;
  int64_t layer = 0;  // from 1 in its stack; 0: outside the layers
  MatrixRole role;
};

/// U(±√(6 / (fan_in + fan_out))).
Initial xavier_uniform(int64_t fan_in, int64_t fan_out);
/// U(±√(1 / fan_in)), which PyTorch gives weights and biases of linear and convolutional layers by default.
Initial torch_default(int64_t fan_in);

/// The initial distribution of a matrix [fan_out, fan_in].
Initial initial_matrix(const LayerOptions& options, const MatrixPlace& place, int64_t fan_in, int64_t fan_out);
/// The initial distribution of the bias beside a matrix [·, fan_in].
Initial initial_bias(const LayerOptions& options, MatrixRole role, int64_t fan_in);
/// The initial distribution of embedding rows: N(0, d^-½), of `joey` U(±√(6 / (d + V))), or U(±0.01) with FixNorm. Keep
/// 0.01 exactly: the initial length of a row decides how fast Adam turns it (docs/spec/knobs.md §5). fairseq's and
/// JoeyNMT's have 0 for PAD; of `txl` N(0, 0.02).
Initial initial_embedding(const LayerOptions& options, int64_t vocab_size);
/// The initial distribution of the vector that zero adds to its inputs: as of a d × d matrix (docs/spec/knobs.md §6).
Initial initial_input_vector(const LayerOptions& options);
/// The standard deviation of the initial gains of norms around the start of their kind: 0 but for `txl`.
double gain_deviation(const LayerOptions& options);
/// N(0, d^-½).
Initial normal_embedding(int64_t d_model);

}  // namespace tearless::engine
