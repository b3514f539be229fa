#include "engine/data/batches.h"

#include <algorithm>
#include <numeric>

#include "engine/data/shuffle.h"
#include "engine/data/vocabulary.h"

namespace tearless::engine {
namespace {

SentenceIds all_sentences(const ParallelTokens& corpus) {
  SentenceIds sentences(static_cast<size_t>(corpus.size()));
  std::iota(sentences.begin(), sentences.end(), 0);
  return sentences;
}

void sort_by_source_length(SentenceIds& sentences, const ParallelTokens& corpus) {
  std::stable_sort(sentences.begin(), sentences.end(),
                   [&](int32_t a, int32_t b) { return corpus.source_length(a) < corpus.source_length(b); });
}

/// Cuts `sentences` greedily in their order. A batch has sentences × width(longest source, longest target) ≤ `budget`,
/// unless it is a single sentence.
template <class Width>
std::vector<SentenceIds> cut(const SentenceIds& sentences, const ParallelTokens& corpus, int64_t budget,
                             const Width& width) {
  std::vector<SentenceIds> batches;
  int64_t max_source_length = 0;
  int64_t max_target_length = 0;
  for (const int32_t sentence : sentences) {
    max_source_length = std::max(max_source_length, corpus.source_length(sentence));
    max_target_length = std::max(max_target_length, corpus.target_length(sentence));
    const bool fits =
        !batches.empty() &&
        (static_cast<int64_t>(batches.back().size()) + 1) * width(max_source_length, max_target_length) <= budget;
    if (!fits) {
      batches.emplace_back();
      max_source_length = corpus.source_length(sentence);
      max_target_length = corpus.target_length(sentence);
    }
    batches.back().push_back(sentence);
  }
  return batches;
}

/// Appends positions, sentence ids and the offset of one sentence. The caller appends its tokens.
void add_sentence(PackedRows& rows, int32_t sentence, int64_t length) {
  for (int32_t position = 0; position < length; ++position) {
    rows.positions.push_back(position);
    rows.sentence_ids.push_back(sentence);
  }
  rows.offsets.push_back(rows.offsets.back() + static_cast<int32_t>(length));
}

}  // namespace

std::vector<SentenceIds> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                     int64_t pass) {
  const RandomStream stream(seed, "order");
  const auto pass_number = static_cast<uint32_t>(pass);
  SentenceIds sentences = all_sentences(corpus);
  shuffle(sentences, stream, pass_number, /*which=*/0);
  sort_by_source_length(sentences, corpus);
  const bool sum = options.count == BatchCount::kPaddedSum;
  auto batches = cut(sentences, corpus, options.tokens, [sum](int64_t source, int64_t target) {
    return sum ? source + target : std::max(source, target);
  });
  shuffle(batches, stream, pass_number, /*which=*/1);
  return batches;
}

std::vector<SentenceIds> decoding_batches(const ParallelTokens& corpus, int64_t tokens) {
  SentenceIds sentences = all_sentences(corpus);
  sort_by_source_length(sentences, corpus);
  return cut(sentences, corpus, tokens, [](int64_t source, int64_t) { return 2 * source; });
}

PackedBatch pack(const ParallelTokens& corpus, std::span<const int32_t> sentences) {
  PackedBatch batch;
  batch.source.offsets = {0};
  batch.target.offsets = {0};
  for (const int32_t sentence : sentences) {
    const auto source = corpus.source(sentence);
    batch.source.tokens.insert(batch.source.tokens.end(), source.begin(), source.end());
    add_sentence(batch.source, sentence, corpus.source_length(sentence));

    const auto target = corpus.target(sentence);
    batch.target.tokens.push_back(kBos);
    batch.target.tokens.insert(batch.target.tokens.end(), target.begin(), target.end());
    batch.labels.insert(batch.labels.end(), target.begin(), target.end());
    batch.labels.push_back(kEos);
    add_sentence(batch.target, sentence, corpus.target_length(sentence));
  }
  return batch;
}

}  // namespace tearless::engine
