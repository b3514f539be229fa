// A batch stretched to a size that many batches share, so that one captured step serves them all. Rows, spans and
// labels that are added count for nothing: no sentence sees them, and their gradients are 0.
#pragma once

#include <compare>
#include <cstdint>

#include "engine/model/transformer.h"

namespace tearless::engine {

/// The sizes that a captured step is made for.
struct Bucket {
  int64_t source_rows = 0, target_rows = 0;
  int64_t spans = 0;                               // more than there are sentences
  int64_t longest_source = 0, longest_target = 0;  // powers of two, as the tables of positions

  auto operator<=>(const Bucket&) const = default;
};

/// A function of the batch's sizes alone. Rows are rounded up by a few per cent at most, 31 rows for small batches.
Bucket bucket_of(const ReadyBatch& batch);

/// The batch in the sizes of the bucket, PackedRows::by_token made.
ReadyBatch padded(ReadyBatch batch, const Bucket& bucket);

/// f(vector) for every vector of a padded batch that kernels read: always the same ones, and of the same sizes for the
/// same bucket.
template <class F>
void for_each_part(const ReadyBatch& batch, F&& f) {
  for (const PackedRows* side : {&batch.source, &batch.target}) {
    f(side->tokens);
    f(side->positions);
    f(side->lines);
    f(side->by_token);
  }
  f(batch.labels);
  f(batch.source_spans.spans);
  f(batch.target_spans.spans);
  f(batch.cross_spans.spans);
}

}  // namespace tearless::engine
