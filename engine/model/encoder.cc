#include "engine/model/encoder.h"

#include "engine/model/feed_forward.h"
#include "engine/model/self_attention.h"

namespace tearless::engine {

LayerStack make_encoder(const LayerScope& root, int64_t layers) {
  return LayerStack(root.in_stack(Stack::kEncoder), layers,
                    {{"self_attention", [](const LayerScope& scope) { return std::make_unique<SelfAttention>(scope); }},
                     {"ffn", [](const LayerScope& scope) { return std::make_unique<FeedForward>(scope); }}});
}

}  // namespace tearless::engine
