// The sentences of a set as token numbers, both sides, in the order of the corpus' lines.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tearless::engine {

/// Sentences one after another in one array.
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
  /// Source lines end with EOS; target lines have neither BOS nor EOS. Both have equally many.
  ParallelTokens(TokenLines source, TokenLines target) : source_(std::move(source)), target_(std::move(target)) {}

  int64_t size() const { return source_.size(); }
  std::span<const int32_t> source(int64_t line) const { return source_[line]; }  ///< ends with EOS
  std::span<const int32_t> target(int64_t line) const { return target_[line]; }  ///< without BOS and EOS

  /// Lengths as batches count them: the source with EOS, the target with BOS.
  int64_t source_length(int64_t line) const { return source_.length(line); }
  int64_t target_length(int64_t line) const { return target_.length(line) + 1; }

  const TokenLines& source_lines() const { return source_; }
  const TokenLines& target_lines() const { return target_; }

 private:
  TokenLines source_;
  TokenLines target_;
};

}  // namespace tearless::engine
