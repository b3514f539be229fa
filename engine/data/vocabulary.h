// The joint vocabulary of both sides: what each token number stands for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ops/packed_rows.h"

namespace tearless::engine {

inline constexpr int32_t kFirstPiece = 4;

struct Vocabulary {
  /// PAD, BOS, EOS, UNK, then pieces by decreasing frequency in the encoded training data; ties by byte order.
  std::vector<std::string> pieces;
  /// [V] 1 where the type occurs in the target side of the encoded training data, and for EOS and UNK; never for PAD
  /// and BOS (knobs.md 12). A dev or test label may be outside: the model counts it as UNK.
  std::vector<uint8_t> target_kept;

  int64_t size() const { return static_cast<int64_t>(pieces.size()); }
};

}  // namespace tearless::engine
