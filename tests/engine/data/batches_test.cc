// The batch rule, the order of a pass, and packing.
#include "engine/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "engine/data/shuffle.h"
#include "tests/support/error_of.h"

namespace tearless::engine::batches_test {
namespace {

/// Lines of these lengths: {source with EOS, target with BOS}.
ParallelTokens corpus_of(const std::vector<std::pair<int, int>>& lengths) {
  TokenLines source, target;
  for (const auto& [source_length, target_length] : lengths) {
    std::vector<int32_t> line(static_cast<size_t>(source_length), kFirstPiece);
    line.back() = kEos;
    source.add(line);
    target.add(std::vector<int32_t>(static_cast<size_t>(target_length) - 1, kFirstPiece + 1));
  }
  return {std::move(source), std::move(target)};
}

ParallelTokens random_corpus(int lines) {
  std::mt19937 random(3);
  std::vector<std::pair<int, int>> lengths;
  for (int i = 0; i < lines; ++i) {
    const int source = 1 + static_cast<int>(random() % 40);
    lengths.emplace_back(source, 1 + static_cast<int>(random() % (2 * source)));
  }
  return corpus_of(lengths);
}

std::vector<SentenceIds> sorted(std::vector<SentenceIds> batches) {
  for (SentenceIds& batch : batches) std::sort(batch.begin(), batch.end());
  std::sort(batches.begin(), batches.end());
  return batches;
}

int64_t longest(const ParallelTokens& corpus, const SentenceIds& batch, bool of_source) {
  int64_t length = 0;
  for (const int32_t line : batch) {
    length = std::max(length, of_source ? corpus.source_length(line) : corpus.target_length(line));
  }
  return length;
}

TEST(Batches, CountTheLongerSideWithItsPadding) {
  // By source length: (2,3) (3,2) (4,9) (5,5). With 12 tokens: two of 3; the third would make 3 × 9; 2 × 9 is too much
  // as well.
  const ParallelTokens corpus = corpus_of({{5, 5}, {2, 3}, {4, 9}, {3, 2}});
  EXPECT_EQ(sorted(cut_batches(corpus, {.tokens = 12}, 1, 0)), (std::vector<SentenceIds>{{0}, {1, 3}, {2}}));
  // 2 × 9 = 18 fits exactly; with one token less it does not.
  EXPECT_EQ(sorted(cut_batches(corpus, {.tokens = 18}, 1, 0)), (std::vector<SentenceIds>{{0, 2}, {1, 3}}));
  EXPECT_EQ(sorted(cut_batches(corpus, {.tokens = 17}, 1, 0)), (std::vector<SentenceIds>{{0}, {1, 3}, {2}}));
}

TEST(Batches, CountBothSidesIfSet) {
  const ParallelTokens corpus = corpus_of({{2, 3}, {3, 2}});
  const BatchOptions both{.tokens = 12, .count = BatchCount::kPaddedSum};  // 2 × (3 + 3)
  EXPECT_EQ(cut_batches(corpus, both, 1, 0).size(), 1u);
  EXPECT_EQ(cut_batches(corpus, {.tokens = 11, .count = BatchCount::kPaddedSum}, 1, 0).size(), 2u);
  EXPECT_EQ(cut_batches(corpus, {.tokens = 6}, 1, 0).size(), 1u);
}

TEST(Batches, ContainEverySentenceOnceAPassWithinTheBudget) {
  const ParallelTokens corpus = random_corpus(500);
  for (const BatchCount count : {BatchCount::kPaddedMaxSide, BatchCount::kPaddedSum}) {
    for (int64_t pass = 0; pass < 3; ++pass) {
      std::multiset<int32_t> seen;
      for (const SentenceIds& batch : cut_batches(corpus, {.tokens = 200, .count = count}, 7, pass)) {
        ASSERT_FALSE(batch.empty());
        seen.insert(batch.begin(), batch.end());
        const int64_t source = longest(corpus, batch, true);
        const int64_t target = longest(corpus, batch, false);
        const int64_t width = count == BatchCount::kPaddedSum ? source + target : std::max(source, target);
        EXPECT_LE(static_cast<int64_t>(batch.size()) * width, 200);
      }
      ASSERT_EQ(seen.size(), 500u);
      EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), 500u);
    }
  }
}

