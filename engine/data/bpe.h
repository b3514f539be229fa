// Joint byte-pair encoding for tokenised text, as TwT did with fastBPE (spec training.md 1.2): a word is its
// characters, the last one marked "</w>"; the most frequent pair of neighbours becomes one unit, again and again. A
// piece that does not end its word is written with "@@".
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

/// Two neighbouring units that become one: "l", "ow</w>".
using Merge = std::pair<std::string, std::string>;

/// The first `count` merges of words with these frequencies; fewer where no pair is left. Of equally frequent pairs the
/// one with the smaller pair of numbers wins. Units are numbered: characters in byte order, then merges as they are
/// learned (fastBPE numbers the characters by the order of a hash table). So the result depends on the frequencies
/// alone, not on the order of sentences.
std::vector<Merge> learn_merges(const std::map<std::string, int64_t, std::less<>>& words, int64_t count);

/// The merges, and for each side the pieces that its language may use: those of its own encoded training text. Any
/// other merged unit is split back until its parts may be used, or are characters (which the vocabulary may then not
/// know).
class Bpe final : public Subwords {
 public:
  /// UserError where the text holds the mark of a word's end.
  static Bpe learn(const ParallelText& train, int64_t merges);
  /// Throws std::runtime_error for what bytes() did not write.
  static Bpe from_bytes(std::string_view bytes);

  std::vector<std::string> encode(std::string_view line, Side side) const override;
  std::string join(std::span<const std::string> pieces) const override;
  std::string bytes() const override;

  const std::vector<Merge>& merges() const { return merges_; }

 private:
  using Pieces = std::unordered_set<std::string>;

  explicit Bpe(std::vector<Merge> merges);
  std::vector<std::string> merge_word(std::string_view word) const;
  void restrict(const std::string& unit, const Pieces& allowed, std::vector<std::string>& out) const;
  const std::vector<std::string>& encode_word(std::string_view word, Side side) const;

  std::vector<Merge> merges_;
  std::unordered_map<std::string, size_t> ranks_;    // "left right" → place in merges_
  std::unordered_map<std::string, size_t> made_by_;  // merged unit → the first merge that makes it
  std::array<Pieces, 2> allowed_;                    // by side; written forms
  mutable std::array<std::unordered_map<std::string, std::vector<std::string>>, 2> known_words_;
};

}  // namespace tearless::engine
