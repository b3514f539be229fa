#include "engine/model/layer_stack.h"

#include <ATen/ops/empty.h>

#include "engine/model/feed_forward.h"
#include "engine/model/self_attention.h"

namespace tearless::engine {

LayerStack::LayerStack(const LayerScope& stack, int64_t layers, const std::vector<SublayerRecipe>& layer,
                       const std::function<void()>& after_layers) {
  for (int64_t l = 1; l <= layers; ++l) {
    for (const SublayerRecipe& recipe : layer) {
      const LayerScope scope = stack.in_layer(l).in_sublayer(recipe.name);
      const bool last = l == layers && &recipe == &layer.back();
      std::unique_ptr<Sublayer> sublayer = recipe.make(scope);
      sublayers_.push_back({std::move(sublayer), make_connection(scope, last)});
    }
  }
  if (after_layers) after_layers();
  final_norms_ = make_final_norms(stack);
}

Value LayerStack::forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const {
  Residual stream(context, x, inputs.rows);
  for (const auto& [sublayer, connection] : sublayers_) {
    stream.add(connection, sublayer->forward(context, stream.input(connection), inputs));
  }
  return stream.output(final_norms_);
}

Value LayerStack::step(const ForwardContext& context, const Value& x, const SublayerInputs& inputs,
                       const CacheRows& written, std::vector<at::Tensor>& caches) const {
  Residual stream(context, x, inputs.rows);
  for (size_t i = 0; i < sublayers_.size(); ++i) {
    const auto& [sublayer, connection] = sublayers_[i];
    stream.add(connection, sublayer->step(context, stream.input(connection), inputs, written, caches[i]));
  }
  return stream.output(final_norms_);
}

std::vector<at::Tensor> LayerStack::make_caches(int64_t rows, const at::TensorOptions& options) const {
  std::vector<at::Tensor> caches;
  for (const auto& [sublayer, connection] : sublayers_) {
    const int64_t width = sublayer->cache_width();
    caches.push_back(width > 0 ? at::empty({rows, width}, options) : at::Tensor());
  }
  return caches;
}

LayerStack make_encoder(const LayerScope& root, int64_t layers) {
  return LayerStack(root.in_stack(Stack::kEncoder), layers,
                    {{"self_attention", [](const LayerScope& scope) { return std::make_unique<SelfAttention>(scope); }},
                     {"ffn", [](const LayerScope& scope) { return std::make_unique<FeedForward>(scope); }}});
}

}  // namespace tearless::engine
