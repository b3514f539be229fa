// Buckets: sizes that many batches share, and padding rows, spans and labels that do not change a result.
#include "engine/model/padded_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/model/classifier.h"
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

Bucket bucket_of_lengths(const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
  return bucket_of(batch_of(source, target));
}

TEST(BucketOf, RoundsRowsToThirtyTwosAndLargeOnesToAThirtySecondOfAPowerOfTwo) {
  EXPECT_EQ(bucket_of_lengths({1}, {33}).source_rows, 32);
  EXPECT_EQ(bucket_of_lengths({1}, {33}).target_rows, 64);
  EXPECT_EQ(bucket_of_lengths({32}, {32}).source_rows, 32);
  EXPECT_EQ(bucket_of_lengths({1025}, {1024}).source_rows, 1088);  // 2048 / 32 = 64
  EXPECT_EQ(bucket_of_lengths({1025}, {1024}).target_rows, 1024);
  EXPECT_EQ(bucket_of_lengths({5000}, {5000}).source_rows, 5120);  // 8192 / 32 = 256
}

TEST(BucketOf, HasASpanMoreThanThereAreSentencesInEightsAndInEighthsOfAPowerOfTwo) {
  EXPECT_EQ(bucket_of_lengths({1}, {1}).spans, 8);
  EXPECT_EQ(bucket_of_lengths(std::vector<int32_t>(7, 1), std::vector<int32_t>(7, 1)).spans, 8);
  EXPECT_EQ(bucket_of_lengths(std::vector<int32_t>(8, 1), std::vector<int32_t>(8, 1)).spans, 16);
  EXPECT_EQ(bucket_of_lengths(std::vector<int32_t>(128, 1), std::vector<int32_t>(128, 1)).spans, 160);  // 256 / 8
}

TEST(BucketOf, TakesTheLongestSentenceOfEitherSideForAPowerOfTwo) {
  const Bucket bucket = bucket_of_lengths({3, 40}, {65, 2});
  EXPECT_EQ(bucket.max_source_length, 64);
  EXPECT_EQ(bucket.max_target_length, 128);
  EXPECT_EQ(bucket_of_lengths({3}, {32}).max_source_length, 32);
  EXPECT_EQ(bucket_of_lengths({3}, {32}).max_target_length, 32);
}

