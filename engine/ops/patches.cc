#include "engine/ops/patches.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cassert>

#include "engine/ops/backend.h"

namespace tearless::engine {

ImageShape patches_shape(const ImageShape& image, int64_t size) {
  return {image.height - size + 1, image.width - size + 1, size * size * image.channels};
}

Value patches(Tape& tape, const Value& x, const ImageShape& image, int64_t size) {
  const int64_t images = x.data().size(0) / image.pixels();
  const ImageShape windows = patches_shape(image, size);
  assert(size >= 1 && windows.height >= 1 && windows.width >= 1);
  assert(x.data().size(0) == images * image.pixels() && x.data().size(1) == image.channels);
  const std::vector<int64_t> shape = {images * windows.pixels(), windows.channels};
  if (!fast(tape, x.data(), [](const auto& kernels) { return kernels.patches && kernels.patches_backward; })) {
    return tape.by_formula({x}, [&](const std::vector<at::Tensor>& in) {
      return in[0]
          .view({images, image.height, image.width, image.channels})
          .unfold(1, size, 1)
          .unfold(2, size, 1)  // [N, y, x, channel, ky, kx]
          .permute({0, 1, 2, 4, 5, 3})
          .reshape(shape);
    });
  }
  const Value out(at::empty(shape, x.data().options()), x.requires_grad());
  with_kernels(x.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.patches(
        {.images = images, .image = image, .size = size, .x = read<T>(x.data()), .out = write<T>(out.data())}, stream);
  });
  tape.record("patches", [x, out, images, image, size] {
    if (!out.has_grad()) return;
    at::Tensor d_x = at::empty_like(x.data());
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.patches_backward(
          {.images = images, .image = image, .size = size, .d_out = read<T>(out.grad()), .d_x = write<T>(d_x)}, stream);
    });
    x.add_grad(std::move(d_x));
  });
  return out;
}

}  // namespace tearless::engine
