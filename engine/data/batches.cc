#include "engine/data/batches.h"

#include <algorithm>
#include <array>

#include "engine/data/cut.h"

namespace tearless::engine {
namespace {

using PairLengths = std::array<int64_t, 2>;  // source, target

auto lengths_in(const ParallelTokens& corpus) {
  return [&corpus](int32_t pair) { return PairLengths{corpus.source_length(pair), corpus.target_length(pair)}; };
}

}  // namespace

std::vector<SentenceIds> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                     int64_t pass) {
  const bool sum = options.count == BatchCount::kPaddedSum;
  const auto width = [sum](const PairLengths& longest) {
    return sum ? longest[0] + longest[1] : std::max(longest[0], longest[1]);
  };
  return batches_of_pass(corpus.size(), options.tokens, lengths_in(corpus), width, seed, pass);
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
