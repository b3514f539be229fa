// Images as rows of pixels: input, windows, pooling, and the same numbers as rows of another width.
#pragma once

#include <vector>

#include "engine/ops/kernels.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// values [T · width] → [T, width] of the given type on like's device: a copy, of which no gradient is wanted. Reads
/// the tape's device copy of `values` where there is one; `values` must not change before the tape's work is done.
/// REQUIRES: width divides the number of values (std::logic_error).
Value input_rows(const Tape& tape, const std::vector<float>& values, int64_t width, const at::Tensor& like,
                 at::ScalarType type);

/// x [R, C] → [R · C / width, width], in the same memory; backward copies nothing either. An operation that overwrites
/// the result overwrites x. REQUIRES: x is contiguous, and width divides R · C.
Value reshape(Tape& tape, const Value& x, int64_t width);

/// x [N · H · W, C] → [N · (H-k+1) · (W-k+1), k · k · C], k = size: every k × k window of every image (kernels.h:
/// Patches). NaN is copied like any number. A convolution with stride 1 and without padding (im2col) is patches()
/// followed by linear(), with a weight [channels out, k · k · channels in] whose columns are ordered (ky, kx, channel).
/// REQUIRES: 1 ≤ k ≤ H, W (std::logic_error).
Value patches(Tape& tape, const Value& x, const ImageShape& image, int64_t size);

/// x [N · H · W, C] → [N · ⌊H/2⌋ · ⌊W/2⌋, C]: the maxima of 2 × 2 windows with stride 2. As in PyTorch an odd last row
/// or column is dropped, the gradient of equal maxima goes to the first of them (in row-major order), and a window with
/// NaN gives NaN. Backward reads neither x nor the result. REQUIRES: H, W ≥ 2
/// (std::logic_error).
Value max_pool(Tape& tape, const Value& x, const ImageShape& image);

}  // namespace tearless::engine
