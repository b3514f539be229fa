// A stack of equal layers on one residual stream. A layer is a list of sublayers (sublayer.h), each inside its residual
// connection. forward() runs over whole sentences or segments (training, evaluation); with a state also over one
// position of each hypothesis (search).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/residual.h"
#include "engine/model/sublayer.h"

namespace tearless::engine {

class LayerStack {
 public:
  /// `sublayers`: of each layer, as sublayers_of() takes them.
  LayerStack(const LayerScope& stack, int64_t layers, std::string_view sublayers);

  /// A sublayer that a model makes by itself, with the name of its parameters.
  struct Part {
    std::string name;
    std::function<std::unique_ptr<Sublayer>(const LayerScope& scope)> make;
  };
  LayerStack(const LayerScope& stack, int64_t layers, const std::vector<Part>& layer);

  /// EncoderOutput::projected of an encoder output [S, D]. REQUIRES: a sublayer reads it.
  Value project(const ForwardContext& context, const Value& encoder_output) const {
    return source_->forward(context, encoder_output);
  }
  /// x [T, D] → [T, D]. With a state its rows `state->written` are written, and inputs.self refers to all of its rows.
  /// Only the stream x is normed by the layers: under `pre` the encoder output has passed the encoder's final norm.
  Value forward(const ForwardContext& context, const Value& x, SublayerInputs inputs,
                const StackState* state = nullptr) const;
  /// A state of that many rows, none of which is written yet. `constant`: parameters do not change between its passes.
  StackState make_state(int64_t rows, const at::TensorOptions& options, bool constant = false) const;

 private:
  void add_layers(const LayerScope& stack, int64_t layers, const std::vector<Part>& layer);

  struct Connected {
    std::unique_ptr<Sublayer> sublayer;
    ResidualConnection connection;
  };
  std::unique_ptr<SourceProjection> source_;  // at a fixed address: sublayers refer to it
  std::vector<Connected> sublayers_;          // of all layers, in order
  std::vector<NormOp> final_norms_;
};

/// About how many numbers of a row one layer with these sublayers saves for backward: connections and projections 10 d,
/// feed-forward 3 f, and as much again for each sublayer after the second.
int64_t saved_numbers(const LayerOptions& options, std::string_view sublayers);

}  // namespace tearless::engine
