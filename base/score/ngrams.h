// Counting the n-grams that a hypothesis and its reference have in common. Also the words of Python's str.split().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tearless {

/// For n = 1 … matches.size(), sets matches[n - 1] to the number of n-grams of `hypothesis` that `reference` has too,
/// each counted at most as often as it is in the reference. Exact: n-grams are compared, not their hashes.
void count_matches(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference,
                   std::span<int64_t> matches);
/// As above, for words.
void count_matches(std::span<const std::string_view> hypothesis, std::span<const std::string_view> reference,
                   std::span<int64_t> matches);

/// The number of n-grams in `length` words or characters.
inline int64_t count_ngrams(int64_t length, int64_t n) { return length < n ? 0 : length - n + 1; }

/// The length in bytes of the white space character at the start of `text`; 0 for another character. White space is
/// what Python's str.isspace() says: the 29 characters of category Zs or of bidirectional class WS, B or S in the
/// Unicode Character Database (6.3, when U+180E left, to 16).
size_t unicode_space_length(std::string_view text);

/// Splits at white space as Python's str.split() does. The views point into `line`.
std::vector<std::string_view> split_unicode_words(std::string_view line);

}  // namespace tearless
