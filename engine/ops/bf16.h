// bfloat16: the upper 16 bits of a float (sign, 8 bits of exponent, 7 of fraction), for device and host code. Same
// layout as __nv_bfloat16 and at::BFloat16. For storage only: arithmetic is done in float.
#pragma once

#include <cstdint>

#include "engine/ops/body.h"

namespace tearless::engine {

/// Rounds to nearest, ties to even. NaN becomes 0x7FFF, as in the GPU's conversion instruction.
TEARLESS_BOTH uint16_t bf16_bits(float x) {
#ifdef __CUDA_ARCH__
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
#endif
}

/// Two bf16 in one word, `low` in the lower half: one instruction on the GPU, where two bf16_bits() and a shift take
/// three.
TEARLESS_BOTH uint32_t bf16_pair_bits(float low, float high) {
#ifdef __CUDA_ARCH__
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return bf16_bits(low) | static_cast<uint32_t>(bf16_bits(high)) << 16;
#endif
}

struct bf16 {
  uint16_t bits;

  bf16() = default;
  TEARLESS_BOTH explicit bf16(float x) : bits(bf16_bits(x)) {}
  TEARLESS_BOTH explicit operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
};
static_assert(sizeof(bf16) == 2);

/// x rounded to T and back: the value that a later read from memory of type T would see.
template <class T>
TEARLESS_BODY float rounded_to(float x) {
  return static_cast<float>(static_cast<T>(x));
}

}  // namespace tearless::engine