TEST(Batches, PutAPairThatIsTooLongInABatchOfItsOwn) {
  const ParallelTokens corpus = corpus_of({{3, 3}, {50, 2}, {3, 60}});
  EXPECT_EQ(sorted(cut_batches(corpus, {.tokens = 10}, 1, 0)), (std::vector<SentenceIds>{{0}, {1}, {2}}));
}

TEST(Batches, AreAFunctionOfSeedAndPass) {
  const ParallelTokens corpus = random_corpus(200);
  const BatchOptions options{.tokens = 150};
  const auto batches = cut_batches(corpus, options, 1, 5);
  EXPECT_EQ(cut_batches(corpus, options, 1, 5), batches);
  EXPECT_NE(cut_batches(corpus, options, 1, 6), batches);
  EXPECT_NE(cut_batches(corpus, options, 2, 5), batches);
  EXPECT_NE(sorted(cut_batches(corpus, options, 1, 6)),
            sorted(batches));  // cut into other batches, not only put in another order
}

// --- train.batch.regenerate ---

TEST(BatchesMadeOnce, AreThoseOfTheFirstPassInAnotherOrder) {
  const ParallelTokens corpus = random_corpus(300);
  const BatchOptions once{.tokens = 150, .regenerate = Regenerate::kOnce};
  const auto first = cut_batches(corpus, once, 1, 0);
  EXPECT_EQ(first, cut_batches(corpus, {.tokens = 150}, 1, 0));
  for (int64_t pass = 1; pass < 4; ++pass) {
    const auto later = cut_batches(corpus, once, 1, pass);
    EXPECT_NE(later, first);
    EXPECT_NE(later, cut_batches(corpus, once, 1, pass + 1));
    EXPECT_EQ(sorted(later), sorted(first));
  }
  EXPECT_NE(sorted(cut_batches(corpus, once, 2, 0)), sorted(first)) << "another seed, other batches";
}

TEST(BatchesOfWindows, AreEachOfAThousandSentencesShortestFirst) {
  const ParallelTokens corpus = random_corpus(2300);
  const BatchOptions windows{.tokens = 200, .regenerate = Regenerate::kWindow};
  const auto batches = cut_batches(corpus, windows, 1, 0);
  std::vector<size_t> of_window = {0};
  std::set<int32_t> seen, first_window;
  int64_t last_length = 0;
  for (const SentenceIds& batch : batches) {
    if (of_window.back() == 1000) {
      of_window.push_back(0);
      last_length = 0;
    }
    for (const int32_t line : batch) {
      EXPECT_TRUE(seen.insert(line).second);
      EXPECT_GE(corpus.source_length(line), last_length) << "sorted within a window and yielded in that order";
      last_length = corpus.source_length(line);
      if (of_window.size() == 1) first_window.insert(line);
    }
    of_window.back() += batch.size();
    EXPECT_LE(
        static_cast<int64_t>(batch.size()) * std::max(longest(corpus, batch, true), longest(corpus, batch, false)),
        200);
  }
  EXPECT_EQ(of_window, (std::vector<size_t>{1000, 1000, 300}));
  // The windows are of the shuffled sentences: those of pass 0, as in the other ways.
  SentenceIds shuffled = in_order(2300);
  shuffle(shuffled, RandomStream(1, "order"), 0, 0);
  EXPECT_EQ(first_window, std::set<int32_t>(shuffled.begin(), shuffled.begin() + 1000));
  EXPECT_NE(sorted(cut_batches(corpus, windows, 1, 1)), sorted(batches));
}

