// Average attention (Zhang et al. 2018; docs/spec/knobs.md §11.5): with a_t the mean of the input rows up to t,
//   aan_ffn: a ← W₂ drop(ReLU(W₁ a + b₁)) + b₂
//   [i, f] = [x; a] W_gᵀ + b_g,  output = σ(i) ⊙ x + σ(f) ⊙ a.
// It keeps the sum of its input rows.
#include "engine/model/sublayer.h"
#include "engine/ops/gates.h"
#include "engine/ops/linear.h"
#include "engine/ops/span_means.h"

namespace tearless::engine {
namespace {

class AverageAttention final : public Sublayer {
 public:
  /// `ffn`: on the mean, or null.
  AverageAttention(const LayerScope& scope, std::unique_ptr<Sublayer> ffn)
      : d_model_(scope.options().d_model),
        ffn_(std::move(ffn)),
        gate_(scope.linear("gate", MatrixRole::kFeedForward, 2 * d_model_, 2 * d_model_)) {}

  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override {
    Value mean = running_means(context.tape, x, inputs.self, inputs.slot.rows());
    if (ffn_) mean = ffn_->forward(context, mean, inputs);
    const Value both = join_columns(context.tape, x, mean);  // [T, 2 D]
    return gated_sum(context.tape, linear(context.tape, both, gate_.weight, gate_.bias), both);
  }

  int64_t slot_width() const override { return d_model_; }
  bool slot_is_wide() const override { return true; }

 private:
  int64_t d_model_;
  std::unique_ptr<Sublayer> ffn_;
  Linear gate_;  // [2 D, 2 D]
};

}  // namespace

std::unique_ptr<SublayerKind> aan_sublayer() {
  return std::make_unique<SublayerKind>(SublayerKind{
      .meaning = "average attention: the mean of the rows so far and the row itself, each with a gate, in place of "
                 "self_attention (Zhang et al. 2018)",
      .is_causal = true,
      .make = [](const LayerScope& scope, SourceProjection&) -> std::unique_ptr<Sublayer> {
        return std::make_unique<AverageAttention>(scope, nullptr);
      }});
}

std::unique_ptr<SublayerKind> aan_ffn_sublayer() {
  return std::make_unique<SublayerKind>(
      SublayerKind{.meaning = "as aan, with a feed-forward block on the mean",
                   .is_causal = true,
                   .make = [](const LayerScope& scope, SourceProjection& source) -> std::unique_ptr<Sublayer> {
                     return std::make_unique<AverageAttention>(
                         scope, sublayer_kinds().at("ffn").make(scope.in_sublayer("ffn"), source));
                   }});
}

}  // namespace tearless::engine
