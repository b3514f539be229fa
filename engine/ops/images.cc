#include "engine/ops/images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max_pool2d.h>

#include "base/error.h"
#include "engine/ops/backend.h"

namespace tearless::engine {
namespace {

void require_images(const Value& x, const ImageShape& image) {
  require(x.data().size(0) % image.pixels() == 0 && x.data().size(1) == image.channels,
          "images: rows that are not the pixels of images of this shape");
}

}  // namespace

Value input_rows(const Tape& tape, const std::vector<float>& values, int64_t width, const at::Tensor& like,
                 at::ScalarType type) {
  const auto size = static_cast<int64_t>(values.size());
  require(size % width == 0, "input rows: the last row is incomplete");
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
  require(size >= 1 && windows.height >= 1 && windows.width >= 1, "patches: windows larger than the image");
  require_images(x, image);
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
  require(pooled.height >= 1 && pooled.width >= 1, "max pooling: an image smaller than a window");
  require_images(x, image);
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
