// Named points of the residual streams, for whoever looks at them while a batch passes (ForwardContext::observer). Of a
// sublayer F with the stream x before it these are x, r = x + drop(F(x)), and o, what the norms after the sum make of
// r.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "engine/ops/tape.h"

namespace tearless::engine {

enum class StreamPoint {
  kInput,  // x, before the norms of a pre-norm placement
  kSum,    // r
  kOutput  // o; r itself where no norm follows the sum
};

class StreamObserver {
 public:
  virtual ~StreamObserver() = default;

  /// Whether it asks for the gradients at the points, and so for all three of them. A sum and its norm are then two
  /// operations, where they would be one, since only the result of an operation has a gradient. Otherwise it is shown
  /// the sums alone, and the pass is the one that nobody looks at.
  virtual bool sees_gradients() const = 0;
  /// Shows the rows [T, D] at a point of the sublayer "encoder.1.ffn". What is recorded on the tape now runs back when
  /// rows.grad() has been summed over all that read the rows, and before anything overwrites it.
  virtual void see(Tape& tape, const std::string& sublayer, StreamPoint point, const Value& rows) = 0;
};

/// The variance of all elements of one tensor, or of several together. In double and in their order, so that it does
/// not depend on threads.
class ElementVariance {
 public:
  void add(const at::Tensor& tensor);
  /// The mean square of x - mean(x); 0 without elements.
  double value() const;

 private:
  double sum_ = 0, squares_ = 0;
  int64_t count_ = 0;
};

}  // namespace tearless::engine
