// Streams and segments, compared with what holds of each token by its place in the text.
#include "engine/data/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <stdexcept>

#include "tests/support/error_of.h"

namespace tearless::engine::streams_test {
namespace {

using tearless::test::error_of;
using testing::ElementsAre;
using Ids = std::vector<int32_t>;

/// The text 100, 101, …: a token says where it stands.
Ids text_of(int64_t tokens) {
  Ids text(static_cast<size_t>(tokens));
  std::iota(text.begin(), text.end(), 100);
  return text;
}

TEST(Streams, AreReadSegmentBySegment) {
  const Ids text = text_of(14);
  const Streams streams(text, 3);
  EXPECT_EQ(streams.streams(), 3);
  EXPECT_EQ(streams.length(), 4);
  EXPECT_EQ(streams.predictions(), 3);
  ASSERT_EQ(streams.segments(2), 2);
  StreamSegment segment = streams.at(0, 2);
  EXPECT_THAT(segment.rows.tokens, ElementsAre(100, 101, 104, 105, 108, 109));
  EXPECT_THAT(segment.labels, ElementsAre(101, 102, 105, 106, 109, 110));
  EXPECT_THAT(segment.rows.offsets, ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(segment.rows.positions, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(segment.rows.sentence_ids, ElementsAre(0, 0, 1, 1, 2, 2));
  segment = streams.at(1, 2);
  EXPECT_THAT(segment.rows.tokens, ElementsAre(102, 106, 110));
  EXPECT_THAT(segment.labels, ElementsAre(103, 107, 111));
  EXPECT_THAT(segment.rows.offsets, ElementsAre(0, 1, 2, 3));
}

// Token i of the text is token i % length of stream i / length, and is predicted once unless it is the first there, in
// segment (i % length - 1) / segment, from the token before it.
TEST(Streams, PredictEachTokenButTheFirstOfAStreamOnceAPass) {
  for (int64_t tokens = 0; tokens <= 40; ++tokens) {
    const Ids text = text_of(tokens);
    for (int64_t count = 1; count <= 7; ++count) {
      for (int64_t segment = 1; segment <= 9; ++segment) {
        SCOPED_TRACE(fmt::format("{} tokens, {} streams, segments of {}", tokens, count, segment));
        const int64_t length = tokens / count;
        std::map<int64_t, Ids> inputs, labels;  // by segment, stream by stream
        for (int64_t i = 0; i < length * count; ++i) {
          if (i % length == 0) continue;
          inputs[(i % length - 1) / segment].push_back(static_cast<int32_t>(100 + i - 1));
          labels[(i % length - 1) / segment].push_back(static_cast<int32_t>(100 + i));
        }
        const Streams streams(text, count);
        ASSERT_EQ(streams.segments(segment), std::ssize(inputs));
        for (int64_t number = 0; number < streams.segments(segment); ++number) {
          const StreamSegment part = streams.at(number, segment);
          EXPECT_EQ(part.rows.tokens, inputs[number]);
          EXPECT_EQ(part.labels, labels[number]);
          EXPECT_EQ(part.rows.sentence_count(), count);
          EXPECT_EQ(part.rows.sentence_rows(), part.rows.row_count());
        }
        EXPECT_THROW(streams.at(streams.segments(segment), segment), std::logic_error);
        EXPECT_THROW(streams.at(-1, segment), std::logic_error);
      }
    }
  }
}

TEST(Streams, ThatAreTooShortAreRefusedWithTheSettings) {
  const auto refused = [](int64_t tokens, int64_t streams, int64_t segment, int64_t memory) {
    return error_of([&] {
      require_long_enough(tokens, "dev.txt", {"evaluate.streams", streams}, {"evaluate.segment", segment},
                          {"evaluate.memory", memory});
    });
  };
  EXPECT_EQ(refused(309, 10, 30, 0),
            "dev.txt: 309 symbols in evaluate.streams = 10 streams are 30 a stream, fewer than evaluate.segment = 30 "
            "and the symbol after them; make evaluate.segment or evaluate.streams smaller, or use more text");
  EXPECT_EQ(refused(310, 10, 30, 0), "");
  EXPECT_EQ(refused(310, 10, 30, 31), "");
  EXPECT_EQ(refused(310, 10, 30, 32),
            "dev.txt: 310 symbols in evaluate.streams = 10 streams are 31 a stream, so that evaluate.memory = 32 never "
            "fills; make evaluate.memory or evaluate.streams smaller, or use more text");
  EXPECT_THAT(refused(1, 2, 1, 0), testing::StartsWith("dev.txt: 1 symbol in evaluate.streams = 2 streams are 0"));
}

}  // namespace
}  // namespace tearless::engine::streams_test
