// The sentence pairs of a set as token numbers, in corpus order.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

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

class ParallelTokens {
 public:
  ParallelTokens() = default;
  /// Source sentences must end with EOS; target sentences must have neither BOS nor EOS. Both sides must have the same
  /// number of sentences.
  ParallelTokens(TokenLines source, TokenLines target) : source_(std::move(source)), target_(std::move(target)) {}

  int64_t size() const { return source_.size(); }
  std::span<const int32_t> source(int64_t line) const { return source_[line]; }  ///< ends with EOS
  std::span<const int32_t> target(int64_t line) const { return target_[line]; }  ///< without BOS and EOS

  /// The lengths that batches count: the source with its EOS, the target with its BOS.
  int64_t source_length(int64_t line) const { return source_.length(line); }
  int64_t target_length(int64_t line) const { return target_.length(line) + 1; }

  const TokenLines& source_lines() const { return source_; }
  const TokenLines& target_lines() const { return target_; }

 private:
  TokenLines source_;
  TokenLines target_;
};

}  // namespace tearless::engine
