// Buckets: sizes that many batches share, and padding rows, spans and labels that do not change a result.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/model/classifier.h"
#include "engine/model/transformer.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine::padded_batch_test {
namespace {

using testing::ElementsAre;

// Sentences of these lengths.
PackedRows rows_of(const std::vector<int32_t>& lengths) {
  PackedRows rows;
  rows.offsets = {0};
  for (size_t s = 0; s < lengths.size(); ++s) {
    for (int32_t p = 0; p < lengths[s]; ++p) {
      rows.tokens.push_back(7 - p % 3);
      rows.positions.push_back(p);
      rows.sentence_ids.push_back(static_cast<int32_t>(100 + s));
    }
    rows.offsets.push_back(static_cast<int32_t>(rows.tokens.size()));
  }
  return rows;
}

// Sentences of these lengths on either side.
ReadyBatch batch_of(const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
  ReadyBatch batch;
  batch.source = rows_of(source);
  batch.target = rows_of(target);
  batch.labels.assign(batch.target.tokens.size(), 9);
  batch.source_spans = AttentionSpans::self(batch.source, false);
  batch.target_spans = AttentionSpans::self(batch.target, true);
  batch.cross_spans = AttentionSpans::cross(batch.target, batch.source);
  return batch;
}

// The bucket of a ReadyBatch.
enum { kSourceRows, kTargetRows, kSpans, kMaxSourceLength, kMaxTargetLength };

std::vector<int64_t> bucket_of(const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
  return batch_of(source, target).bucket();
}

TEST(BucketOf, RoundsRowsToThirtyTwosAndLargeOnesToAThirtySecondOfAPowerOfTwo) {
  EXPECT_EQ(bucket_of({1}, {33})[kSourceRows], 32);
  EXPECT_EQ(bucket_of({1}, {33})[kTargetRows], 64);
  EXPECT_EQ(bucket_of({32}, {32})[kSourceRows], 32);
  EXPECT_EQ(bucket_of({1025}, {1024})[kSourceRows], 1088);  // 2048 / 32 = 64
  EXPECT_EQ(bucket_of({1025}, {1024})[kTargetRows], 1024);
  EXPECT_EQ(bucket_of({5000}, {5000})[kSourceRows], 5120);  // 8192 / 32 = 256
}

TEST(BucketOf, HasASpanMoreThanThereAreSentencesInEightsAndInEighthsOfAPowerOfTwo) {
  EXPECT_EQ(bucket_of({1}, {1})[kSpans], 8);
  EXPECT_EQ(bucket_of(std::vector<int32_t>(7, 1), std::vector<int32_t>(7, 1))[kSpans], 8);
  EXPECT_EQ(bucket_of(std::vector<int32_t>(8, 1), std::vector<int32_t>(8, 1))[kSpans], 16);
  EXPECT_EQ(bucket_of(std::vector<int32_t>(128, 1), std::vector<int32_t>(128, 1))[kSpans], 160);  // 256 / 8
}

TEST(BucketOf, TakesTheLongestSentenceOfEitherSideForAPowerOfTwo) {
  const std::vector<int64_t> bucket = bucket_of({3, 40}, {65, 2});
  EXPECT_EQ(bucket[kMaxSourceLength], 64);
  EXPECT_EQ(bucket[kMaxTargetLength], 128);
  EXPECT_EQ(bucket_of({3}, {32})[kMaxSourceLength], 32);
  EXPECT_EQ(bucket_of({3}, {32})[kMaxTargetLength], 32);
}

TEST(Padded, AppendsRowsSpansAndLabelsThatDoNotCount) {
  const ReadyBatch plain = batch_of({2, 3}, {4, 1});
  const std::vector<int64_t> bucket = plain.bucket();
  ReadyBatch full = plain;
  full.pad();
  for (const auto& [side, own, rows] : {std::tuple(&full.source, &plain.source, bucket[kSourceRows]),
                                        std::tuple(&full.target, &plain.target, bucket[kTargetRows])}) {
    const auto size = static_cast<size_t>(rows);
    ASSERT_EQ(side->tokens.size(), size);
    ASSERT_EQ(side->positions.size(), size);
    ASSERT_EQ(side->sentence_ids.size(), size);
    ASSERT_EQ(side->by_token.size(), size);
    EXPECT_EQ(side->offsets, own->offsets);
    for (size_t t = 0; t < size; ++t) {
      const bool is_own = t < own->tokens.size();
      EXPECT_EQ(side->tokens[t], is_own ? own->tokens[t] : kPad) << t;
      EXPECT_EQ(side->positions[t], is_own ? own->positions[t] : 0) << t;
      EXPECT_EQ(side->sentence_ids[t], is_own ? own->sentence_ids[t] : 0) << t;
    }
  }
  ASSERT_EQ(full.labels.size(), static_cast<size_t>(bucket[kTargetRows]));
  for (size_t t = plain.labels.size(); t < full.labels.size(); ++t) EXPECT_LT(full.labels[t], 0);

  struct Spans {
    const AttentionSpans &full, &plain;
    int64_t queries, keys, max_query_length, max_key_length;
  };
  for (const Spans& s : {Spans{full.source_spans, plain.source_spans, bucket[kSourceRows], bucket[kSourceRows],
                               bucket[kMaxSourceLength], bucket[kMaxSourceLength]},
                         Spans{full.target_spans, plain.target_spans, bucket[kTargetRows], bucket[kTargetRows],
                               bucket[kMaxTargetLength], bucket[kMaxTargetLength]},
                         Spans{full.cross_spans, plain.cross_spans, bucket[kTargetRows], bucket[kSourceRows],
                               bucket[kMaxTargetLength], bucket[kMaxSourceLength]}}) {
    EXPECT_TRUE(s.full.padded);
    EXPECT_EQ(s.full.causal, s.plain.causal);
    EXPECT_EQ(s.full.max_query_length, s.max_query_length);
    EXPECT_EQ(s.full.max_key_length, s.max_key_length);
    ASSERT_EQ(s.full.spans.size(), static_cast<size_t>(bucket[kSpans]));
    for (size_t i = s.plain.spans.size(); i < s.full.spans.size(); ++i) {
      EXPECT_EQ(s.full.spans[i].query_begin, s.queries);
      EXPECT_EQ(s.full.spans[i].key_begin, s.keys);
      EXPECT_EQ(s.full.spans[i].query_count, 0);
      EXPECT_EQ(s.full.spans[i].key_count, 0);
    }
  }
}

TEST(Parts, AreTheSameOnesOfTheSameSizesForEveryBatchOfABucket) {
  const auto bytes = [](ReadyBatch batch) {
    batch.pad();
    std::vector<size_t> all;
    for (const Batch::Part& part : batch.parts()) all.push_back(part.bytes);
    return all;
  };
  const ReadyBatch one = batch_of({2, 3}, {4, 1}), other = batch_of({9}, {7});
  ASSERT_EQ(one.bucket(), other.bucket());
  constexpr size_t kRows = 32 * sizeof(int32_t), kEight = 8 * sizeof(AttentionSpan);
  EXPECT_THAT(bytes(one),
              ElementsAre(kRows, kRows, kRows, kRows, kRows, kRows, kRows, kRows, kRows, kEight, kEight, kEight));
  EXPECT_EQ(bytes(other), bytes(one));
}

// Sentences of these lengths for the classifier.
ReadySentences sentences_of(const std::vector<int32_t>& lengths) {
  ReadySentences batch;
  batch.words = rows_of(lengths);
  batch.spans = AttentionSpans::self(batch.words, false);
  batch.pooled = rows_of(std::vector<int32_t>(lengths.size(), 1));
  batch.labels.assign(lengths.size(), 1);
  return batch;
}

TEST(SentenceBucketOf, HasRowsSpansAndTheLongestSentence) {
  EXPECT_THAT(sentences_of({40, 1}).bucket(), ElementsAre(64, 8, 64));
  EXPECT_THAT(sentences_of({21, 20}).bucket(), ElementsAre(64, 8, 32));
  EXPECT_EQ(sentences_of(std::vector<int32_t>(7, 1)).bucket()[1], 8);
  EXPECT_EQ(sentences_of(std::vector<int32_t>(8, 1)).bucket()[1], 16) << "one more than there are sentences";
}

TEST(PaddedSentences, HaveRowsSpansAndLabelsThatDoNotCount) {
  const ReadySentences plain = sentences_of({2, 3, 1});
  const int64_t rows = plain.bucket()[0], spans = plain.bucket()[1], max_length = plain.bucket()[2];
  ReadySentences full = plain;
  full.pad();
  EXPECT_EQ(full.words.row_count(), rows);
  EXPECT_EQ(full.words.by_token.size(), static_cast<size_t>(rows));
  EXPECT_EQ(full.words.offsets, plain.words.offsets);
  EXPECT_EQ(full.spans.spans.size(), static_cast<size_t>(spans));
  EXPECT_TRUE(full.spans.padded);
  EXPECT_EQ(full.spans.max_key_length, max_length);
  EXPECT_EQ(full.spans.max_query_length, max_length);
  EXPECT_EQ(full.pooled.row_count(), spans);
  ASSERT_EQ(full.labels.size(), static_cast<size_t>(spans));
  for (size_t s = 0; s < full.labels.size(); ++s) {
    if (s < plain.labels.size()) {
      EXPECT_EQ(full.labels[s], 1);
      EXPECT_EQ(full.pooled.sentence_ids[s], plain.pooled.sentence_ids[s]);
      continue;
    }
    EXPECT_LT(full.labels[s], 0);
    EXPECT_EQ(full.spans.spans[s].key_begin, rows);
    EXPECT_EQ(full.spans.spans[s].key_count, 0);
  }
}

}  // namespace
}  // namespace tearless::engine::padded_batch_test
