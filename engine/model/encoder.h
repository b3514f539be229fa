// The encoder: layers of self-attention and feed-forward.
#pragma once

#include "engine/model/layer_stack.h"

namespace tearless::engine {

LayerStack make_encoder(const LayerScope& root, int64_t layers);

}  // namespace tearless::engine
