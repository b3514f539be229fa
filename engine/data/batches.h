// Cuts a set of sentence pairs into batches and packs batches into rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/options.h"
#include "engine/data/parallel_tokens.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// The batches of one pass over the training set (docs/spec/training.md §1.3):
///   1. Shuffle the sentences.
///   2. Stable-sort them by source length.
///   3. Cut: a batch grows while sentences × (the length that `options.count` names) ≤ `options.tokens`. A pair that
///      exceeds the limit by itself is a batch of its own.
///   4. Shuffle the batches.
/// A pure function of (seed, pass); every sentence is in exactly one batch.
std::vector<SentenceIds> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                     int64_t pass);

/// The batches of decoding: sentences by source length; a batch grows while sentences × 2 × longest source ≤ `tokens`.
std::vector<SentenceIds> decoding_batches(const ParallelTokens& corpus, int64_t tokens);

/// Packs these sentences into rows. Labels are tokens of the target side; Transformer::ready() maps them to output
/// columns.
PackedBatch pack(const ParallelTokens& corpus, std::span<const int32_t> sentences);

}  // namespace tearless::engine
