#include "engine/ops/input_rows.h"

#include <ATen/ops/from_blob.h>

#include <cassert>

#include "engine/ops/backend.h"

namespace tearless::engine {

Value input_rows(const Tape& tape, const std::vector<float>& values, int64_t width, const at::Tensor& like,
                 at::ScalarType type) {
  const auto size = static_cast<int64_t>(values.size());
  assert(size % width == 0);
  const OnDevice<float> source(tape, values, like);
  const at::Tensor rows = at::for_blob(const_cast<float*>(source.data()), {size / width, width})
                              .options(like.options().dtype(at::kFloat))
                              .target_device(like.device())
                              .make_tensor();
  // Copied, because operations may overwrite their input.
  return Value(rows.to(type, /*non_blocking=*/false, /*copy=*/true), /*requires_grad=*/false);
}

}  // namespace tearless::engine