TEST(Padded, AppendsRowsSpansAndLabelsThatDoNotCount) {
  const ReadyBatch plain = batch_of({2, 3}, {4, 1});
  const Bucket bucket = bucket_of(plain);
  const ReadyBatch full = padded(plain, bucket);
  for (const auto& [side, own, rows] : {std::tuple(&full.source, &plain.source, bucket.source_rows),
                                        std::tuple(&full.target, &plain.target, bucket.target_rows)}) {
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
  ASSERT_EQ(full.labels.size(), static_cast<size_t>(bucket.target_rows));
  for (size_t t = plain.labels.size(); t < full.labels.size(); ++t) EXPECT_LT(full.labels[t], 0);

  struct Spans {
    const AttentionSpans &full, &plain;
    int64_t queries, keys, max_query_length, max_key_length;
  };
  for (const Spans& s : {Spans{full.source_spans, plain.source_spans, bucket.source_rows, bucket.source_rows,
                               bucket.max_source_length, bucket.max_source_length},
                         Spans{full.target_spans, plain.target_spans, bucket.target_rows, bucket.target_rows,
                               bucket.max_target_length, bucket.max_target_length},
                         Spans{full.cross_spans, plain.cross_spans, bucket.target_rows, bucket.source_rows,
                               bucket.max_target_length, bucket.max_source_length}}) {
    EXPECT_TRUE(s.full.padded);
    EXPECT_EQ(s.full.causal, s.plain.causal);
    EXPECT_EQ(s.full.max_query_length, s.max_query_length);
    EXPECT_EQ(s.full.max_key_length, s.max_key_length);
    ASSERT_EQ(s.full.spans.size(), static_cast<size_t>(bucket.spans));
    for (size_t i = s.plain.spans.size(); i < s.full.spans.size(); ++i) {
      EXPECT_EQ(s.full.spans[i].query_begin, s.queries);
      EXPECT_EQ(s.full.spans[i].key_begin, s.keys);
      EXPECT_EQ(s.full.spans[i].query_count, 0);
      EXPECT_EQ(s.full.spans[i].key_count, 0);
    }
  }
}

TEST(ForEachPart, GoesThroughTheSamePartsOfTheSameSizesForEveryBatchOfABucket) {
  const auto sizes = [](const ReadyBatch& batch) {
    std::vector<size_t> all;
    for_each_part(batch, [&](const auto& part) { all.push_back(part.size()); });
    return all;
  };
  const ReadyBatch one = batch_of({2, 3}, {4, 1}), other = batch_of({9}, {7});
  ASSERT_EQ(bucket_of(one).sizes(), bucket_of(other).sizes());
  const auto expected = sizes(padded(one, bucket_of(one)));
  EXPECT_THAT(expected, ElementsAre(32, 32, 32, 32, 32, 32, 32, 32, 32, 8, 8, 8));
  EXPECT_EQ(sizes(padded(other, bucket_of(other))), expected);
}

// Sentences of these lengths for the classifier.
ReadySentences sentences_of(const std::vector<int32_t>& lengths) {
  ReadySentences batch;
  batch.rows = rows_of(lengths);
  batch.spans = AttentionSpans::self(batch.rows, false);
  batch.pooled = rows_of(std::vector<int32_t>(lengths.size(), 1));
  batch.labels.assign(lengths.size(), 1);
  return batch;
}

TEST(SentenceBucketOf, HasRowsSpansAndTheLongestSentence) {
  const SentenceBucket bucket = bucket_of(sentences_of({40, 1}));
  EXPECT_EQ(bucket.rows, 64);
  EXPECT_EQ(bucket.spans, 8);
  EXPECT_EQ(bucket.max_length, 64);
  EXPECT_EQ(bucket_of(sentences_of({21, 20})).max_length, 32);
  EXPECT_EQ(bucket_of(sentences_of(std::vector<int32_t>(7, 1))).spans, 8);
  EXPECT_EQ(bucket_of(sentences_of(std::vector<int32_t>(8, 1))).spans, 16) << "one more than there are sentences";
}

TEST(PaddedSentences, HaveRowsSpansAndLabelsThatDoNotCount) {
  const ReadySentences plain = sentences_of({2, 3, 1});
  const SentenceBucket bucket = bucket_of(plain);
  const ReadySentences full = padded(plain, bucket);
  EXPECT_EQ(full.rows.row_count(), bucket.rows);
  EXPECT_EQ(full.rows.by_token.size(), static_cast<size_t>(bucket.rows));
  EXPECT_EQ(full.rows.offsets, plain.rows.offsets);
  EXPECT_EQ(full.spans.spans.size(), static_cast<size_t>(bucket.spans));
  EXPECT_TRUE(full.spans.padded);
  EXPECT_EQ(full.spans.max_key_length, bucket.max_length);
  EXPECT_EQ(full.spans.max_query_length, bucket.max_length);
  EXPECT_EQ(full.pooled.row_count(), bucket.spans);
  ASSERT_EQ(full.labels.size(), static_cast<size_t>(bucket.spans));
  for (size_t s = 0; s < full.labels.size(); ++s) {
    if (s < plain.labels.size()) {
      EXPECT_EQ(full.labels[s], 1);
      EXPECT_EQ(full.pooled.sentence_ids[s], plain.pooled.sentence_ids[s]);
      continue;
    }
    EXPECT_LT(full.labels[s], 0);
    EXPECT_EQ(full.spans.spans[s].key_begin, bucket.rows);
    EXPECT_EQ(full.spans.spans[s].key_count, 0);
  }
}

}  // namespace
}  // namespace tearless::engine::padded_batch_test
