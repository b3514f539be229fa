// Random numbers: the published answers of Philox, thresholds at their exact edge, masks that depend on the element and
// not on the batch, and masks that look random.
#include "engine/ops/random.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "engine/ops/add_norm.h"
#include "engine/ops/embedding.h"
#include "tests/engine/ops/op_check.h"

namespace tearless::engine::random_test {
namespace {

// The known answers distributed with Random123 (kat_vectors, philox4x32 10).
static_assert(philox({0, 0}, {0, 0, 0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
              PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
              PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

at::Tensor mask(const Dropout& dropout, const PackedRows& rows, int64_t width) {
  return keep_scale_tensor(dropout, rows, width, at::ones({1}, at::kFloat));
}

TEST(Random, ADrawIsAFunctionOfSeedStreamUpdateAndElement) {
  const RandomStream stream(1, "drop.a");
  std::set<uint32_t> draws = {stream.draw(0, 0, 0, 0),
                              stream.draw(1, 0, 0, 0),
                              stream.draw(4, 0, 0, 0),
                              stream.draw(0, 1, 0, 0),
                              stream.draw(0, 0, 1, 0),
                              stream.draw(0, 0, 0, 1),
                              RandomStream(2, "drop.a").draw(0, 0, 0, 0),
                              RandomStream(1, "drop.b").draw(0, 0, 0, 0)};
  EXPECT_EQ(draws.size(), 8u);
  EXPECT_EQ(stream.draw(6, 7, 8, 9), stream.block(1, 7, 8, 9)[2]);
}

TEST(Random, UniformNumbersAreNeverZeroOrOne) {
  EXPECT_GT(uniform_open(0), 0.0);
  EXPECT_LT(uniform_open(0xffffffff), 1.0);
  EXPECT_EQ(uniform_open(0x80000000), 0.5 + 0x1p-33);
}

TEST(Dropout, ThresholdIsTheRoundedProbability) {
  EXPECT_EQ(Dropout::with(0.5, {}, 1).threshold, 0x80000000u);
  EXPECT_EQ(Dropout::with(0.3, {}, 1).threshold, 1288490189u);
  EXPECT_EQ(Dropout::with(0.1, {}, 1).threshold, 429496730u);
  EXPECT_EQ(Dropout::with(0.3, {}, 1).scale, static_cast<float>(1 / 0.7));
  EXPECT_FALSE(Dropout::with(0, {}, 1).active());
}

TEST(Dropout, OfEverythingOrOfAProbabilityBelowZeroIsRefused) {
  for (const double p : {-0.1, 1.0, 1.5, std::nan("")}) EXPECT_THROW(Dropout::with(p, {}, 1), std::logic_error) << p;
}

TEST(Dropout, AnElementIsRetainedIfItsBitsReachTheThreshold) {
  const PackedRows rows = test::packed_rows({1});
  const auto line = static_cast<uint32_t>(rows.sentence_ids[0]);
  Dropout dropout = Dropout::with(0.5, RandomStream(1, "drop.edge"), 3);
  for (uint32_t channel = 0; channel < 6; ++channel) {
    const uint32_t bits = dropout.stream.draw(channel, 0, line, 3);
    for (const uint32_t above : {0u, 1u}) {
      dropout.threshold = bits + above;
      EXPECT_EQ(keep_scales(dropout, channel / 4, 0, line)[channel % 4], above == 0 ? 2.0f : 0.0f);
      EXPECT_EQ(mask(dropout, rows, 6)[0][channel].item<float>(), above == 0 ? 2.0f : 0.0f);
    }
  }
  const uint32_t word_bits = dropout.stream.draw(0, 0, line, 3);
  dropout.threshold = word_bits;
  EXPECT_EQ(drop_words(rows, dropout, 99).tokens, rows.tokens);
  dropout.threshold = word_bits + 1;
  EXPECT_EQ(drop_words(rows, dropout, 99).tokens, std::vector<int32_t>{99});
}

TEST(Dropout, KernelsAndFormulasMakeTheDefinedMasks) {
  const PackedRows rows = test::packed_rows({7, 1, 30});
  const Dropout dropout = Dropout::with(0.3, RandomStream(0xdeadbeef, "drop.encoder.1.ffn"), 0x80000001u);
  for (const int64_t width : {1, 13, 64, 130}) {
    const at::Tensor by_formula = mask(dropout, rows, width);
    for (int64_t t = 0; t < rows.row_count(); ++t) {
      const auto row = static_cast<size_t>(t);
      for (int64_t c = 0; c < width; ++c) {
        const auto defined =
            keep_scales(dropout, static_cast<uint32_t>(c / 4), static_cast<uint32_t>(rows.positions[row]),
                        static_cast<uint32_t>(rows.sentence_ids[row]));
        ASSERT_EQ(by_formula[t][c].item<float>(), defined[static_cast<size_t>(c % 4)]) << t << ", " << c;
      }
    }
    test::for_each_cpu_backend([&] {
      Tape tape(Tape::Kind::kForward);
      const Value ones(at::ones({rows.row_count(), width}, at::kFloat));
      EXPECT_TRUE(at::equal(add_dropped(tape, Value(ones.data() * 0), ones, dropout, rows).data(), by_formula));
    });
  }
}

TEST(Dropout, MasksAreEqualForAnySplitOfTheBatch) {
  const PackedRows together = test::packed_rows({4, 9, 2});
  const Dropout dropout = Dropout::with(0.3, RandomStream(1, "drop.split"), 5);
  const at::Tensor whole = mask(dropout, together, 10);
  for (size_t i = 0; i + 1 < together.offsets.size(); ++i) {
    const auto begin = static_cast<size_t>(together.offsets[i]);
    const auto end = static_cast<size_t>(together.offsets[i + 1]);
    PackedRows alone;
    alone.offsets = {0, static_cast<int32_t>(end - begin)};
    for (size_t t = begin; t < end; ++t) {
      alone.tokens.push_back(together.tokens[t]);
      alone.positions.push_back(together.positions[t]);
      alone.sentence_ids.push_back(together.sentence_ids[t]);
    }
    EXPECT_TRUE(at::equal(mask(dropout, alone, 10), whole.slice(0, together.offsets[i], together.offsets[i + 1])));
    const PackedRows dropped = drop_words(alone, dropout, 99);
    const PackedRows dropped_together = drop_words(together, dropout, 99);
    EXPECT_TRUE(std::equal(dropped.tokens.begin(), dropped.tokens.end(),
                           dropped_together.tokens.begin() + together.offsets[i]));
  }
}

// With N elements the share of survivors has a standard deviation of √(p(1-p)/N); two independent masks agree on a
// share p² + (1-p)² of them. Five standard deviations, and fixed seeds: the test cannot flicker.
TEST(Dropout, MasksHaveTheRightMeanAndAreIndependent) {
  const PackedRows rows = test::packed_rows({40, 40, 40});
  constexpr int64_t kWidth = 200;
  const double count = static_cast<double>(rows.row_count() * kWidth);
  for (const double p : {0.1, 0.3, 0.5, 0.9}) {
    const auto alive = [&](const char* stream, uint32_t update) {
      return mask(Dropout::with(p, RandomStream(7, stream), update), rows, kWidth).gt(0);
    };
    const at::Tensor reference = alive("drop.a", 1);
    EXPECT_NEAR(reference.to(at::kDouble).mean().item<double>(), 1 - p, 5 * std::sqrt(p * (1 - p) / count));
    const double agree = p * p + (1 - p) * (1 - p);
    const auto expect_independent = [&](const at::Tensor& a, const at::Tensor& b) {
      const double n = static_cast<double>(a.numel());
      EXPECT_NEAR(a.eq(b).to(at::kDouble).mean().item<double>(), agree, 5 * std::sqrt(agree * (1 - agree) / n));
    };
    expect_independent(reference, alive("drop.a", 2));
    expect_independent(reference, alive("drop.b", 1));
    expect_independent(reference.slice(0, 0, 40), reference.slice(0, 40, 80));             // neighbouring sentences
    expect_independent(reference.slice(0, 0, 119), reference.slice(0, 1, 120));            // neighbouring positions
    expect_independent(reference.slice(1, 0, kWidth - 1), reference.slice(1, 1, kWidth));  // neighbouring channels
  }
}

TEST(Dropout, KeepsTheExpectedSum) {
  const PackedRows rows = test::packed_rows({40, 40});
  const Dropout dropout = Dropout::with(0.3, RandomStream(7, "drop.sum"), 1);
  Tape tape(Tape::Kind::kForward);
  const Value y(at::ones({80, 300}, at::kFloat));
  const at::Tensor sum = add_dropped(tape, Value(y.data() * 0), y, dropout, rows).data();
  EXPECT_NEAR(sum.mean().item<double>(), 1.0, 5 * std::sqrt(0.3 / 0.7 / (80 * 300)));
}

TEST(WordDropout, ReplacesWordsAtTheSetRateInACopyOfTheBatch) {
  PackedRows rows = test::packed_rows(std::vector<int32_t>(200, 30));
  for (int32_t& token : rows.tokens) token += 4;
  const PackedRows before = rows;
  const PackedRows dropped = drop_words(rows, Dropout::with(0.1, RandomStream(7, "drop.word.source"), 1), kUnk);
  EXPECT_EQ(rows.tokens, before.tokens);
  int64_t unknown = 0;
  for (size_t t = 0; t < rows.tokens.size(); ++t) {
    unknown += dropped.tokens[t] == kUnk;
    EXPECT_TRUE(dropped.tokens[t] == kUnk || dropped.tokens[t] == rows.tokens[t]);
  }
  EXPECT_NEAR(static_cast<double>(unknown) / 6000, 0.1, 5 * std::sqrt(0.09 / 6000));
}

TEST(WordDropout, LeavesWhatIsNoWord) {
  for (const int32_t no_word : {kPad, kNoToken}) {
    PackedRows rows = test::packed_rows(std::vector<int32_t>(20, 30));
    for (int32_t& token : rows.tokens) token = no_word;
    EXPECT_EQ(drop_words(rows, Dropout::with(0.9, RandomStream(7, "drop.word.target"), 1), kUnk).tokens, rows.tokens);
  }
}

}  // namespace
}  // namespace tearless::engine::random_test
