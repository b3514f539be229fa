// Cuts a set of sentence pairs into batches and packs batches into rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/options.h"
#include "engine/data/parallel_tokens.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// The batches of one pass over the training set (docs/spec/training.md §1.3, §2.1, §4.2, §5):
///   1. Shuffle the sentences.
///   2. Stable-sort them by source length; for BatchCount::kMaxTokens pairs of equal ones by target length.
///   3. Cut: a batch grows while sentences × (the length that `options.count` names) ≤ `options.tokens`, for
///      kPaddedBelow < `options.tokens`. A pair that exceeds the limit by itself is a batch of its own. kMaxTokens then
///      cuts full batches to a multiple of 8.
///   4. Shuffle the batches.
/// `options.regenerate` says which of these are done in each pass, and on how many sentences. A pure function of (seed,
/// pass). Every sentence is in exactly one batch, but for Regenerate::kBuffers, which reads the sentences in their
/// order:
///   1. Fill a buffer up to `options.buffer` sentences, those that went back before the others.
///   2. Stable-sort it by the longer side, and cut.
///   3. The sentences of batches with fewer than `options.leak_ratio` · `options.tokens` tokens, on the side that has
///      more and without padding, go back. Those of the last buffer are in no batch.
///   4. Shuffle the other batches. These are the same in every pass.
/// Lengths are those after `options.truncate`; for kPaddedBelow a side that it leaves without EOS counts it still, as
/// in zero.
std::vector<SentenceIds> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                     int64_t pass);

/// Throws UserError if a training pair fits into no batch (kMaxTokens alone does not put it into one of its own), or if
/// there is no batch, because all sentences go back.
void check_fits(const ParallelTokens& corpus, const BatchOptions& options);

/// The batches of decoding: sentences by source length, or as they are in the file; a batch grows while sentences × 2 ×
/// longest source ≤ `tokens`.
std::vector<SentenceIds> decoding_batches(const ParallelTokens& corpus, int64_t tokens, bool in_file_order = false);

/// The sides, source and target, that `truncate` leaves without EOS.
std::array<int64_t, 2> sides_without_eos(const ParallelTokens& corpus, int64_t truncate);

/// Packs these sentences into rows, of each side its first `truncate` tokens, EOS counted; 0: all. Labels are tokens of
/// the target side; Transformer::ready() maps them to output columns.
PackedBatch pack(const ParallelTokens& corpus, std::span<const int32_t> sentences, int64_t truncate = 0);

}  // namespace tearless::engine
