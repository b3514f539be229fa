// How lines become pieces and pieces become lines again. One file a kind: bpe, sentencepiece, segmented.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/corpus.h"
#include "engine/data/options.h"

namespace tearless::engine {

enum class Side { kSource, kTarget };

/// Learned from the training text; equal text and settings give equal pieces. Not for use by two threads at once.
class Subwords {
 public:
  virtual ~Subwords() = default;
  virtual std::vector<std::string> encode(std::string_view line, Side side) const = 0;
  /// The plain line that `pieces` spell.
  virtual std::string join(std::span<const std::string> pieces) const = 0;
  /// Pieces that must be in the vocabulary even where the encoded training data lacks them.
  virtual std::vector<std::string> spare_pieces() const { return {}; }
  /// What read_subwords() needs to make this again.
  virtual std::string bytes() const = 0;
};

/// UserError where the text does not allow what the options ask for.
std::unique_ptr<Subwords> learn_subwords(const TextOptions& options, const ParallelText& train);
std::unique_ptr<Subwords> read_subwords(TextKind kind, std::string_view bytes);

}  // namespace tearless::engine
