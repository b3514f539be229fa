// Splits lines into pieces and joins pieces to lines. One implementation per TextKind: bpe, sentencepiece, segmented.
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

/// A subword model. A pure function of the training text and the settings. Not thread-safe.
class Subwords {
 public:
  virtual ~Subwords() = default;
  virtual std::vector<std::string> encode(std::string_view line, Side side) const = 0;
  /// The plain line that `pieces` spell.
  virtual std::string join(std::span<const std::string> pieces) const = 0;
  /// Pieces to add to the vocabulary even if the encoded training data lacks them.
  virtual std::vector<std::string> spare_pieces() const { return {}; }
  /// The model as bytes, for read_subwords().
  virtual std::string bytes() const = 0;
};

/// Joins pieces with spaces, then deletes every "@@ " and a trailing "@@": fastBPE's mark of a piece that continues.
std::string join_continued(std::span<const std::string> pieces);

/// Text that is already split into subwords, separated by white space.
class Segmented final : public Subwords {
 public:
  std::vector<std::string> encode(std::string_view line, Side side) const override;
  std::string join(std::span<const std::string> pieces) const override { return join_continued(pieces); }
  std::string bytes() const override { return ""; }
};

/// Throws UserError, naming file and line, if a line has a mark that is the kind's own, so that joined subwords would
/// not give the line: for bpe a word that ends with "@@" or has "</w>" in it, for sentencepiece U+2581. Segmented text
/// is made of marks.
void refuse_subword_marks(TextKind kind, std::span<const std::string> lines, const std::string& file);
/// As refuse_subword_marks(), for both sides of a set.
void refuse_subword_marks(TextKind kind, const ParallelText& text, const std::vector<std::string>& files);

/// Whether a line looks as if it was cut by another kind: a word before its last ends with "@@", or begins with U+2581.
bool looks_cut(TextKind kind, std::string_view line);

/// Learns the model that `options` requests. Throws UserError if the text does not allow it.
std::unique_ptr<Subwords> learn_subwords(const TextOptions& options, const TrainingText& train);
/// The model from its bytes(). Throws std::runtime_error if they are damaged.
std::unique_ptr<Subwords> read_subwords(TextKind kind, std::string_view bytes);

}  // namespace tearless::engine
