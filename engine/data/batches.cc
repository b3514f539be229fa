#include "engine/data/batches.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "engine/data/cut.h"

namespace tearless::engine {
namespace {

using PairLengths = std::array<int64_t, 2>;  // source, target

auto lengths_in(const ParallelTokens& corpus) {
  return [&corpus](int32_t pair) { return PairLengths{corpus.source_length(pair), corpus.target_length(pair)}; };
}

int64_t longer_side(const PairLengths& lengths) { return std::max(lengths[0], lengths[1]); }

/// The batches of fairseq (batch_by_size_fast). Where the batch would exceed max_tokens with the next pair, it is full;
/// its pairs past a multiple of 8, if it has 8, open the next batch together with that pair. What is opened so is not
/// compared with max_tokens before the pair after it.
std::vector<SentenceIds> cut_as_fairseq(const SentenceIds& sentences, int64_t max_tokens,
                                        const ParallelTokens& corpus) {
  constexpr size_t kMultiple = 8;
  const auto lengths = lengths_in(corpus);
  const auto longest_of = [&](const SentenceIds& pairs) {
    int64_t longest = 0;
    for (const int32_t pair : pairs) longest = std::max(longest, longer_side(lengths(pair)));
    return longest;
  };
  std::vector<SentenceIds> batches;
  SentenceIds batch;
  int64_t longest = 0;
  for (const int32_t pair : sentences) {
    longest = std::max(longest, longer_side(lengths(pair)));
    if (!batch.empty() && (std::ssize(batch) + 1) * longest > max_tokens) {
      const size_t kept = std::max(batch.size() / kMultiple * kMultiple, batch.size() % kMultiple);
      const auto rest = batch.begin() + static_cast<std::ptrdiff_t>(kept);
      SentenceIds next(rest, batch.end());
      batch.erase(rest, batch.end());
      batches.push_back(std::exchange(batch, std::move(next)));
      longest = std::max(longest_of(batch), longer_side(lengths(pair)));
    }
    batch.push_back(pair);
  }
  if (!batch.empty()) batches.push_back(std::move(batch));
  return batches;
}

}  // namespace

std::vector<SentenceIds> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                     int64_t pass) {
  const auto lengths = lengths_in(corpus);
  const auto sort_and_cut = [&](SentenceIds sentences) {
    if (options.count == BatchCount::kMaxTokens) {
      std::ranges::stable_sort(sentences, {}, lengths);  // by source length, of equal ones by target length
      return cut_as_fairseq(sentences, options.tokens, corpus);
    }
    sort_by_length(sentences, lengths);
    const bool sum = options.count == BatchCount::kPaddedSum;
    return cut(sentences, options.tokens, lengths,
               [sum](const PairLengths& longest) { return sum ? longest[0] + longest[1] : longer_side(longest); });
  };
  return batches_of_pass(corpus.size(), options.regenerate, sort_and_cut, seed, pass);
}

void check_fits(const ParallelTokens& corpus, const BatchOptions& options) {
  if (options.count != BatchCount::kMaxTokens) return;
  for (int32_t pair = 0; pair < corpus.size(); ++pair) {
    const int64_t tokens = longer_side(lengths_in(corpus)(pair));
    if (tokens <= options.tokens) continue;
    fail(
        "train.batch.tokens = {}, but a training pair has {} tokens, and train.batch.count = \"max_tokens\" puts no "
        "pair in a batch that is too small for it; raise train.batch.tokens, or lower text.max_words",
        options.tokens, tokens);
  }
}

std::vector<SentenceIds> decoding_batches(const ParallelTokens& corpus, int64_t tokens) {
  SentenceIds sentences = in_order(corpus.size());
  sort_by_length(sentences, lengths_in(corpus));
  return cut(sentences, tokens, lengths_in(corpus), [](const PairLengths& longest) { return 2 * longest[0]; });
}

PackedBatch pack(const ParallelTokens& corpus, std::span<const int32_t> sentences) {
  PackedBatch batch;
  batch.source.offsets = {0};
  batch.target.offsets = {0};
  for (const int32_t sentence : sentences) {
    const auto source = corpus.source[sentence];
    batch.source.tokens.insert(batch.source.tokens.end(), source.begin(), source.end());
    add_sentence(batch.source, sentence, corpus.source_length(sentence));

    const auto target = corpus.target[sentence];
    batch.target.tokens.push_back(kBos);
    batch.target.tokens.insert(batch.target.tokens.end(), target.begin(), target.end());
    batch.labels.insert(batch.labels.end(), target.begin(), target.end());
    batch.labels.push_back(kEos);
    add_sentence(batch.target, sentence, corpus.target_length(sentence));
  }
  return batch;
}

}  // namespace tearless::engine
