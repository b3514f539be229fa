#include "base/score/ngrams.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace tearless {
namespace {

/// A hash table of the n-grams of one order of a reference. An n-gram's key is the entry of its first n - 1 symbols
/// beside its last symbol, so that two n-grams have one key exactly if they are equal.
class NgramTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit NgramTable(size_t max_entries)
      : shift_(64 - std::countr_zero(std::bit_ceil(2 * max_entries + 2))), entries_(size_t{1} << (64 - shift_)) {}

  void clear() { std::fill(entries_.begin(), entries_.end(), Entry{}); }

  uint32_t add(uint64_t key) {
    const uint32_t at = slot(key);
    entries_[at].key = key;
    ++entries_[at].count;
    return at;
  }
  /// The entry of the key; kNone for a key without an entry.
  uint32_t find(uint64_t key) const {
    const uint32_t at = slot(key);
    return entries_[at].count > 0 ? at : kNone;
  }
  /// False if the entry has been used as often as it was added.
  bool use(uint32_t at) {
    if (entries_[at].used == entries_[at].count) return false;
    ++entries_[at].used;
    return true;
  }

 private:
  struct Entry {
    uint64_t key = 0;
    uint32_t count = 0;  // 0: free
    uint32_t used = 0;
  };

  uint32_t slot(uint64_t key) const {
    size_t at = key * 0x9E3779B97F4A7C15u >> shift_;
    while (entries_[at].count > 0 && entries_[at].key != key) at = (at + 1) & (entries_.size() - 1);
    return static_cast<uint32_t>(at);
  }

  int shift_;
  std::vector<Entry> entries_;  // a power of two of them, at most half of them taken
};

uint64_t key_of(uint32_t prefix, uint32_t symbol) { return uint64_t{prefix} << 32 | symbol; }

}  // namespace

void count_matches(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference,
                   std::span<int64_t> matches) {
  std::fill(matches.begin(), matches.end(), 0);
  NgramTable table(reference.size());
  // The entries of the (n-1)-grams that begin at each place.
  std::vector<uint32_t> reference_prefixes(reference.size(), 0), hypothesis_prefixes(hypothesis.size(), 0);
  for (size_t n = 1; n <= matches.size() && n <= std::min(hypothesis.size(), reference.size()); ++n) {
    table.clear();
    for (size_t i = 0; i + n <= reference.size(); ++i)
      reference_prefixes[i] = table.add(key_of(reference_prefixes[i], reference[i + n - 1]));
    for (size_t i = 0; i + n <= hypothesis.size(); ++i) {
      uint32_t& prefix = hypothesis_prefixes[i];
      if (prefix == NgramTable::kNone) continue;
      prefix = table.find(key_of(prefix, hypothesis[i + n - 1]));
      if (prefix != NgramTable::kNone && table.use(prefix)) ++matches[n - 1];
    }
    if (matches[n - 1] == 0) return;
  }
}

void count_matches(std::span<const std::string_view> hypothesis, std::span<const std::string_view> reference,
                   std::span<int64_t> matches) {
  std::unordered_map<std::string_view, uint32_t> numbers;
  const auto numbered = [&](std::span<const std::string_view> words) {
    std::vector<uint32_t> symbols;
    symbols.reserve(words.size());
    for (const std::string_view word : words)
      symbols.push_back(numbers.try_emplace(word, static_cast<uint32_t>(numbers.size())).first->second);
    return symbols;
  };
  const std::vector<uint32_t> reference_symbols = numbered(reference);
  count_matches(numbered(hypothesis), reference_symbols, matches);
}

size_t unicode_space_length(std::string_view text) {
  const auto c = static_cast<unsigned char>(text[0]);
  if (c <= ' ') return c == ' ' || (c >= 0x09 && c <= 0x0D) || c >= 0x1C ? 1 : 0;
  if (c == 0xC2) return text.starts_with("\xC2\x85") || text.starts_with("\xC2\xA0") ? 2 : 0;
  if (c < 0xE1 || c > 0xE3) return 0;
  if (text.starts_with("\xE2\x80") && text.size() > 2) {
    const auto last = static_cast<unsigned char>(text[2]);  // U+2000 … U+200A, U+2028, U+2029, U+202F
    return (last >= 0x80 && last <= 0x8A) || last == 0xA8 || last == 0xA9 || last == 0xAF ? 3 : 0;
  }
  for (const char* other : {"\xE1\x9A\x80", "\xE2\x81\x9F", "\xE3\x80\x80"}) {  // U+1680, U+205F, U+3000
    if (text.starts_with(other)) return 3;
  }
  return 0;
}

std::vector<std::string_view> split_unicode_words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t space = unicode_space_length(line.substr(at));
    if (space > 0 && at > begin) words.push_back(line.substr(begin, at - begin));
    at += std::max<size_t>(space, 1);
    if (space > 0) begin = at;
  }
  if (begin < line.size()) words.push_back(line.substr(begin));
  return words;
}

}  // namespace tearless
