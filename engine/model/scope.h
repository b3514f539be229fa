// A place in the model while the model is constructed: it declares the parameters of that place under their names, and
// gives it its random streams. What a Transformer's place has besides: layer_scope.h.
//
//   Scope root(parameters, dropout_seed)                    ""
//   root.inside("conv1")                                    "conv1"
//       .linear({out, in}, weight, bias)                    declares conv1.weight and conv1.bias
//       .norm(chosen_norm, width)                           declares conv1.norm.gain and conv1.norm.bias
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/forward_context.h"
#include "engine/model/parameters.h"
#include "engine/norm/norm.h"

namespace tearless::engine {

/// The parameters of x Wᵀ + b.
struct Linear {
  Value weight;  // [out, in]
  Value bias;    // [out]
};

class Scope {
 public:
  /// Borrows `parameters`.
  Scope(Parameters& parameters, uint32_t dropout_seed) : parameters_(parameters), dropout_seed_(dropout_seed) {}

  Scope inside(const std::string& part) const;

  Parameters& parameters() const { return parameters_; }
  /// The name of this place: "encoder.1.ffn".
  const std::string& name() const { return name_; }

  /// Declares a parameter `part` of this place.
  Value declare(const char* part, std::vector<int64_t> shape, const Initial& initial) const;
  /// Declares the linear map of this place, from `in` to `out` numbers, with these initial values.
  Linear linear(int64_t out, int64_t in, const Initial& weight, const Initial& bias) const;
  /// Declares the parameters of a norm of rows of that width, those that its kind has: norm.gain and norm.bias. The
  /// gain starts at the value of its kind, with a deviation that is normally distributed.
  NormOp norm(const ChosenNorm& norm, int64_t width, double gain_deviation = 0) const;

  /// The dropout of this place, or of its part `part`.
  DropoutSite dropout(double probability) const { return {probability, dropout_seed_, name_}; }
  DropoutSite dropout(const char* part, double probability) const { return {probability, dropout_seed_, named(part)}; }

 protected:
  std::string named(const std::string& part) const { return name_.empty() ? part : name_ + "." + part; }
  void enter(const std::string& part) { name_ = named(part); }

 private:
  Parameters& parameters_;
  uint32_t dropout_seed_;
  std::string name_;
};

/// What a parameter is called as a learned length, "g.encoder.1.ffn"; "" if it is not the scalar gain of a norm.
std::string learned_length(const ParameterSpec& spec);

/// The gain of every norm with a scalar gain, by name and in model order: ("g.encoder.1.ffn", 22.6)
/// (docs/spec/training.md §7.2).
std::vector<std::pair<std::string, double>> learned_lengths(const Parameters& parameters);

}  // namespace tearless::engine
