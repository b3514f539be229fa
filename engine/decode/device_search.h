// Beam search that stays on the device. Everything a position needs lies in device memory: last tokens, the rows of
// each hypothesis' past, sums and scores; the walk over one position ends with the kernel that chooses the hypotheses
// and prepares the next walk (kernels.h: BeamStep). So a position is the same launches every time, captured once for a
// bucket of batch sizes, and the host asks only now and then whether all sentences are done. The keys and values of the
// past are written once, to a cache that batches share.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/decode/options.h"
#include "engine/model/transformer.h"
#include "engine/ops/backend.h"

namespace tearless::engine {

class DeviceSearch {
 public:
  /// `model` and `options` must outlive the search. `capture`: for the model's device, which has SearchKernels.
  DeviceSearch(const Transformer& model, const DecodeOptions& options, Capture capture);
  ~DeviceSearch();

  /// The best output of each sentence as columns of the logits, without EOS. `memory` [S, D]: `source` encoded.
  std::vector<std::vector<int32_t>> search(const Step& step, const Embeddings::Tables& tables, const PackedRows& source,
                                           const Value& memory);

 private:
  /// The sizes that a captured position is made for.
  struct Bucket {
    int64_t sentences = 0;
    int64_t room = 0;  // positions
    int64_t longest_source = 0;
    auto operator<=>(const Bucket&) const = default;
  };
  struct Position;

  /// Makes the tables stand where captured positions read them.
  void keep(const Embeddings::Tables& tables);
  /// Makes the cache hold so much, and the memory's keys and values stand in it.
  void fill_cache(const Value& projected, int64_t rows);
  Position& start(const Bucket& bucket, const PackedRows& source);
  void launch(Position& position);

  const Transformer& model_;
  const DecodeOptions& options_;
  Capture capture_;
  Embeddings::Tables tables_;
  DecoderCache cache_;
  std::map<Bucket, Position> positions_;
};

}  // namespace tearless::engine
