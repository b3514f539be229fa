// A batch of the encoder-decoder Transformer for the training loop.
#pragma once

#include <utility>

#include "engine/model/padded_batch.h"
#include "engine/train/batch.h"

namespace tearless::engine {

class TransformerBatch final : public Batch {
 public:
  explicit TransformerBatch(ReadyBatch batch) : batch_(std::move(batch)), predictions_(batch_.tokens()) {}

  int64_t rows() const override { return batch_.source.row_count() + batch_.target.row_count(); }
  int64_t predictions() const override { return predictions_; }
  std::vector<int64_t> bucket() const override {
    const Bucket b = bucket_of(batch_);
    return {b.source_rows, b.target_rows, b.spans, b.max_source_length, b.max_target_length};
  }
  void pad() override {
    const Bucket bucket = bucket_of(batch_);
    batch_ = padded(std::move(batch_), bucket);
  }
  std::vector<Part> parts() const override {
    std::vector<Part> parts;
    for_each_part(batch_, [&](const auto& part) { parts.push_back({part.data(), part.size() * sizeof part[0]}); });
    return parts;
  }

  const ReadyBatch& ready() const { return batch_; }
  /// The batch behind the interface. REQUIRES: it is a TransformerBatch.
  static const ReadyBatch& in(const Batch& batch) { return static_cast<const TransformerBatch&>(batch).ready(); }

 private:
  ReadyBatch batch_;
  int64_t predictions_;
};

}  // namespace tearless::engine
