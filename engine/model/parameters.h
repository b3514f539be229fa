// The trained parameters as views into one flat fp32 buffer, and their gradients in a second one of the same layout.
// Clipping, Adam and checkpoints process a whole buffer in one pass.
//
//   1. Parts of a model declare their parameters when they are constructed (scope.h) and keep the values they get.
//   2. allocate() lays out the buffers and initialises them. The values are usable from then on.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ops/tape.h"

namespace tearless::engine {

class Parameters;
/// Those of a model that has been constructed and not allocated.
using DeclaredParameters = std::shared_ptr<const Parameters>;

/// The data type of activations. Parameters, gradients and the optimiser's moments are fp32 in both cases.
enum class RowPrecision { kFp32, kBf16 };

/// The initial distribution of a parameter.
struct Initial {
  enum class Kind {
    kConstant,  // every element is `scale`
    kUniform,   // mean + U(-scale, scale)
    kNormal,    // N(mean, scale), `scale` the standard deviation
  };
  Kind kind = Kind::kConstant;
  double scale = 0;
  double mean = 0;
  int64_t zero_row = -1;  // this row of a matrix is 0 instead; -1: none
};

/// A declared parameter.
struct ParameterSpec {
  std::string name;  // "encoder.1.ffn.w1.weight"
  std::vector<int64_t> shape;
  Initial initial;
  int64_t size() const;  // number of elements
};

class Parameters {
 public:
  /// An initial value depends on (seed, parameter name, element index) alone, not on the other parameters.
  Parameters(uint32_t seed, const at::Device& device, RowPrecision precision = RowPrecision::kFp32);

  /// Declares a parameter. Throws std::logic_error if the name is taken, or after allocate().
  Value declare(ParameterSpec spec);
  /// Declares parameters of one shape that are adjacent in the buffer: the value is all of them, stacked along the
  /// first axis, so that one matmul computes them together.
  Value declare_joined(std::vector<ParameterSpec> specs);
  /// Allocates the buffers on the device and initialises the parameters.
  void allocate();

  /// The parameter of that name; an empty Value if the model has none. After allocate().
  Value get(std::string_view name) const;

  /// In the order of their declaration; after allocate() in buffer order: parameters whose size is no multiple of 8
  /// come last.
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  /// The number of elements of all parameters together.
  int64_t count() const;

  // After allocate().
  at::Tensor& values() { return values_; }  // [P]
  const at::Tensor& values() const { return values_; }
  at::Tensor& gradients() { return gradients_; }  // [P]
  /// [P] the values rounded to bf16, the operands of matmuls; undefined with RowPrecision::kFp32.
  at::Tensor& bf16_copy() { return bf16_copy_; }
  /// Sets every parameter back to its initial value.
  void initialise();
  /// Recomputes bf16_copy(). Call it after changing the values; only AdamOnDevice (engine/ops/kernels.h) updates both.
  void update_bf16_copy();

  const at::Device& device() const { return device_; }
  /// The data type of activations.
  at::ScalarType row_type() const { return precision_ == RowPrecision::kBf16 ? at::kBFloat16 : at::kFloat; }

 private:
  /// A value that was handed out before the buffers existed.
  struct Declared {
    std::string first;           // name of its first parameter
    std::vector<int64_t> shape;  // of all its parameters, stacked
    Value value;
  };
  /// Makes `value` the view of that shape at the parameter called `first`.
  void bind(const Value& value, std::string_view first, const std::vector<int64_t>& shape) const;

  uint32_t seed_;
  at::Device device_;
  RowPrecision precision_;
  std::vector<ParameterSpec> specs_;
  std::vector<Declared> declared_;
  std::map<std::string, std::pair<size_t, int64_t>, std::less<>> index_;  // name → (spec, offset)
  at::Tensor values_, gradients_, bf16_copy_;
};

}  // namespace tearless::engine
