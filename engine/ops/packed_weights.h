// Weights laid out for matmuls of few rows (kernels.h: PackedMatmul), while nothing changes them: a search has its
// weights laid out once instead of in each matmul of each position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace tearless::engine {

/// Thread-safe.
class PackedWeights {
 public:
  /// The panels of `weight` [out, in], laid out at the first call for it; undefined where its device has no kernel for
  /// them. The weight must keep its values.
  at::Tensor panels_of(const at::Tensor& weight);

 private:
  std::mutex mutex_;
  struct Packed {
    at::Tensor weight;  // retained: no other can have its address
    at::Tensor panels;
  };
  std::map<std::pair<const void*, int64_t>, Packed> packed_;  // by the weight's data and rows
};

}  // namespace tearless::engine
