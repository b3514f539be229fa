#include "engine/model/initialisation.h"

#include <cmath>

#include "engine/ops/packed_rows.h"

namespace tearless::engine {

namespace {

constexpr double kTxlDeviation = 0.02;

bool is_qkv(MatrixRole role) { return role == MatrixRole::kSelfQkv || role == MatrixRole::kCrossQkv; }

/// How many projections of attention Xavier's fan-out counts as one stacked matrix.
int64_t fused(QkvFan fan, MatrixRole role) {
  const bool qkv = is_qkv(role);
  switch (fan) {
    case QkvFan::kSeparate:
      return 1;
    case QkvFan::kFused3:
      return qkv ? 3 : 1;
    case QkvFan::kFused3Self:
      return role == MatrixRole::kSelfQkv ? 3 : 1;
    case QkvFan::kFused4:
      return qkv || role == MatrixRole::kAttentionOutput ? 4 : 1;
  }
  return 1;
}

/// The factor of Xavier uniform's bound (docs/spec/knobs.md §7.1).
double depth_factor(const DsInitOptions& options, const MatrixPlace& place) {
  const bool scaled =
      place.layer > 0 && (options.stacks == DsInitOptions::Stacks::kBoth ||
                          (options.stacks == DsInitOptions::Stacks::kEncoder) == (place.stack == Stack::kEncoder));
  if (!scaled) return 1;
  const auto l = static_cast<double>(place.layer);
  return options.form == DsInitOptions::Form::kPaper ? options.alpha / std::sqrt(l)
                                                     : std::sqrt(options.alpha) * std::pow(l, -0.25);
}

}  // namespace

Initial xavier_uniform(int64_t fan_in, int64_t fan_out) {
  return {Initial::Kind::kUniform, std::sqrt(6.0 / static_cast<double>(fan_in + fan_out))};
}

Initial torch_default(int64_t fan_in) {
  return {Initial::Kind::kUniform, 1.0 / std::sqrt(static_cast<double>(fan_in))};
}

Initial initial_matrix(const LayerOptions& options, const MatrixPlace& place, int64_t fan_in, int64_t fan_out) {
  const auto xavier_normal = [&](int64_t out) {
    return Initial{Initial::Kind::kNormal, std::sqrt(2.0 / static_cast<double>(fan_in + out))};
  };
  if (options.init == Init::kSmallInit) {
    // All four projections of attention are drawn as parts of one 4d × d matrix (TwT §2.2).
    return xavier_normal(fan_out * fused(QkvFan::kFused4, place.role));
  }
  if (options.init == Init::kTorchDefault || options.init == Init::kKaiming) return torch_default(fan_in);
  if (options.init == Init::kTxl) return {Initial::Kind::kNormal, kTxlDeviation};
  if (options.init == Init::kNormal) return {Initial::Kind::kNormal, options.init_std};
  if (options.init == Init::kJoey) return xavier_uniform(fan_in, fan_out);
  if (options.init == Init::kKaimingReleased) {
    const bool of_attention = place.role != MatrixRole::kFeedForward && place.role != MatrixRole::kOutput;
    return of_attention ? torch_default(fan_in) : xavier_uniform(fan_in, fan_out);
  }
  // fairseq's gain of 1/√2 for q, k and v is what stacking them in one matrix makes of gain 1.
  if (is_fairseq(options.init)) return xavier_uniform(fan_in, fan_out * fused(QkvFan::kFused3, place.role));
  const int64_t out = fan_out * fused(options.init_qkv_fan, place.role);
  if (options.init == Init::kXavierNormal) return xavier_normal(out);
  const Initial uniform = xavier_uniform(fan_in, out);
  if (options.init == Init::kXavierUniform) return uniform;
  return {Initial::Kind::kUniform, uniform.scale * depth_factor(options.ds_init, place)};
}

Initial initial_bias(const LayerOptions& options, MatrixRole role, int64_t fan_in) {
  const bool drawn = options.init == Init::kTorchDefault || (options.init == Init::kFairseq09 && is_qkv(role));
  return drawn ? torch_default(fan_in) : Initial{};
}

Initial initial_embedding(const LayerOptions& options, int64_t vocab_size) {
  const bool joey = options.init == Init::kJoey;
  Initial initial = options.fix_norm             ? Initial{Initial::Kind::kUniform, 0.01}
                    : options.init == Init::kTxl ? Initial{Initial::Kind::kNormal, kTxlDeviation}
                    : joey                       ? xavier_uniform(options.d_model, vocab_size)
                                                 : normal_embedding(options.d_model);
  if (joey || is_fairseq(options.init)) initial.zero_row = kPad;
  return initial;
}

Initial initial_input_vector(const LayerOptions& options) {
  return initial_matrix(options, {.role = MatrixRole::kOutput}, options.d_model, options.d_model);
}

double gain_deviation(const LayerOptions& options) { return options.init == Init::kTxl ? kTxlDeviation : 0; }

Initial normal_embedding(int64_t d_model) {
  return {Initial::Kind::kNormal, 1.0 / std::sqrt(static_cast<double>(d_model))};
}

}  // namespace tearless::engine
