// A place in a Transformer while it is constructed: a Scope that knows which stack, layer and sublayer it is, and the
// options of the layers.
//
//   LayerScope root(parameters, options, dropout_seed)   ""
//   root.in_stack(Stack::kEncoder)                       "encoder"
//        .in_layer(1)                                    "encoder.1"
//        .in_sublayer("ffn")                             "encoder.1.ffn"
//        .linear("w1", role, d_ff, d_model)              declares encoder.1.ffn.w1.weight and encoder.1.ffn.w1.bias
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "engine/model/initialisation.h"
#include "engine/model/options.h"
#include "engine/model/scope.h"

namespace tearless::engine {

class LayerScope : public Scope {
 public:
  /// Borrows `parameters` and `options`.
  LayerScope(Parameters& parameters, const LayerOptions& options, uint32_t dropout_seed)
      : Scope(parameters, dropout_seed), options_(options) {}

  LayerScope in_stack(Stack stack) const;
  /// `number`: from 1.
  LayerScope in_layer(int64_t number) const;
  LayerScope in_sublayer(const std::string& name) const;

  const LayerOptions& options() const { return options_; }
  Stack stack() const { return stack_; }
  int64_t layer() const { return layer_; }  // from 1; 0: outside the layers

  /// Declares a linear map `part` of this place.
  Linear linear(const char* part, MatrixRole role, int64_t out, int64_t in) const;
  /// Declares linear maps of the same input as one: the weights of all parts stacked, then their biases.
  Linear linear(std::initializer_list<const char*> parts, MatrixRole role, int64_t out, int64_t in) const;
  /// The two parameters of a linear map, not yet declared.
  ParameterSpec weight(const char* part, MatrixRole role, int64_t out, int64_t in) const;
  ParameterSpec bias(const char* part, MatrixRole role, int64_t out, int64_t in) const;

 private:
  const LayerOptions& options_;
  Stack stack_ = Stack::kNone;
  int64_t layer_ = 0;
};

}  // namespace tearless::engine
