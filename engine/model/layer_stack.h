// A stack of equal layers on one residual stream. A layer is a list of sublayers, each inside its residual connection.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/residual.h"
#include "engine/model/sublayer.h"

namespace tearless::engine {

/// A sublayer that every layer of a stack has.
struct SublayerRecipe {
  std::string name;  // "ffn", a part of the names of its parameters
  std::function<std::unique_ptr<Sublayer>(const LayerScope&)> make;
};

class LayerStack {
 public:
  /// `after_layers` runs between the last layer and the final norm: it may declare what all layers share.
  LayerStack(const LayerScope& stack, int64_t layers, const std::vector<SublayerRecipe>& layer,
             const std::function<void()>& after_layers = {});

  /// x [T, D] → [T, D].
  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const;

  /// One decode step: x [N, D] → [N, D] (Sublayer::step). `caches`: from make_caches().
  Value step(const ForwardContext& context, const Value& x, const SublayerInputs& inputs, const CacheRows& written,
             std::vector<at::Tensor>& caches) const;
  /// One cache [rows, cache_width()] for each sublayer that has one, undefined for the others.
  std::vector<at::Tensor> make_caches(int64_t rows, const at::TensorOptions& options) const;

 private:
  struct Connected {
    std::unique_ptr<Sublayer> sublayer;
    ResidualConnection connection;
  };
  std::vector<Connected> sublayers_;  // of all layers, in order
  std::vector<NormOp> final_norms_;
};

/// The encoder: layers of self-attention and feed-forward.
LayerStack make_encoder(const LayerScope& root, int64_t layers);

}  // namespace tearless::engine
