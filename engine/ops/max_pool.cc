#include "engine/ops/max_pool.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/max_pool2d.h>

#include <cassert>

#include "engine/ops/backend.h"

namespace tearless::engine {

ImageShape max_pool_shape(const ImageShape& image) { return {image.height / 2, image.width / 2, image.channels}; }

Value max_pool(Tape& tape, const Value& x, const ImageShape& image) {
  const int64_t images = x.data().size(0) / image.pixels();
  const ImageShape pooled = max_pool_shape(image);
  assert(pooled.height >= 1 && pooled.width >= 1);
  assert(x.data().size(0) == images * image.pixels() && x.data().size(1) == image.channels);
  const std::vector<int64_t> shape = {images * pooled.pixels(), image.channels};
  if (!fast(tape, x.data(), [](const auto& kernels) { return kernels.max_pool && kernels.max_pool_backward; })) {
    return tape.by_formula({x}, [&](const std::vector<at::Tensor>& in) {
      const at::Tensor channels_first =
          in[0].view({images, image.height, image.width, image.channels}).permute({0, 3, 1, 2});
      return at::max_pool2d(channels_first, {2, 2}).permute({0, 2, 3, 1}).reshape(shape);
    });
  }
  const Value out(at::empty(shape, x.data().options()), x.requires_grad());
  at::Tensor winners;
  if (tape.recording()) winners = at::empty(shape, x.data().options().dtype(at::kByte));
  with_kernels(x.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.max_pool({.images = images,
                      .image = image,
                      .x = read<T>(x.data()),
                      .out = write<T>(out.data()),
                      .winners = write<uint8_t>(winners)},
                     stream);
  });
  tape.record("max pool", [x, out, winners, images, image] {
    if (!out.has_grad()) return;
    at::Tensor d_x = at::empty_like(x.data());
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.max_pool_backward({.images = images,
                                 .image = image,
                                 .winners = read<uint8_t>(winners),
                                 .d_out = read<T>(out.grad()),
                                 .d_x = write<T>(d_x)},
                                stream);
    });
    x.add_grad(std::move(d_x));
  });
  return out;
}

}  // namespace tearless::engine
