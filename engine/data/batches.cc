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

/// By the number of a pair; 0: no limit.
auto lengths_in(const ParallelTokens& corpus, int64_t limit) {
  return [&corpus, limit](int32_t pair) {
    const auto within = [limit](int64_t length) { return limit > 0 ? std::min(length, limit) : length; };
    return PairLengths{within(corpus.source_length(pair)), within(corpus.target_length(pair))};
  };
}

/// The lengths that a batch is cut by: those of its rows, but as `options.count` has EOS and BOS.
auto counted_lengths_in(const ParallelTokens& corpus, const BatchOptions& options) {
  const bool keeps_eos = options.count == BatchCount::kPaddedBelow && options.truncate > 0;
  const bool bos_eos = options.count == BatchCount::kPaddedBosEos;
  const auto whole = lengths_in(corpus, 0), cut = lengths_in(corpus, options.truncate + (keeps_eos ? 1 : 0));
  return [=](int32_t pair) {
    PairLengths lengths = cut(pair);
    if (bos_eos && lengths[0] == whole(pair)[0]) --lengths[0];  // else EOS is cut off already
    if (bos_eos) ++lengths[1];
    return lengths;
  };
}

int64_t longer_side(const PairLengths& lengths) { return std::max(lengths[0], lengths[1]); }

/// The batches of fairseq (batch_by_size_fast). Where the batch would exceed max_tokens with the next pair, it is full;
/// its pairs past a multiple of 8, if it has 8, open the next batch together with that pair. What is opened so is not
/// compared with max_tokens before the pair after it.
std::vector<SentenceIds> cut_as_fairseq(const SentenceIds& sentences, int64_t max_tokens, const auto& lengths) {
  constexpr size_t kMultiple = 8;
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

/// Sorts sentences as regenerate and count have them, and cuts them.
std::vector<SentenceIds> sort_and_cut(SentenceIds sentences, const ParallelTokens& corpus,
                                      const BatchOptions& options) {
  const auto lengths = counted_lengths_in(corpus, options);
  const bool fairseq = options.count == BatchCount::kMaxTokens;
  if (options.regenerate == Regenerate::kBuffers) {
    std::ranges::stable_sort(sentences, {}, [&](int32_t pair) { return longer_side(lengths(pair)); });
  } else if (options.regenerate != Regenerate::kUnsorted && fairseq) {
    std::ranges::stable_sort(sentences, {}, lengths);  // by source length, of equal ones by target length
  } else if (options.regenerate != Regenerate::kUnsorted) {
    sort_by_length(sentences, lengths);
  }
  if (fairseq) return cut_as_fairseq(sentences, options.tokens, lengths);
  const bool sum = options.count == BatchCount::kPaddedSum, below = options.count == BatchCount::kPaddedBelow;
  return cut(sentences, options.tokens - (below ? 1 : 0), lengths,
             [sum](const PairLengths& longest) { return sum ? longest[0] + longest[1] : longer_side(longest); });
}

/// Regenerate::kBuffers.
std::vector<SentenceIds> batches_of_buffers(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                            int64_t pass) {
  const RandomStream stream(seed, "order");
  const auto lengths = lengths_in(corpus, options.truncate);
  const auto is_small = [&](const SentenceIds& batch) {
    PairLengths tokens{};
    for (const int32_t pair : batch) {
      for (size_t side = 0; side < tokens.size(); ++side) tokens[side] += lengths(pair)[side];
    }
    return static_cast<double>(longer_side(tokens)) < options.leak_ratio * static_cast<double>(options.tokens);
  };
  std::vector<SentenceIds> batches;
  SentenceIds buffer;
  uint32_t buffers = 0;
  const auto cut_buffer = [&] {
    std::vector<SentenceIds> full = sort_and_cut(std::exchange(buffer, {}), corpus, options);
    const auto small = std::ranges::stable_partition(full, [&](const SentenceIds& b) { return !is_small(b); });
    for (const SentenceIds& batch : small) buffer.insert(buffer.end(), batch.begin(), batch.end());
    full.erase(small.begin(), small.end());
    shuffle(full, stream, static_cast<uint32_t>(pass), /*which=*/buffers++);
    std::ranges::move(full, std::back_inserter(batches));
  };
  for (int32_t pair = 0; pair < corpus.size(); ++pair) {
    buffer.push_back(pair);
    if (std::ssize(buffer) >= options.buffer) cut_buffer();
  }
  cut_buffer();
  return batches;
}

void check_fits_max_tokens(const ParallelTokens& corpus, const BatchOptions& options) {
  for (int32_t pair = 0; pair < corpus.size(); ++pair) {
    const int64_t tokens = longer_side(counted_lengths_in(corpus, options)(pair));
    if (tokens <= options.tokens) continue;
    fail(
        "train.batch.tokens = {}, but a training pair has {} tokens, and train.batch.count = \"max_tokens\" puts no "
        "pair in a batch that is too small for it; raise train.batch.tokens, or lower text.max_words",
        options.tokens, tokens);
  }
}

}  // namespace

