// The batch rule, the order of a pass, and packing.
#include "engine/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
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

// --- train.batch.truncate ---

TEST(Truncation, LeavesTheFirstTokensOfASideAndTakesEosFirst) {
  TokenLines source, target;
  source.add(std::vector<int32_t>{10, 11, 12, kEos});
  source.add(std::vector<int32_t>{10, 11, kEos});
  target.add(std::vector<int32_t>{20, 21});
  target.add(std::vector<int32_t>{20, 21, 22, 23});
  const ParallelTokens corpus{std::move(source), std::move(target)};
  using Row = std::vector<int32_t>;
  const PackedBatch batch = pack(corpus, Row{0, 1}, /*truncate=*/3);
  EXPECT_EQ(batch.source.tokens, (Row{10, 11, 12, 10, 11, kEos}));
  EXPECT_EQ(batch.source.offsets, (Row{0, 3, 6}));
  EXPECT_EQ(batch.source.positions, (Row{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(batch.target.tokens, (Row{kBos, 20, 21, kBos, 20, 21}));
  EXPECT_EQ(batch.target.offsets, (Row{0, 3, 6}));
  EXPECT_EQ(batch.labels, (Row{20, 21, kEos, 20, 21, 22}));
  const PackedBatch shortest = pack(corpus, Row{1}, /*truncate=*/1);
  EXPECT_EQ(shortest.source.tokens, (Row{10}));
  EXPECT_EQ(shortest.target.tokens, (Row{kBos}));
  EXPECT_EQ(shortest.labels, (Row{20}));
  EXPECT_EQ(pack(corpus, Row{0, 1}, /*truncate=*/5).labels, pack(corpus, Row{0, 1}).labels) << "nothing is longer";
  using Sides = std::array<int64_t, 2>;
  EXPECT_EQ(sides_without_eos(corpus, 3), (Sides{1, 1}));
  EXPECT_EQ(sides_without_eos(corpus, 2), (Sides{2, 2}));
  EXPECT_EQ(sides_without_eos(corpus, 4), (Sides{0, 1}));
  EXPECT_EQ(sides_without_eos(corpus, 0), (Sides{0, 0})) << "0 cuts nothing";
}

TEST(Truncation, IsBeforeLengthsAreCounted) {
  const ParallelTokens corpus = corpus_of({{1, 30}, {3, 3}, {40, 2}, {2, 2}});
  EXPECT_EQ(cut_batches(corpus, {.tokens = 16}, 1, 0).size(), 3u);
  EXPECT_EQ(cut_batches(corpus, {.tokens = 16, .truncate = 4}, 1, 0).size(), 1u);
  EXPECT_EQ(cut_batches(corpus, {.tokens = 15, .truncate = 4}, 1, 0).size(), 2u);
  EXPECT_EQ(cut_batches(corpus, {.tokens = 32, .count = BatchCount::kPaddedSum, .truncate = 4}, 1, 0).size(), 1u);
  // Sides without EOS count it for zero: four of five are twenty.
  const BatchOptions below{.tokens = 21, .count = BatchCount::kPaddedBelow, .truncate = 4};
  EXPECT_EQ(cut_batches(corpus, below, 1, 0).size(), 1u);
  EXPECT_EQ(cut_batches(corpus, {.tokens = 20, .count = BatchCount::kPaddedBelow, .truncate = 4}, 1, 0).size(), 2u);
  BatchOptions fairseq = max_tokens(16);
  fairseq.truncate = 4;
  EXPECT_EQ(cut_batches(corpus, fairseq, 1, 0).size(), 1u);
  EXPECT_EQ(tearless::test::error_of([&] { check_fits(corpus, max_tokens(16)); }).substr(0, 26),
            "train.batch.tokens = 16, b");
  check_fits(corpus, fairseq);
}

// --- the batches of zero ---

BatchOptions zero(int64_t tokens, int64_t buffer, double leak_ratio, int64_t truncate = 0) {
  return {.tokens = tokens,
          .count = BatchCount::kPaddedBelow,
          .regenerate = Regenerate::kBuffers,
          .buffer = buffer,
          .leak_ratio = leak_ratio,
          .truncate = truncate};
}

TEST(BatchesBelowTheLimit, CloseBeforeTheyReachIt) {
  const auto of = [](int64_t tokens) {
    return sizes_of(
        cut_batches(corpus_of(repeated({{7, {2, 3}}})), {.tokens = tokens, .count = BatchCount::kPaddedBelow}, 1, 0));
  };
  using Sizes = std::vector<size_t>;
  EXPECT_EQ(of(12), (Sizes{1, 3, 3})) << "four of three tokens are twelve";
  EXPECT_EQ(of(13), (Sizes{3, 4}));
  for (const int64_t tokens : {3, 1}) EXPECT_EQ(of(tokens), (Sizes(7, 1))) << "a pair that reaches it is by itself";
}

// The longer sides are 2 5 3 4 3 2 4 2.
ParallelTokens eight_pairs() { return corpus_of({{2, 1}, {1, 5}, {3, 3}, {4, 2}, {3, 1}, {1, 2}, {2, 4}, {2, 2}}); }

TEST(BatchesOfBuffers, AreOfTheFilesOrderAndSortedByTheLongerSideWithinABuffer) {
  using Batches = std::vector<SentenceIds>;
  EXPECT_EQ(sorted(cut_batches(eight_pairs(), zero(9, 4, 0), 1, 0)), (Batches{{0, 2}, {1}, {3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(sorted(cut_batches(eight_pairs(), zero(9, 8, 0), 1, 0)), (Batches{{0, 5, 7}, {1}, {2, 4}, {3, 6}}));
}

// Half of nine tokens: {3} of the first buffer, with four, goes into the next, where it meets 6. Then 4 and 5 go on,
// and with 7 they are too small again at the end.
TEST(BatchesOfBuffers, ThatAreTooSmallGoIntoTheNextBufferAndAtTheEndOfAPassIntoNone) {
  using Batches = std::vector<SentenceIds>;
  EXPECT_EQ(sorted(cut_batches(eight_pairs(), zero(9, 4, 0.5), 1, 0)), (Batches{{0, 2}, {1}, {3, 6}}));
  // {3} has four tokens: not fewer than 4 / 9 of nine.
  EXPECT_EQ(sorted(cut_batches(eight_pairs(), zero(9, 4, 4.0 / 9), 1, 0)), (Batches{{0, 2}, {1}, {3}, {4, 6}, {5, 7}}));
}

TEST(BatchesOfBuffers, AreTheSameInEachPassAndShuffledWithinTheirBuffer) {
  const ParallelTokens corpus = random_corpus(900);
  const auto first = cut_batches(corpus, zero(200, 300, 0), 7, 0),
             second = cut_batches(corpus, zero(200, 300, 0), 7, 1);
  EXPECT_EQ(cut_batches(corpus, zero(200, 300, 0), 7, 0), first);
  EXPECT_NE(first, second);
  EXPECT_NE(cut_batches(corpus, zero(200, 300, 0), 8, 0), first);
  EXPECT_EQ(sorted(first), sorted(second));
  for (const auto& batches : {first, second}) {
    int32_t buffer = 0;
    std::array<size_t, 3> sentences{};
    bool by_length = true;
    int64_t last = 0;
    for (const SentenceIds& batch : batches) {
      for (const int32_t line : batch) {
        EXPECT_GE(line / 300, buffer) << "the batches of a buffer are before those of the next";
        buffer = line / 300;
        ++sentences[static_cast<size_t>(buffer)];
      }
      const int64_t length = std::max(longest(corpus, batch, true), longest(corpus, batch, false));
      by_length = by_length && length >= last;
      last = length;
    }
    EXPECT_EQ(sentences, (std::array<size_t, 3>{300, 300, 300}));
    EXPECT_FALSE(by_length);
  }
}

TEST(BatchesOfBuffers, OfEqualLengthsAreNotInTheSameOrderInTwoBuffers) {
  std::vector<std::pair<int, int>> lengths;
  for (int i = 0; i < 200; ++i) lengths.emplace_back(1 + i % 100 / 3, 1);
  const auto batches = cut_batches(corpus_of(lengths), zero(100, 100, 0), 1, 0);
  std::vector<SentenceIds> first, second;
  for (SentenceIds batch : batches) {
    const bool is_first = batch.front() < 100;
    for (int32_t& line : batch) line %= 100;
    (is_first ? first : second).push_back(std::move(batch));
  }
  EXPECT_EQ(sorted(first), sorted(second));
  EXPECT_NE(first, second);
}

/// The batches of zero's reader, written apart from the engine's: a multimap sorts, and each batch is looked for from
/// its first sentence.
std::vector<SentenceIds> read_by_zero(const ParallelTokens& corpus, int64_t tokens, size_t buffer, double leak_ratio,
                                      int64_t max_len) {
  const auto words = [&](int32_t line) {
    return std::pair<int64_t, int64_t>(corpus.source.length(line) - 1, corpus.target.length(line));
  };
  const auto with_eos = [&](int64_t count) { return std::min(count, max_len) + 1; };
  std::vector<SentenceIds> batches;
  std::vector<int32_t> waiting;
  for (int32_t line = 0; line < corpus.size(); ++line) {
    waiting.push_back(line);
    if (waiting.size() < buffer && line + 1 < corpus.size()) continue;
    std::multimap<int64_t, int32_t> by_length;
    for (const int32_t i : waiting) by_length.emplace(with_eos(std::max(words(i).first, words(i).second)), i);
    waiting.clear();
    for (auto first = by_length.begin(); first != by_length.end();) {
      auto end = std::next(first);
      for (int64_t count = 2; end != by_length.end() && count * end->first < tokens; ++count) ++end;
      SentenceIds batch;
      int64_t source = 0, target = 0;
      for (; first != end; ++first) {
        batch.push_back(first->second);
        source += std::min(words(first->second).first + 1, max_len);
        target += std::min(words(first->second).second + 1, max_len);
      }
      const bool small = static_cast<double>(std::max(source, target)) < leak_ratio * static_cast<double>(tokens);
      small ? void(waiting.insert(waiting.end(), batch.begin(), batch.end())) : batches.push_back(batch);
    }
  }
  return batches;
}

TEST(BatchesOfBuffers, AreThoseOfZerosReader) {
  const ParallelTokens corpus = random_corpus(400);
  int64_t with_fewer = 0, with_all = 0;
  for (const int64_t tokens : {40, 100, 400}) {
    for (const int64_t buffer : {7, 60, 1000}) {
      for (const double leak_ratio : {0.0, 0.3, 0.5}) {
        for (const int64_t truncate : {0, 10, 25}) {
          const auto batches = sorted(cut_batches(corpus, zero(tokens, buffer, leak_ratio, truncate), 3, 2));
          const auto expected = read_by_zero(corpus, tokens, static_cast<size_t>(buffer), leak_ratio,
                                             truncate > 0 ? truncate : int64_t{1'000'000});
          EXPECT_EQ(batches, sorted(expected)) << tokens << " " << buffer << " " << leak_ratio << " " << truncate;
          std::set<int32_t> seen;
          size_t sentences = 0;
          for (const SentenceIds& batch : batches) {
            sentences += batch.size();
            seen.insert(batch.begin(), batch.end());
          }
          EXPECT_EQ(seen.size(), sentences) << "no sentence twice";
          ++(sentences == 400 ? with_all : with_fewer);
        }
      }
    }
  }
  EXPECT_GT(with_all, 0);
  EXPECT_GT(with_fewer, 0);
}

TEST(BatchesOfBuffers, AreRefusedWhereAllAreTooSmall) {
  const ParallelTokens corpus = corpus_of(repeated({{10, {3, 3}}}));
  check_fits(corpus, zero(60, 5, 0.5));
  EXPECT_EQ(tearless::test::error_of([&] { check_fits(corpus, zero(61, 5, 0.5)); }),
            "train.batch.leak_ratio = 0.5 leaves no batch: each has fewer tokens than this part of train.batch.tokens "
            "= 61; lower one of the two");
  check_fits(corpus, zero(61, 5, 0.4));
}

// --- the batches of JoeyNMT ---

TEST(BatchesOfBosAndEos, CountThemOnTheTargetAndNeitherOnTheSource) {
  const auto of = [](std::pair<int, int> lengths, int64_t tokens, int64_t truncate = 0) {
    const BatchOptions options{.tokens = tokens, .count = BatchCount::kPaddedBosEos, .truncate = truncate};
    return sizes_of(cut_batches(corpus_of(repeated({{4, lengths}})), options, 1, 0));
  };
  using Sizes = std::vector<size_t>;
  EXPECT_EQ(of({6, 2}, 20), (Sizes{4})) << "five source words";
  EXPECT_EQ(of({6, 2}, 19), (Sizes{1, 3}));
  EXPECT_EQ(of({2, 4}, 20), (Sizes{4})) << "three target words";
  EXPECT_EQ(of({2, 4}, 19), (Sizes{1, 3}));
  EXPECT_EQ(of({9, 2}, 20, /*truncate=*/5), (Sizes{4})) << "five source words are left, and no EOS";
  EXPECT_EQ(of({9, 2}, 19, /*truncate=*/5), (Sizes{1, 3}));
  EXPECT_EQ(of({2, 9}, 24, /*truncate=*/5), (Sizes{4}));
  EXPECT_EQ(of({2, 9}, 23, /*truncate=*/5), (Sizes{1, 3}));
}

TEST(UnsortedBatches, AreCutInTheShuffledOrderAndStayInIt) {
  const ParallelTokens corpus = random_corpus(300);
  const BatchOptions joey{.tokens = 150, .count = BatchCount::kPaddedBosEos, .regenerate = Regenerate::kUnsorted};
  for (const int64_t pass : {0, 4}) {
    SentenceIds order = in_order(300);
    shuffle(order, RandomStream(5, "order"), static_cast<uint32_t>(pass), 0);
    std::vector<SentenceIds> expected;
    for (size_t first = 0, end = 0; first < order.size(); first = end) {
      int64_t source = 0, target = 0;  // words
      for (; end < order.size(); ++end) {
        source = std::max(source, corpus.source.length(order[end]) - 1);
        target = std::max(target, corpus.target.length(order[end]));
        if (end > first && static_cast<int64_t>(end - first + 1) * std::max(source, target + 2) > 150) break;
      }
      expected.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(first),
                            order.begin() + static_cast<std::ptrdiff_t>(end));
    }
    EXPECT_EQ(cut_batches(corpus, joey, 5, pass), expected);
    EXPECT_NE(cut_batches(corpus, joey, 6, pass), expected);
  }
  const ParallelTokens overlong = corpus_of({{3, 3}, {50, 2}, {3, 60}});
  EXPECT_EQ(cut_batches(overlong, {.tokens = 10, .regenerate = Regenerate::kUnsorted}, 1, 0).size(), 3u);
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
  EXPECT_EQ(decoding_batches(corpus, 18, /*in_file_order=*/true), (std::vector<SentenceIds>{{0}, {1, 2}, {3, 4}}));
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
