#include "engine/data/bpe.h"

#include <algorithm>
#include <queue>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/words.h"

namespace tearless::engine {
namespace {

/// The characters of a word, the last one with the mark "</w>".
std::vector<std::string> characters(std::string_view word) {
  std::vector<std::string> units;
  for (const char c : word) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (units.empty() || !continues) units.emplace_back();
    units.back() += c;
  }
  units.back() += kWordEnd;
  return units;
}

/// A unit as written in text: "low</w>" → "low", "low" → "low@@".
std::string written(std::string_view unit) {
  if (unit.ends_with(kWordEnd)) return std::string(unit.substr(0, unit.size() - kWordEnd.size()));
  return std::string(unit) + "@@";
}

std::string merge_key(std::string_view left, std::string_view right) { return fmt::format("{} {}", left, right); }

/// Replaces every `left right` by `merged`, from left to right.
template <class Unit>
void merge_pair(std::vector<Unit>& word, const Unit& left, const Unit& right, const Unit& merged) {
  size_t kept = 0;
  for (size_t i = 0; i < word.size(); ++i, ++kept) {
    const bool here = i + 1 < word.size() && word[i] == left && word[i + 1] == right;
    if (here) {
      word[kept] = merged;
      ++i;
    } else if (kept != i) {
      word[kept] = std::move(word[i]);
    }
  }
  word.resize(kept);
}

/// Words as lists of unit numbers, with the frequency of every pair of adjacent units. After a merge only the words
/// that contain the merged pair are recounted. The queue may hold outdated counts; they are skipped when popped.
class MergeLearner {
 public:
  explicit MergeLearner(const std::map<std::string, int64_t, std::less<>>& words) {
    std::set<std::string> alphabet;
    for (const auto& [word, count] : words) {
      for (std::string& unit : characters(word)) alphabet.insert(std::move(unit));
    }
    for (const std::string& unit : alphabet) number(unit);
    for (const auto& [word, count] : words) {
      words_.push_back({{}, count});
      for (const std::string& unit : characters(word)) words_.back().units.push_back(number(unit));
      count_pairs(words_.size() - 1, +1);
    }
    requeue_changed();
  }

  std::vector<Merge> learn(int64_t count) {
    std::vector<Merge> merges;
    while (static_cast<int64_t>(merges.size()) < count && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (pairs_[best.pair].count != best.count) continue;
      merges.push_back(merge(best.pair));
      requeue_changed();
    }
    return merges;
  }

 private:
  using Pair = uint64_t;  // left number in the high half, so that pairs compare as (left, right)
  struct Word {
    std::vector<uint32_t> units;
    int64_t count;
  };
  struct PairUse {
    int64_t count = 0;
    std::vector<size_t> words;  // every word with the pair; may list words that no longer have it
    bool changed = false;
  };
  struct Candidate {
    int64_t count;
    Pair pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  static Pair pair_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

  /// Different merges can spell the same unit ("a" + "bc", "ab" + "c"). They get one number, as in encoding.
  uint32_t number(const std::string& unit) {
    const auto [it, is_new] = numbers_.emplace(unit, static_cast<uint32_t>(units_.size()));
    if (is_new) units_.push_back(unit);
    return it->second;
  }

  void count_pairs(size_t index, int64_t sign) {
    const Word& word = words_[index];
    for (size_t i = 0; i + 1 < word.units.size(); ++i) {
      const Pair pair = pair_of(word.units[i], word.units[i + 1]);
      PairUse& use = pairs_[pair];
      use.count += sign * word.count;
      if (sign > 0 && (use.words.empty() || use.words.back() != index)) use.words.push_back(index);
      if (!use.changed) changed_.push_back(pair);
      use.changed = true;
    }
  }

  Merge merge(Pair pair) {
    const auto left = static_cast<uint32_t>(pair >> 32);
    const auto right = static_cast<uint32_t>(pair);
    const Merge spelled{units_[left], units_[right]};
    const uint32_t merged = number(spelled.first + spelled.second);
    std::vector<size_t> holders = std::move(pairs_[pair].words);
    pairs_[pair].words.clear();
    // A recount appends the word to the lists of all its pairs again. Without removing duplicates here, words with the
    // same pairs would double the visits at every merge.
    std::sort(holders.begin(), holders.end());
    holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
    for (const size_t index : holders) {
      count_pairs(index, -1);
      merge_pair(words_[index].units, left, right, merged);
      count_pairs(index, +1);
    }
    return spelled;
  }

  void requeue_changed() {
    for (const Pair pair : changed_) {
      PairUse& use = pairs_[pair];
      use.changed = false;
      if (use.count > 0) queue_.push({use.count, pair});
    }
    changed_.clear();
  }

