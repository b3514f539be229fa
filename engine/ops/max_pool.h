// Max pooling of images: 2 × 2 windows with stride 2.
#pragma once

#include "engine/ops/kernels.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// The size of the images that max_pool() returns: ⌊H/2⌋ × ⌊W/2⌋.
ImageShape max_pool_shape(const ImageShape& image);

/// x [N · H · W, C] → [N · ⌊H/2⌋ · ⌊W/2⌋, C]. As in PyTorch an odd last row or column is dropped, the gradient of equal
/// maxima goes to the first of them (in row-major order), and a window with NaN gives NaN. Backward reads neither x nor
/// the result. REQUIRES: H, W ≥ 2.
Value max_pool(Tape& tape, const Value& x, const ImageShape& image);

}  // namespace tearless::engine
