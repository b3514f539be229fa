// A batch of a model behind the interface Batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/train/batch.h"

namespace tearless::engine {

/// `Ready`: a batch as the model's forward pass takes it, with row_count(), `labels` (negative: no prediction),
/// bucket_of(), padded() and for_each_part().
template <class Ready>
class BatchOf final : public Batch {
 public:
  explicit BatchOf(Ready ready)
      : ready_(std::move(ready)),
        rows_(ready_.row_count()),
        predictions_(
            std::count_if(ready_.labels.begin(), ready_.labels.end(), [](int32_t label) { return label >= 0; })) {}

  int64_t rows() const override { return rows_; }
  int64_t predictions() const override { return predictions_; }
  std::vector<int64_t> bucket() const override { return bucket_of(ready_).sizes(); }
  void pad() override {
    const auto bucket = bucket_of(ready_);
    ready_ = padded(std::move(ready_), bucket);
  }
  std::vector<Part> parts() const override {
    std::vector<Part> parts;
    for_each_part(ready_, [&](const auto& part) { parts.push_back({part.data(), part.size() * sizeof part[0]}); });
    return parts;
  }

  /// The batch behind the interface. REQUIRES: it is one of this class.
  static const Ready& in(const Batch& batch) { return static_cast<const BatchOf&>(batch).ready_; }

 private:
  Ready ready_;
  int64_t rows_, predictions_;  // without padding
};

}  // namespace tearless::engine
