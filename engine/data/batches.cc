#include "engine/data/batches.h"

#include <algorithm>
#include <numeric>

#include "engine/data/shuffle.h"
#include "engine/data/vocabulary.h"

namespace tearless::engine {
namespace {

SentenceIds all_lines(const ParallelTokens& corpus) {
  SentenceIds lines(static_cast<size_t>(corpus.size()));
  std::iota(lines.begin(), lines.end(), 0);
  return lines;
}

void sort_by_source_length(SentenceIds& lines, const ParallelTokens& corpus) {
  std::stable_sort(lines.begin(), lines.end(),
                   [&](int32_t a, int32_t b) { return corpus.source_length(a) < corpus.source_length(b); });
}

/// Cuts `lines` greedily in their order. A batch has sentences × width(longest source, longest target) ≤ `budget`,
/// unless it is a single line.
template <class Width>
std::vector<SentenceIds> cut(const SentenceIds& lines, const ParallelTokens& corpus, int64_t budget,
                             const Width& width) {
  std::vector<SentenceIds> batches;
  int64_t max_source_length = 0;
  int64_t max_target_length = 0;
  for (const int32_t line : lines) {
    max_source_length = std::max(max_source_length, corpus.source_length(line));
    max_target_length = std::max(max_target_length, corpus.target_length(line));
    const bool fits =
        !batches.empty() &&
        (static_cast<int64_t>(batches.back().size()) + 1) * width(max_source_length, max_target_length) <= budget;
    if (!fits) {
      batches.emplace_back();
      max_source_length = corpus.source_length(line);
      max_target_length = corpus.target_length(line);
    }
    batches.back().push_back(line);
  }
  return batches;
}

/// Appends positions, sentence ids and the offset of one sentence. The caller appends its tokens.
void add_sentence(PackedRows& rows, int32_t line, int64_t length) {
  for (int32_t position = 0; position < length; ++position) {
    rows.positions.push_back(position);
    rows.sentence_ids.push_back(line);
  }
  rows.offsets.push_back(rows.offsets.back() + static_cast<int32_t>(length));
}

}  // namespace

std::vector<SentenceIds> cut_batches(const ParallelTokens& corpus, const BatchOptions& options, uint32_t seed,
                                     int64_t pass) {
  const RandomStream stream(seed, "order");
  const auto pass_number = static_cast<uint32_t>(pass);
  SentenceIds lines = all_lines(corpus);
  shuffle(lines, stream, pass_number, /*which=*/0);
  sort_by_source_length(lines, corpus);
  const bool sum = options.count == BatchCount::kPaddedSum;
  auto batches = cut(lines, corpus, options.tokens, [sum](int64_t source, int64_t target) {
    return sum ? source + target : std::max(source, target);
  });
  shuffle(batches, stream, pass_number, /*which=*/1);
  return batches;
}

std::vector<SentenceIds> decoding_batches(const ParallelTokens& corpus, int64_t tokens) {
  SentenceIds lines = all_lines(corpus);
  sort_by_source_length(lines, corpus);
  return cut(lines, corpus, tokens, [](int64_t source, int64_t) { return 2 * source; });
}

PackedBatch pack(const ParallelTokens& corpus, std::span<const int32_t> lines) {
  PackedBatch batch;
  batch.source.offsets = {0};
  batch.target.offsets = {0};
  for (const int32_t line : lines) {
    const auto source = corpus.source(line);
    batch.source.tokens.insert(batch.source.tokens.end(), source.begin(), source.end());
    add_sentence(batch.source, line, corpus.source_length(line));

    const auto target = corpus.target(line);
    batch.target.tokens.push_back(kBos);
    batch.target.tokens.insert(batch.target.tokens.end(), target.begin(), target.end());
    batch.labels.insert(batch.labels.end(), target.begin(), target.end());
    batch.labels.push_back(kEos);
    add_sentence(batch.target, line, corpus.target_length(line));
  }
  return batch;
}

}  // namespace tearless::engine
