// Merged attention (DS eqs. 16–17; docs/spec/knobs.md §11.3), in the place of self-attention and cross-attention:
//   o = concat_heads(drop(softmax(q kᵀ / √d_h)) v_H) + M v_S,  output = o W_o + b_o,
// where q and v_S are projections of the decoder's rows, k and v_H of the encoder output, and row t of M v_S is the
// mean of v_S up to t. v_S and v_H have one W_v and b_v. It keeps the sum of v_S, so a position of search costs the
// same wherever it is.
#include "engine/model/sublayer.h"
#include "engine/ops/add_norm.h"
#include "engine/ops/linear.h"
#include "engine/ops/span_means.h"

namespace tearless::engine {
namespace {

class MergedAttention final : public Sublayer {
 public:
  /// Adds its keys and values to `source`.
  MergedAttention(const LayerScope& scope, SourceProjection& source)
      : d_model_(scope.options().d_model),
        heads_(scope.options().heads),
        query_(scope.linear("q", MatrixRole::kCrossQkv, d_model_, d_model_)),
        output_(scope.linear("o", MatrixRole::kAttentionOutput, d_model_, d_model_)),
        source_(source),
        keys_(source.add(scope, {"k", "v"})),
        weight_dropout_(scope.dropout("weights", scope.options().dropout.attention)) {}

  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override {
    const EncoderOutput& source = *inputs.encoder_output;
    const int64_t values = keys_ + d_model_;
    const Value q = linear(context.tape, x, query_.weight, query_.bias);
    const Value heads = attention(context.tape, {q, 0}, {source.projected, keys_}, {source.projected, values}, d_model_,
                                  heads_, source.spans, weight_dropout_.at(context));
    const Linear value = source_.map(context.tape, values);
    const Value own = linear(context.tape, x, value.weight, value.bias);
    const Value mean = running_means(context.tape, own, inputs.self, inputs.slot.rows());
    const Value sum = add_dropped(context.tape, heads, mean, Dropout::off(), inputs.rows);
    return linear(context.tape, sum, output_.weight, output_.bias);
  }

  int64_t slot_width() const override { return d_model_; }
  bool slot_is_wide() const override { return true; }

 private:
  int64_t d_model_, heads_;
  Linear query_, output_;  // [D, D]
  const SourceProjection& source_;
  int64_t keys_;  // column of the projected encoder output; the values follow
  DropoutSite weight_dropout_;
};

}  // namespace

std::unique_ptr<SublayerKind> matt_sublayer() {
  return std::make_unique<SublayerKind>(
      SublayerKind{.meaning = "merged attention (DS eq. 17): cross-attention plus the mean of the rows so far, of one "
                              "value map, in place of self_attention, cross_attention",
                   .reads_encoder_output = true,
                   .is_causal = true,
                   .make = make_sublayer<MergedAttention>});
}

}  // namespace tearless::engine
