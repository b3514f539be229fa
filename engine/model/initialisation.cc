#include "engine/model/initialisation.h"

#include <cmath>

namespace tearless::engine {

Initial initial_matrix(const ModelOptions& options, MatrixRole role, int64_t fan_in, int64_t fan_out) {
  const auto in = static_cast<double>(fan_in);
  auto out = static_cast<double>(fan_out);
  const bool attention = role != MatrixRole::kFeedForward;
  if (options.init == Init::kSmallInit) {
    // All four projections are drawn as parts of one 4d × d matrix (TwT §2.2).
    return {Initial::Kind::kNormal, std::sqrt(2.0 / (in + (attention ? 4 * out : out)))};
  }
  if (role == MatrixRole::kAttentionQkv && options.init_qkv_fan == QkvFan::kFused3) out *= 3;
  if (attention && options.init_qkv_fan == QkvFan::kFused4) out *= 4;
  if (options.init == Init::kXavierUniform) return {Initial::Kind::kUniform, std::sqrt(6.0 / (in + out))};
  return {Initial::Kind::kNormal, std::sqrt(2.0 / (in + out))};
}

Initial initial_embedding(const ModelOptions& options) {
  if (options.fix_norm) return {Initial::Kind::kUniform, 0.01};
  return {Initial::Kind::kNormal, 1.0 / std::sqrt(static_cast<double>(options.d_model))};
}

}  // namespace tearless::engine
