#include "engine/model/stream_observer.h"

#include <algorithm>

namespace tearless::engine {

void ElementVariance::add(const at::Tensor& tensor) {
  const at::Tensor host = tensor.to(at::kCPU, at::kFloat).contiguous();
  const float* const elements = host.const_data_ptr<float>();
  for (int64_t i = 0; i < host.numel(); ++i) {
    const double x = elements[i];
    sum_ += x;
    squares_ += x * x;
  }
  count_ += host.numel();
}

double ElementVariance::value() const {
  if (count_ == 0) return 0;
  const double count = static_cast<double>(count_), mean = sum_ / count;
  return std::max(0.0, squares_ / count - mean * mean);
}

}  // namespace tearless::engine
