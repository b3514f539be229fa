// Byte-pair encoding for tokenised text, as TwT used fastBPE (docs/spec/training.md §1.2). A word starts as its
// characters, the last one marked "</w>". Learning repeatedly merges the most frequent pair of adjacent units into one.
// In text, a piece that does not end its word is written with "@@".
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/data/subwords.h"

namespace tearless::engine {

inline constexpr std::string_view kWordEnd = "</w>";

/// Two adjacent units that are merged: ("l", "ow</w>").
using Merge = std::pair<std::string, std::string>;

/// The first `count` merges of words with these frequencies; fewer if no pair is left. Among equally frequent pairs the
/// one with the smaller unit numbers (left, then right) is merged first. Characters are numbered in byte order, then
/// merges as they are learned (fastBPE numbers characters in hash-table order). The result therefore depends on the
/// frequencies alone, not on the order of sentences.
std::vector<Merge> learn_merges(const std::map<std::string, int64_t, std::less<>>& words, int64_t count);

/// The merges and, per side, the allowed pieces: those of the side's own encoded training text. With `split_unseen` a
/// merged unit that is not allowed is split recursively until its parts are allowed or single characters (which may be
/// UNK).
class Bpe final : public Subwords {
 public:
  /// REQUIRES: the text has none of BPE's marks (refuse_subword_marks()).
  static Bpe learn(const TrainingText& train, int64_t merges, bool split_unseen = true);
  /// Throws std::runtime_error if `bytes` is not the output of bytes().
  static Bpe from_bytes(std::string_view bytes);

  std::vector<std::string> encode(std::string_view line, Side side) const override;
  std::string join(std::span<const std::string> pieces) const override;
  std::string bytes() const override;

  const std::vector<Merge>& merges() const { return merges_; }

 private:
  using Pieces = std::unordered_set<std::string>;

  Bpe(std::vector<Merge> merges, bool split_unseen);
  std::vector<std::string> merge_word(std::string_view word) const;
  void restrict(const std::string& unit, const Pieces& allowed, std::vector<std::string>& out) const;
  const std::vector<std::string>& encode_word(std::string_view word, Side side) const;

  std::vector<Merge> merges_;
  std::unordered_map<std::string, size_t> ranks_;    // "left right" → index in merges_
  std::unordered_map<std::string, size_t> made_by_;  // merged unit → index of the first merge that makes it
  bool split_unseen_;
  std::array<Pieces, 2> allowed_;  // by side, as written in text; empty without split_unseen_
  // By side: the pieces of words encoded so far.
  mutable std::array<std::unordered_map<std::string, std::vector<std::string>>, 2> known_words_;
};

}  // namespace tearless::engine
