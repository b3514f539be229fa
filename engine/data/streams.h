// Text that a language model reads in parallel streams, one segment after another (Transformer-XL, docs/spec/tasks.md
// §1.1). Knows nothing about what the tokens stand for.
//
//   tokens     x₀ x₁ … x₁₁                 three streams of four tokens, segments of two:
//   stream 0   x₀ x₁ x₂  x₃                segment 0: inputs x₀ x₁, labels x₁ x₂; segment 1: x₂ → x₃
//   stream 1   x₄ x₅ x₆  x₇                           x₄ x₅         x₅ x₆                x₆ → x₇
//   stream 2   x₈ x₉ x₁₀ x₁₁                          x₈ x₉         x₉ x₁₀               x₁₀ → x₁₁
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// A segment of each stream.
struct StreamSegment {
  /// [B · T] Sentence b is the segment of stream b, whose number it has; positions are within the segment.
  PackedRows rows;
  std::vector<int32_t> labels;  // [B · T] the token after each
};

/// A text as B streams: equal contiguous parts in their order, what remains dropped. Borrows the tokens.
class Streams {
 public:
  /// REQUIRES: streams ≥ 1.
  Streams(std::span<const int32_t> tokens, int64_t streams)
      : tokens_(tokens), streams_(streams), length_(static_cast<int64_t>(tokens.size()) / streams) {}

  int64_t streams() const { return streams_; }
  /// Tokens of a stream.
  int64_t length() const { return length_; }
  /// Predictions of a stream: its first token is never a label.
  int64_t predictions() const { return length_ > 0 ? length_ - 1 : 0; }

  /// Segments of a pass. REQUIRES: segment ≥ 1 here and below.
  int64_t segments(int64_t segment) const { return (predictions() + segment - 1) / segment; }
  /// The segment `number`, from 0, of each stream: `segment` predictions a stream, of the last of a pass those that
  /// remain. REQUIRES: number < segments(segment) (std::logic_error).
  StreamSegment at(int64_t number, int64_t segment) const;

 private:
  std::span<const int32_t> tokens_;
  int64_t streams_, length_;
};

/// A number and the setting that has it, for messages.
struct NamedCount {
  const char* key;
  int64_t value;
};

/// Throws UserError, naming the file of the text and the settings, if a stream has no whole segment (`segment` + 1
/// tokens), or fewer tokens than the memory, which would never be full.
void require_long_enough(int64_t tokens, const std::string& file, const NamedCount& streams, const NamedCount& segment,
                         const NamedCount& memory);

}  // namespace tearless::engine