// --- fairseq's max-tokens batches ---

std::vector<size_t> sizes_of(const std::vector<SentenceIds>& batches) {
  std::vector<size_t> sizes;
  for (const SentenceIds& batch : batches) sizes.push_back(batch.size());
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

std::vector<std::pair<int, int>> repeated(std::vector<std::pair<int, std::pair<int, int>>> counted) {
  std::vector<std::pair<int, int>> lengths;
  for (const auto& [count, pair] : counted) lengths.insert(lengths.end(), static_cast<size_t>(count), pair);
  return lengths;
}

BatchOptions max_tokens(int64_t tokens) {
  return {.tokens = tokens, .count = BatchCount::kMaxTokens, .regenerate = Regenerate::kOnce};
}

TEST(MaxTokenBatches, AreCutToAMultipleOfEightAndTheRestOpensTheNext) {
  using Sizes = std::vector<size_t>;
  // 20 pairs of one token: the 19th would be too many for 18, so the 18 are cut to 16; two and the last two are left.
  EXPECT_EQ(sizes_of(cut_batches(corpus_of(repeated({{20, {1, 1}}})), max_tokens(18), 1, 0)), (Sizes{4, 16}));
  // Fewer than eight stay together: 5, 5 and 2 of two tokens; the larger side counts, whichever it is.
  EXPECT_EQ(sizes_of(cut_batches(corpus_of(repeated({{12, {1, 2}}})), max_tokens(10), 1, 0)), (Sizes{2, 5, 5}));
  EXPECT_EQ(sizes_of(cut_batches(corpus_of(repeated({{12, {2, 1}}})), max_tokens(11), 1, 0)), (Sizes{2, 5, 5}));
  EXPECT_EQ(sizes_of(cut_batches(corpus_of(repeated({{12, {2, 1}}})), max_tokens(12), 1, 0)), (Sizes{6, 6}));
  // 15 of ten tokens and 9 of forty, 150 at most. The first forty is too much for 16: 8 go, and the other 7 and it are
  // a batch of 320, which the next pair finds full. Then 3 × 40 ≤ 150, and so on.
  EXPECT_EQ(sizes_of(cut_batches(corpus_of(repeated({{15, {10, 10}}, {9, {40, 40}}})), max_tokens(150), 1, 0)),
            (Sizes{2, 3, 3, 8, 8}));
}

// Eight of one token go; the pair with four target tokens is left over, and ten of such length are 40.
TEST(MaxTokenBatches, CountTheLongerTargetOfAPairThatWasLeftOver) {
  using Sizes = std::vector<size_t>;
  const auto lengths = repeated({{8, {1, 1}}, {1, {2, 4}}, {12, {3, 3}}});
  EXPECT_EQ(sizes_of(cut_batches(corpus_of(lengths), max_tokens(40), 1, 0)), (Sizes{5, 8, 8}));
  EXPECT_EQ(sizes_of(cut_batches(corpus_of(repeated({{8, {1, 1}}, {1, {2, 3}}, {12, {3, 3}}})), max_tokens(40), 1, 0)),
            (Sizes{8, 13}))
      << "thirteen of three";
}

TEST(MaxTokenBatches, AreSortedBySourceAndThenByTargetLength) {
  // Four of one source length: the two short targets together, 2 × 2, and the two long ones, 2 × 5.
  const ParallelTokens corpus = corpus_of({{2, 5}, {2, 2}, {2, 5}, {2, 2}, {1, 5}, {1, 5}});
  for (const uint32_t seed : {1, 2, 3, 4, 5}) {
    EXPECT_EQ(sorted(cut_batches(corpus, max_tokens(10), seed, 0)), (std::vector<SentenceIds>{{0, 2}, {1, 3}, {4, 5}}));
  }
}

TEST(MaxTokenBatches, StayAsTheyAreAndChangeTheirOrderByPass) {
  const ParallelTokens corpus = random_corpus(500);
  const auto first = cut_batches(corpus, max_tokens(200), 7, 0), second = cut_batches(corpus, max_tokens(200), 7, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(sorted(first), sorted(second));
  std::set<int32_t> seen;
  for (const SentenceIds& batch : first) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(seen.size(), 500u);
}

TEST(MaxTokenBatches, RefuseAPairThatIsLongerThanTheLimit) {
  const ParallelTokens corpus = corpus_of({{3, 3}, {3, 60}});
  EXPECT_EQ(tearless::test::error_of([&] { check_fits(corpus, max_tokens(59)); }),
            "train.batch.tokens = 59, but a training pair has 60 tokens, and train.batch.count = \"max_tokens\" puts "
            "no pair in a batch that is too small for it; raise train.batch.tokens, or lower text.max_words");
  check_fits(corpus, max_tokens(60));
  check_fits(corpus, {.tokens = 59});
}

TEST(Batches, AreInTheStoredOrder) {
  // Computed by an independent Philox and shuffle in Python. Another order would make every run another run. Sixty
  // lines, so that a sort that is not stable would show.
  std::vector<std::pair<int, int>> lengths;
  for (int i = 0; i < 60; ++i) lengths.emplace_back(2 + i % 3, 2);
  const auto batches = cut_batches(corpus_of(lengths), {.tokens = 20}, 147, 3);
  ASSERT_EQ(batches.size(), 10u);
  EXPECT_EQ(batches[0], (SentenceIds{56, 32, 50, 14, 8}));
  EXPECT_EQ(batches[3], (SentenceIds{43, 1, 4, 49, 55, 16}));
  EXPECT_EQ(batches[9], (SentenceIds{38, 35, 26, 59, 53}));
}

TEST(Batches, ForDecodingAreSortedByTheSourceAndCountItTwice) {
  const ParallelTokens corpus = corpus_of({{5, 1}, {2, 99}, {4, 1}, {3, 1}, {2, 1}});
  EXPECT_EQ(decoding_batches(corpus, 18), (std::vector<SentenceIds>{{1, 4, 3}, {2}, {0}}));
  EXPECT_EQ(decoding_batches(corpus, 1).size(), 5u);
}

TEST(Pack, PutsRowsOneAfterAnother) {
  TokenLines source, target;
  source.add(std::vector<int32_t>{10, 11, kEos});
  source.add(std::vector<int32_t>{kEos});  // an empty line
  source.add(std::vector<int32_t>{12, kEos});
  target.add(std::vector<int32_t>{20});
  target.add(std::vector<int32_t>{});
  target.add(std::vector<int32_t>{21, 22});
  const PackedBatch batch = pack({source, target}, std::vector<int32_t>{2, 1, 0});
  using Row = std::vector<int32_t>;
  EXPECT_EQ(batch.source.tokens, (Row{12, kEos, kEos, 10, 11, kEos}));
  EXPECT_EQ(batch.source.positions, (Row{0, 1, 0, 0, 1, 2}));
  EXPECT_EQ(batch.source.sentence_ids, (Row{2, 2, 1, 0, 0, 0}));
  EXPECT_EQ(batch.source.offsets, (Row{0, 2, 3, 6}));
  EXPECT_EQ(batch.target.tokens, (Row{kBos, 21, 22, kBos, kBos, 20}));
  EXPECT_EQ(batch.target.positions, (Row{0, 1, 2, 0, 0, 1}));
  EXPECT_EQ(batch.target.sentence_ids, (Row{2, 2, 2, 1, 0, 0}));
  EXPECT_EQ(batch.target.offsets, (Row{0, 3, 4, 6}));
  EXPECT_EQ(batch.labels, (Row{21, 22, kEos, kEos, 20, kEos}));
}

}  // namespace
}  // namespace tearless::engine::batches_test
