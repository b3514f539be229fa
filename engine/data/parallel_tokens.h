// The sentence pairs of a set as token numbers, in corpus order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// Some sentences of a set, such as those of a batch: line numbers in the set, from 0.
using SentenceIds = std::vector<int32_t>;

/// Sentences in one array: sentence i is tokens[offsets[i]] … tokens[offsets[i + 1] - 1].
struct TokenLines {
  std::vector<int32_t> tokens;
  std::vector<int64_t> offsets = {0};  // [lines + 1]

  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t length(int64_t line) const { return offsets[line + 1] - offsets[line]; }
  std::span<const int32_t> operator[](int64_t line) const {
    return {tokens.data() + offsets[line], static_cast<size_t>(length(line))};
  }
  void add(std::span<const int32_t> line) {
    tokens.insert(tokens.end(), line.begin(), line.end());
    offsets.push_back(static_cast<int64_t>(tokens.size()));
  }
};

/// The numbers of pieces or words by their text. Borrows `vocabulary`.
class PieceNumbers {
 public:
  /// PAD, BOS, EOS and UNK have names for display only: text that spells one is an ordinary piece.
  explicit PieceNumbers(const std::vector<std::string>& vocabulary) {
    for (size_t id = kFirstPiece; id < vocabulary.size(); ++id) {
      numbers_.emplace(vocabulary[id], static_cast<int32_t>(id));
    }
  }
  /// UNK for a text that is not in the vocabulary.
  int32_t of(std::string_view text) const {
    const auto it = numbers_.find(text);
    return it == numbers_.end() ? kUnk : it->second;
  }

 private:
  std::unordered_map<std::string_view, int32_t> numbers_;
};

/// Source sentences end with EOS; target sentences have neither BOS nor EOS. Both sides have as many sentences.
struct ParallelTokens {
  TokenLines source, target;

  int64_t size() const { return source.size(); }
  /// The lengths that batches count: the source with its EOS, the target with its BOS.
  int64_t source_length(int64_t line) const { return source.length(line); }
  int64_t target_length(int64_t line) const { return target.length(line) + 1; }

  /// These sentences alone, in this order.
  ParallelTokens chosen(const SentenceIds& sentences) const {
    ParallelTokens some;
    for (const int32_t sentence : sentences) {
      some.source.add(source[sentence]);
      some.target.add(target[sentence]);
    }
    return some;
  }
};

}  // namespace tearless::engine
