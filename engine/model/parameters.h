// The trained parameters as views into one flat fp32 buffer, and their gradients in a second one of the same layout.
// Clipping, Adam and checkpoints process a whole buffer in one pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/tape.h"

namespace tearless::engine {

/// The data type of activations. Parameters, gradients and the optimiser's moments are fp32 in both cases.
enum class RowPrecision { kFp32, kBf16 };

/// The initial distribution of a parameter.
struct Initial {
  enum class Kind {
    kConstant,  // every element is `scale`
    kUniform,   // U(-scale, scale)
    kNormal,    // N(0, scale), `scale` the standard deviation
  };
  Kind kind = Kind::kConstant;
  double scale = 0;
};

/// A parameter of the model before it is allocated.
struct ParameterSpec {
  std::string name;  // "encoder.1.ffn.w1.weight"
  std::vector<int64_t> shape;
  Initial initial;
  int64_t size() const;  // number of elements
};

/// The number of elements of all parameters together.
int64_t total_size(const std::vector<ParameterSpec>& specs);

class Parameters {
 public:
  /// Allocates both buffers on `device` and initialises the parameters. An initial value depends on (seed, parameter
  /// name, element index) alone, not on the other parameters. Throws std::logic_error if a name occurs twice.
  Parameters(std::vector<ParameterSpec> specs, uint32_t seed, const at::Device& device,
             RowPrecision precision = RowPrecision::kFp32);

  /// The parameter of that name; an empty Value if the model has none.
  Value get(std::string_view name) const;
  /// Parameters that are adjacent in the buffer, stacked along the first axis into one matrix. Throws std::logic_error
  /// if they are not adjacent.
  Value joined(const std::vector<std::string>& names) const;

  /// In buffer order: the order given to the constructor, except that parameters whose size is no multiple of 8 come
  /// last.
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  at::Tensor& values() { return values_; }  // [P]
  const at::Tensor& values() const { return values_; }
  at::Tensor& gradients() { return gradients_; }  // [P]
  int64_t count() const { return values_.numel(); }

  /// The data type of activations.
  at::ScalarType row_type() const { return bf16_copy_.defined() ? at::kBFloat16 : at::kFloat; }
  /// [P] the values rounded to bf16, the operands of matmuls; undefined with RowPrecision::kFp32.
  at::Tensor& bf16_copy() { return bf16_copy_; }
  /// Sets every parameter back to its initial value.
  void initialise();
  /// Recomputes bf16_copy(). Call it after changing the values; only AdamOnDevice (engine/ops/kernels.h) updates both.
  void update_bf16_copy();

 private:
  Value view(int64_t offset, const std::vector<int64_t>& shape) const;

  std::vector<ParameterSpec> specs_;
  uint32_t seed_;
  std::map<std::string, std::pair<size_t, int64_t>, std::less<>> index_;  // name → (spec, offset)
  at::Tensor values_, gradients_, bf16_copy_;
};

}  // namespace tearless::engine
