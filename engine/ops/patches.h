// The windows of images as rows (im2col): a convolution with stride 1 and without padding is patches() followed by
// linear(), with a weight [channels out, k · k · channels in] whose columns are ordered (ky, kx, channel).
#pragma once

#include "engine/ops/kernels.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// The size of what patches() returns: (H-k+1) × (W-k+1) windows of k · k · C numbers.
ImageShape patches_shape(const ImageShape& image, int64_t size);

/// x [N · H · W, C] → [N · (H-k+1) · (W-k+1), k · k · C], k = size: every k × k window of every image (kernels.h:
/// Patches). NaN is copied like any number. REQUIRES: 1 ≤ k ≤ H, W.
Value patches(Tape& tape, const Value& x, const ImageShape& image, int64_t size);

}  // namespace tearless::engine
