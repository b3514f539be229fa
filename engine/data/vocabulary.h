// The joint vocabulary of both sides: the piece of each token number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// The first token number after PAD, BOS, EOS and UNK.
inline constexpr int32_t kFirstPiece = 4;

struct Vocabulary {
  /// [V] PAD, BOS, EOS, UNK, then pieces by decreasing frequency in the encoded training data; ties by byte order.
  std::vector<std::string> pieces;
  /// [V] 1 if the token occurs in the target side of the encoded training data, and for EOS and UNK; 0 for PAD and BOS
  /// (docs/spec/knobs.md §12). A dev or test label that is outside counts as UNK.
  std::vector<uint8_t> in_target;

  int64_t size() const { return static_cast<int64_t>(pieces.size()); }
};

}  // namespace tearless::engine
