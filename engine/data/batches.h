// Sentences cut into batches, and batches packed into rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/options.h"
#include "engine/data/parallel_tokens.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// The lines of one batch.
using BatchLines = std::vector<int32_t>;

/// One pass over the training set: shuffle, stable-sort by source length, cut, shuffle the batches (spec
/// training.md 1.3). A function of (seed, pass) alone; every line stands in one batch. A batch grows while sentences ×
/// what `options.count` says stays within `options.tokens`; a pair that is too long by itself is a batch of its own.
std::vector<BatchLines> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                    int64_t pass);

/// For decoding: lines by source length, a batch growing while sentences × 2 × longest source ≤ tokens.
std::vector<BatchLines> decoding_batches(const ParallelTokens& corpus, int64_t tokens);

/// The rows of these lines. Labels are as the corpus has them: those outside target_kept are the model's to map.
PackedBatch pack(const ParallelTokens& corpus, std::span<const int32_t> lines);

}  // namespace tearless::engine
