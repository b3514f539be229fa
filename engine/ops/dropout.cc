#include "engine/ops/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>

namespace tearless::engine {
namespace {

constexpr int64_t kMask32 = 0xFFFFFFFF;

struct WideProduct {
  at::Tensor high, low;
};

/// The 64-bit product of a constant and a tensor of 32-bit values held in int64. Split into 16-bit halves, because the
/// full product of two 32-bit numbers does not fit a signed 64-bit one.
WideProduct multiply(uint32_t constant, const at::Tensor& x) {
  const auto c = static_cast<int64_t>(constant);
  const at::Tensor x_low = x.bitwise_and(0xFFFF);
  const at::Tensor x_high = x.__rshift__(16);
  const at::Tensor product_low = x_low * c;    // < 2^48
  const at::Tensor product_high = x_high * c;  // < 2^48, to be shifted by 16
  const at::Tensor low = product_low + product_high.bitwise_and(0xFFFF).__lshift__(16);
  const at::Tensor high = product_high.__rshift__(16) + low.__rshift__(32);
  return {high, low.bitwise_and(kMask32)};
}

}  // namespace

at::Tensor index_tensor(const std::vector<int32_t>& values, const at::Tensor& like) {
  // from_blob() does not own its memory; the conversion to int64 makes the copy.
  const at::Tensor view =
      at::from_blob(const_cast<int32_t*>(values.data()), {static_cast<int64_t>(values.size())}, at::kInt);
  return view.to(at::kLong).to(like.device());
}

at::Tensor keep_scale_tensor(const Dropout& dropout, const at::Tensor& outer, const at::Tensor& sentence, int64_t width,
                             const at::Tensor& like) {
  const int64_t rows = outer.size(0);
  const int64_t quarters = (width + 3) / 4;
  const at::Tensor zeros = at::arange(quarters, outer.options()).unsqueeze(0).expand({rows, quarters}) * 0;
  at::Tensor c0 = at::arange(quarters, outer.options()).unsqueeze(0) + zeros;
  at::Tensor c1 = outer.unsqueeze(1) + zeros;
  at::Tensor c2 = sentence.unsqueeze(1) + zeros;
  at::Tensor c3 = zeros + static_cast<int64_t>(dropout.update);
  uint32_t key0 = dropout.stream.seed;
  uint32_t key1 = dropout.stream.stream;
  for (int round = 0; round < 10; ++round) {
    const WideProduct a = multiply(0xD2511F53u, c0);
    const WideProduct b = multiply(0xCD9E8D57u, c2);
    c0 = b.high.bitwise_xor(c1).bitwise_xor(static_cast<int64_t>(key0));
    c2 = a.high.bitwise_xor(c3).bitwise_xor(static_cast<int64_t>(key1));
    c1 = b.low;
    c3 = a.low;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const at::Tensor bits = at::stack({c0, c1, c2, c3}, 2).view({rows, 4 * quarters}).slice(1, 0, width);
  return bits.ge(static_cast<int64_t>(dropout.threshold)).to(like.scalar_type()) * static_cast<double>(dropout.scale);
}

at::Tensor keep_scale_tensor(const Dropout& dropout, const PackedRows& rows, int64_t width, const at::Tensor& like) {
  return keep_scale_tensor(dropout, index_tensor(rows.positions, like), index_tensor(rows.sentence_ids, like), width,
                           like);
}

}  // namespace tearless::engine
