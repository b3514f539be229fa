// Cutting sentences into batches by their padded size: what batches of sentence pairs and of labelled sentences share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "engine/data/options.h"
#include "engine/data/parallel_tokens.h"
#include "engine/data/shuffle.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// Stable. `lengths(sentence)` is a std::array of the lengths of its sides, of which the first counts.
template <class Lengths>
void sort_by_length(SentenceIds& sentences, const Lengths& lengths) {
  std::stable_sort(sentences.begin(), sentences.end(),
                   [&](int32_t a, int32_t b) { return lengths(a)[0] < lengths(b)[0]; });
}

/// Cuts `sentences` greedily in their order. A batch has sentences × width(the longest of each side) ≤ `budget`, unless
/// it is a single sentence.
template <class Lengths, class Width>
std::vector<SentenceIds> cut(const SentenceIds& sentences, int64_t budget, const Lengths& lengths, const Width& width) {
  std::vector<SentenceIds> batches;
  decltype(lengths(int32_t{})) longest{};
  for (const int32_t sentence : sentences) {
    const auto these = lengths(sentence);
    for (size_t side = 0; side < these.size(); ++side) longest[side] = std::max(longest[side], these[side]);
    const bool fits = !batches.empty() && (static_cast<int64_t>(batches.back().size()) + 1) * width(longest) <= budget;
    if (!fits) {
      batches.emplace_back();
      longest = these;
    }
    batches.back().push_back(sentence);
  }
  return batches;
}

/// Of Regenerate::kWindow.
inline constexpr size_t kWindowSentences = 1000;

/// The batches of one pass over `count` sentences, a pure function of (seed, pass). `sort_and_cut(sentences)` makes
/// batches of sentences in any order. kBuffers is not for it.
template <class SortAndCut>
std::vector<SentenceIds> batches_of_pass(int64_t count, Regenerate regenerate, const SortAndCut& sort_and_cut,
                                         uint32_t seed, int64_t pass) {
  const RandomStream stream(seed, "order");
  const auto pass_number = static_cast<uint32_t>(pass);
  SentenceIds sentences = in_order(count);
  shuffle(sentences, stream, regenerate == Regenerate::kOnce ? 0 : pass_number, /*which=*/0);
  if (regenerate == Regenerate::kUnsorted) return sort_and_cut(std::move(sentences));
  if (regenerate == Regenerate::kWindow) {
    std::vector<SentenceIds> batches;
    for (size_t begin = 0; begin < sentences.size(); begin += kWindowSentences) {
      const size_t end = std::min(begin + kWindowSentences, sentences.size());
      const auto at = [&](size_t i) { return sentences.begin() + static_cast<std::ptrdiff_t>(i); };
      std::ranges::move(sort_and_cut(SentenceIds(at(begin), at(end))), std::back_inserter(batches));
    }
    return batches;
  }
  std::vector<SentenceIds> batches = sort_and_cut(std::move(sentences));
  shuffle(batches, stream, pass_number, /*which=*/1);
  return batches;
}

/// Appends positions, sentence ids and the offset of one sentence. The caller appends its tokens.
inline void add_sentence(PackedRows& rows, int32_t sentence, int64_t length) {
  for (int32_t position = 0; position < length; ++position) {
    rows.positions.push_back(position);
    rows.sentence_ids.push_back(sentence);
  }
  rows.offsets.push_back(rows.offsets.back() + static_cast<int32_t>(length));
}

}  // namespace tearless::engine
