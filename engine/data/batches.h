// Cuts a set of sentence pairs into batches and packs batches into rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/options.h"
#include "engine/data/parallel_tokens.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// The batches of one pass over the training set (docs/spec/training.md §1.3, §2.1):
///   1. Shuffle the sentences.
///   2. Stable-sort them by source length; for BatchCount::kMaxTokens pairs of equal ones by target length.
///   3. Cut: a batch grows while sentences × (the length that `options.count` names) ≤ `options.tokens`. A pair that
///      exceeds the limit by itself is a batch of its own. kMaxTokens then cuts full batches to a multiple of 8.
///   4. Shuffle the batches.
/// `options.regenerate` says which of these are done in each pass, and on how many sentences. A pure function of (seed,
/// pass); every sentence is in exactly one batch.
std::vector<SentenceIds> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                     int64_t pass);

/// Throws UserError if a training pair fits into no batch: kMaxTokens alone does not put it into one of its own.
void check_fits(const ParallelTokens& corpus, const BatchOptions& options);

/// The batches of decoding: sentences by source length; a batch grows while sentences × 2 × longest source ≤ `tokens`.
std::vector<SentenceIds> decoding_batches(const ParallelTokens& corpus, int64_t tokens);

/// Packs these sentences into rows. Labels are tokens of the target side; Transformer::ready() maps them to output
/// columns.
PackedBatch pack(const ParallelTokens& corpus, std::span<const int32_t> sentences);

}  // namespace tearless::engine