  std::vector<std::string> units_;  // by number
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<Word> words_;
  std::unordered_map<Pair, PairUse> pairs_;
  std::vector<Pair> changed_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

std::vector<Merge> learn_merges(const std::map<std::string, int64_t, std::less<>>& words, int64_t count) {
  return MergeLearner(words).learn(count);
}

Bpe::Bpe(std::vector<Merge> merges, bool split_unseen) : merges_(std::move(merges)), split_unseen_(split_unseen) {
  for (size_t i = 0; i < merges_.size(); ++i) {
    const auto& [left, right] = merges_[i];
    ranks_.emplace(merge_key(left, right), i);
    made_by_.emplace(left + right, i);
  }
}

Bpe Bpe::learn(const TrainingText& train, int64_t merges, bool split_unseen) {
  std::map<std::string, int64_t, std::less<>> counts;
  const std::array<std::span<const std::string>, 2> sides = {train.source, train.target};
  for (const std::span<const std::string> side : sides) {
    for (const std::string& line : side) {
      for (const std::string_view word : split_words(line)) {
        const auto it = counts.find(word);
        if (it == counts.end()) {
          counts.emplace(word, 1);
        } else {
          ++it->second;
        }
      }
    }
  }
  // TwT samples the joint text in proportion to the root of each language's size. Both sides of a corpus have the same
  // number of sentences, so the sample is all of both.
  Bpe bpe(learn_merges(counts, merges), split_unseen);
  for (size_t side = 0; side < sides.size(); ++side) {
    for (const std::string& line : sides[side]) {
      for (const std::string_view word : split_words(line)) {
        std::vector<std::string>& pieces = bpe.known_words_[side][std::string(word)];
        if (!pieces.empty()) continue;
        for (const std::string& unit : bpe.merge_word(word)) pieces.push_back(written(unit));
        if (split_unseen) bpe.allowed_[side].insert(pieces.begin(), pieces.end());
      }
    }
  }
  return bpe;
}

std::vector<std::string> Bpe::merge_word(std::string_view word) const {
  std::vector<std::string> units = characters(word);
  while (units.size() > 1) {
    size_t best = merges_.size();
    for (size_t i = 0; i + 1 < units.size(); ++i) {
      const auto it = ranks_.find(merge_key(units[i], units[i + 1]));
      if (it != ranks_.end()) best = std::min(best, it->second);
    }
    if (best == merges_.size()) break;
    const auto& [left, right] = merges_[best];
    merge_pair(units, left, right, left + right);
  }
  return units;
}

void Bpe::restrict(const std::string& unit, const Pieces& allowed, std::vector<std::string>& out) const {
  std::string piece = written(unit);
  const auto made = made_by_.find(unit);
  if (!split_unseen_ || made == made_by_.end() || allowed.contains(piece)) {
    out.push_back(std::move(piece));
    return;
  }
  restrict(merges_[made->second].first, allowed, out);
  restrict(merges_[made->second].second, allowed, out);
}

const std::vector<std::string>& Bpe::encode_word(std::string_view word, Side side) const {
  const auto index = static_cast<size_t>(side);
  std::vector<std::string>& pieces = known_words_[index][std::string(word)];
  if (pieces.empty()) {
    for (const std::string& unit : merge_word(word)) restrict(unit, allowed_[index], pieces);
  }
  return pieces;
}

std::vector<std::string> Bpe::encode(std::string_view line, Side side) const {
  std::vector<std::string> out;
  for (const std::string_view word : split_words(line)) {
    const auto& pieces = encode_word(word, side);
    out.insert(out.end(), pieces.begin(), pieces.end());
  }
  return out;
}

std::string Bpe::join(std::span<const std::string> pieces) const { return join_continued(pieces); }

// Parts that are each followed by an empty line: merges "left right", then, where unseen pieces are split, the pieces
// of the source and of the target, sorted.
std::string Bpe::bytes() const {
  std::string text;
  for (const auto& [left, right] : merges_) text += merge_key(left, right) + "\n";
  for (const Pieces& allowed : allowed_) {
    if (!split_unseen_) break;
    text += "\n";
    const std::set<std::string> sorted(allowed.begin(), allowed.end());
    for (const std::string& piece : sorted) text += piece + "\n";
  }
  return text + "\n";
}

Bpe Bpe::from_bytes(std::string_view bytes) {
  std::array<std::vector<std::string>, 3> parts;
  size_t part = 0;
  for (const std::string_view line : split_lines(bytes)) {
    if (line.empty()) {
      ++part;
    } else if (part < parts.size()) {
      parts[part].emplace_back(line);
    }
  }
  std::vector<Merge> merges;
  for (const std::string& line : parts[0]) {
    const size_t space = line.find(' ');
    const bool two_units = space != std::string::npos && space > 0 && space + 1 < line.size();
    if (!two_units) throw std::runtime_error("a merge is not two units");
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  const bool split_unseen = part == parts.size();
  if (!split_unseen && part != 1) throw std::runtime_error("the merges are not followed by the pieces of two sides");
  Bpe bpe(std::move(merges), split_unseen);
  for (size_t side = 0; side < 2; ++side) bpe.allowed_[side].insert(parts[side + 1].begin(), parts[side + 1].end());
  return bpe;
}

}  // namespace tearless::engine