std::vector<SentenceIds> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                     int64_t pass) {
  if (options.regenerate == Regenerate::kBuffers) return batches_of_buffers(corpus, options, seed, pass);
  return batches_of_pass(
      corpus.size(), options.regenerate,
      [&](SentenceIds sentences) { return sort_and_cut(std::move(sentences), corpus, options); }, seed, pass);
}

void check_fits(const ParallelTokens& corpus, const BatchOptions& options) {
  if (options.count == BatchCount::kMaxTokens) check_fits_max_tokens(corpus, options);
  if (options.regenerate == Regenerate::kBuffers && cut_batches(corpus, options, /*seed=*/0, /*pass=*/0).empty()) {
    fail(
        "train.batch.leak_ratio = {} leaves no batch: each has fewer tokens than this part of train.batch.tokens = {}; "
        "lower one of the two",
        options.leak_ratio, options.tokens);
  }
}

std::vector<SentenceIds> decoding_batches(const ParallelTokens& corpus, int64_t tokens, bool in_file_order) {
  SentenceIds sentences = in_order(corpus.size());
  const auto lengths = lengths_in(corpus, 0);
  if (!in_file_order) sort_by_length(sentences, lengths);
  return cut(sentences, tokens, lengths, [](const PairLengths& longest) { return 2 * longest[0]; });
}

std::array<int64_t, 2> sides_without_eos(const ParallelTokens& corpus, int64_t truncate) {
  std::array<int64_t, 2> sides{};
  for (int32_t pair = 0; truncate > 0 && pair < corpus.size(); ++pair) {
    const PairLengths lengths = lengths_in(corpus, 0)(pair);
    for (size_t side = 0; side < sides.size(); ++side) sides[side] += lengths[side] > truncate;
  }
  return sides;
}

PackedBatch pack(const ParallelTokens& corpus, std::span<const int32_t> sentences, int64_t truncate) {
  PackedBatch batch;
  batch.source.offsets = {0};
  batch.target.offsets = {0};
  for (const int32_t sentence : sentences) {
    const auto [source_length, target_length] = lengths_in(corpus, truncate)(sentence);
    const auto source = corpus.source[sentence].first(static_cast<size_t>(source_length));
    batch.source.tokens.insert(batch.source.tokens.end(), source.begin(), source.end());
    add_sentence(batch.source, sentence, source_length);

    const auto target = corpus.target[sentence];
    const auto inputs = target.first(static_cast<size_t>(target_length) - 1);
    batch.target.tokens.push_back(kBos);
    batch.target.tokens.insert(batch.target.tokens.end(), inputs.begin(), inputs.end());
    batch.labels.insert(batch.labels.end(), inputs.begin(), inputs.end());
    batch.labels.push_back(inputs.size() < target.size() ? target[inputs.size()] : kEos);
    add_sentence(batch.target, sentence, target_length);
  }
  return batch;
}

}  // namespace tearless::engine
