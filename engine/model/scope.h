// A place in the model while the model is constructed: which stack, layer and sublayer. It declares the parameters of
// that place under their names, and gives it its options and random streams.
//
//   Scope root(parameters, options, dropout_seed)        ""
//   root.in_stack(Stack::kEncoder)                       "encoder"
//        .in_layer(1)                                    "encoder.1"
//        .in_sublayer("ffn")                             "encoder.1.ffn"
//        .linear("w1", role, d_ff, d_model)              declares encoder.1.ffn.w1.weight and encoder.1.ffn.w1.bias
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/model/forward_context.h"
#include "engine/model/initialisation.h"
#include "engine/model/options.h"
#include "engine/model/parameters.h"

namespace tearless::engine {

/// The parameters of x Wᵀ + b.
struct Linear {
  Value weight;  // [out, in]
  Value bias;    // [out]
};

class Scope {
 public:
  /// Borrows `parameters` and `options`.
  Scope(Parameters& parameters, const LayerOptions& options, uint32_t dropout_seed)
      : parameters_(parameters), options_(options), dropout_seed_(dropout_seed) {}

  Scope in_stack(Stack stack) const;
  /// `number`: from 1.
  Scope in_layer(int64_t number) const;
  Scope in_sublayer(const std::string& name) const;

  const LayerOptions& options() const { return options_; }
  Stack stack() const { return stack_; }
  int64_t layer() const { return layer_; }  // from 1; 0: outside the layers
  Parameters& parameters() const { return parameters_; }

  /// Declares a parameter `part` of this place.
  Value declare(const char* part, std::vector<int64_t> shape, const Initial& initial) const;
  /// Declares a linear map.
  Linear linear(const char* part, MatrixRole role, int64_t out, int64_t in) const;
  /// Declares linear maps of the same input as one: the weights of all parts stacked, then their biases.
  Linear linear(std::initializer_list<const char*> parts, MatrixRole role, int64_t out, int64_t in) const;
  /// The two parameters of a linear map, not yet declared.
  ParameterSpec weight(const char* part, MatrixRole role, int64_t out, int64_t in) const;
  ParameterSpec bias(const char* part, int64_t out) const;

  /// The dropout of this place, or of its part `part`.
  DropoutSite dropout(double probability) const { return {probability, dropout_seed_, name_}; }
  DropoutSite dropout(const char* part, double probability) const { return {probability, dropout_seed_, named(part)}; }

 private:
  Scope inside(const std::string& part) const;
  std::string named(const std::string& part) const { return name_.empty() ? part : name_ + "." + part; }

  Parameters& parameters_;
  const LayerOptions& options_;
  uint32_t dropout_seed_;
  Stack stack_ = Stack::kNone;
  int64_t layer_ = 0;
  std::string name_;
};

}  // namespace tearless::engine
