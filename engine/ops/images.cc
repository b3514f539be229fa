#include "engine/ops/images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max_pool2d.h>

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

Value reshape(Tape& tape, const Value& x, int64_t width) {
  const Value out(x.data().view({x.data().numel() / width, width}), x.requires_grad());
  tape.record("reshape", [x, out] {
    if (out.has_grad()) x.add_grad(out.grad().view_as(x.data()));
  });
  return out;
}

Value patches(Tape& tape, const Value& x, const ImageShape& image, int64_t size) {
  const int64_t images = x.data().size(0) / image.pixels();
  const ImageShape windows = image.windows(size);
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

Value max_pool(Tape& tape, const Value& x, const ImageShape& image) {
  const int64_t images = x.data().size(0) / image.pixels();
  const ImageShape pooled = image.pooled();
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
