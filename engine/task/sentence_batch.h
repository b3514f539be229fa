// A batch of the classifier behind the interface Batch.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/model/classifier.h"
#include "engine/train/batch.h"

namespace tearless::engine {

class SentenceBatch final : public Batch {
 public:
  explicit SentenceBatch(ReadySentences batch)
      : batch_(std::move(batch)), rows_(batch_.rows.row_count()), predictions_(batch_.rows.sentence_count()) {}

  int64_t rows() const override { return rows_; }
  int64_t predictions() const override { return predictions_; }
  std::vector<int64_t> bucket() const override {
    const SentenceBucket b = bucket_of(batch_);
    return {b.rows, b.spans, b.max_length};
  }
  void pad() override {
    const SentenceBucket bucket = bucket_of(batch_);
    batch_ = padded(std::move(batch_), bucket);
  }
  std::vector<Part> parts() const override {
    std::vector<Part> parts;
    const auto add = [&](const auto& part) { parts.push_back({part.data(), part.size() * sizeof part[0]}); };
    add(batch_.rows.tokens);
    add(batch_.rows.positions);
    add(batch_.rows.sentence_ids);
    add(batch_.rows.by_token);
    add(batch_.spans.spans);
    add(batch_.pooled.positions);
    add(batch_.pooled.sentence_ids);
    add(batch_.labels);
    return parts;
  }

  const ReadySentences& ready() const { return batch_; }
  /// The batch behind the interface. REQUIRES: it is a SentenceBatch.
  static const ReadySentences& in(const Batch& batch) { return static_cast<const SentenceBatch&>(batch).ready(); }

 private:
  ReadySentences batch_;
  int64_t rows_, predictions_;  // without padding
};

}  // namespace tearless::engine
