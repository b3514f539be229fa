// All numbers that are trained, in one flat buffer; gradients in a second one of the same shape. Every parameter is a
// view, so clipping, Adam and checkpoints are one pass each.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/tape.h"

namespace tearless::engine {

/// The type that a model computes in. Parameters, their gradients and the optimiser are fp32 in both.
enum class Compute { kFp32, kBf16 };

/// How a parameter starts.
struct Initial {
  enum class Kind {
    kConstant,  // `scale` everywhere
    kUniform,   // U(-scale, scale)
    kNormal,    // N(0, scale): standard deviation
  };
  Kind kind = Kind::kConstant;
  double scale = 0;
};

struct ParameterSpec {
  std::string name;  // "encoder.1.ffn.w1.weight"
  std::vector<int64_t> shape;
  Initial initial;
  int64_t size() const;
};

int64_t total_size(const std::vector<ParameterSpec>& specs);

class Parameters {
 public:
  /// Initial values depend on (seed, name, element) alone: they are the same whatever other parameters there are.
  Parameters(std::vector<ParameterSpec> specs, uint32_t seed, const at::Device& device,
             Compute compute = Compute::kFp32);

  /// The parameter of that name; empty where the model has none.
  Value get(std::string_view name) const;
  /// Parameters that follow each other in the buffer, as one matrix stacked along the first axis.
  Value joined(const std::vector<std::string>& names) const;

  /// In the order of the buffer, which is that of the model but for sizes that are no multiple of 8: they come last.
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  at::Tensor& values() { return values_; }  // [P]
  const at::Tensor& values() const { return values_; }
  at::Tensor& gradients() { return gradients_; }  // [P]
  int64_t count() const { return values_.numel(); }

  /// The type of the rows that the model works on.
  at::ScalarType row_type() const { return low_.defined() ? at::kBFloat16 : at::kFloat; }
  /// [P] the values rounded to bf16, which products take; undefined under Compute::kFp32.
  at::Tensor& low() { return low_; }
  /// Gives every parameter its initial value again.
  void initialise();
  /// Rounds anew: to be called when the values were changed by another than the optimiser.
  void round();

 private:
  Value view(int64_t offset, const std::vector<int64_t>& shape) const;

  std::vector<ParameterSpec> specs_;
  uint32_t seed_;
  std::map<std::string, std::pair<size_t, int64_t>, std::less<>> places_;  // name → (spec, offset)
  at::Tensor values_, gradients_, low_;
};

}  // namespace tearless::engine
