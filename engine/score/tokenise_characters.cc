// The tokenisers of text without spaces: zh and char. And whether a text is one.
#include <algorithm>
#include <cstdint>

#include "base/score/ngrams.h"
#include "base/utf8.h"
#include "engine/score/tokenise.h"

namespace tearless::engine {
namespace {

struct Range {
  uint32_t first, last;
};

template <size_t N>
bool is_in(const Range (&ranges)[N], uint32_t point) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return range.first <= point && point <= range.last; });
}

/// sacreBLEU's. It writes two ranges beyond U+FFFF with four digits, "\u20000" to "\u2a6d6" and "\u2f800" to
/// "\u2fa1d", which in Python are U+2001 to U+2A6D and U+2F81 to U+2FA1; so it splits curly quotes and not the rare
/// characters that were meant.
constexpr Range kChinese[] = {{0x3400, 0x4DB5}, {0x4E00, 0x9FA5}, {0x9FA6, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
                              {0xFA70, 0xFAD9}, {0x2001, 0x2A6D}, {0x2F81, 0x2FA1}, {0xFF00, 0xFFEF}, {0x2E80, 0x2EFF},
                              {0x3000, 0x303F}, {0x31C0, 0x31EF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3100, 0x312F},
                              {0x31A0, 0x31BF}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0x2600, 0x26FF}, {0x2700, 0x27BF},
                              {0x3200, 0x32FF}, {0x3300, 0x33FF}};

/// Scripts that are written without spaces between words: Thai, Lao and Tibetan; Burmese; Khmer; kana and Han.
constexpr Range kWithoutSpaces[] = {{0x0E00, 0x0FFF}, {0x1000, 0x109F}, {0x1780, 0x17FF},   {0x2E80, 0x9FFF},
                                    {0xF900, 0xFAFF}, {0xFF66, 0xFF9F}, {0x1B000, 0x1B16F}, {0x20000, 0x3FFFF}};

size_t length_of_character(std::string_view text) { return std::max<size_t>(utf8_length(text), 1); }

uint32_t point_of(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  uint32_t point = character.size() == 1 ? lead : lead & (0x7Fu >> character.size());
  for (const char c : character.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return point;
}

template <class Each>
void for_each_character(std::string_view line, Each each) {
  while (!line.empty()) {
    const std::string_view character = line.substr(0, length_of_character(line));
    each(character);
    line.remove_prefix(character.size());
  }
}

/// As Python's str.strip().
std::string_view stripped(std::string_view line) {
  const std::vector<std::string_view> words = split_unicode_words(line);
  if (words.empty()) return "";
  return {words.front().data(), static_cast<size_t>(words.back().data() + words.back().size() - words.front().data())};
}

}  // namespace

std::string tokenise_zh(std::string_view line) {
  std::string spaced;
  for_each_character(stripped(line), [&](std::string_view character) {
    const bool chinese = is_in(kChinese, point_of(character));
    spaced.append(chinese ? " " : "").append(character).append(chinese ? " " : "");
  });
  return tokenise_western(spaced);
}

std::string tokenise_char(std::string_view line) {
  std::string words;
  for_each_character(line, [&](std::string_view character) {
    if (unicode_space_length(character) == 0) words.append(words.empty() ? "" : " ").append(character);
  });
  return words;
}

std::string tokenise(Tokeniser tokeniser, std::string_view line) {
  switch (tokeniser) {
    case Tokeniser::k13a:
      return tokenise_13a(line);
    case Tokeniser::kZh:
      return tokenise_zh(line);
    case Tokeniser::kChar:
      return tokenise_char(line);
  }
  return {};
}

bool has_hardly_a_space(const std::vector<std::string_view>& lines) {
  constexpr int64_t kLongWord = 20, kLongWordOfThese = 8;  // characters of a word, on average
  int64_t words = 0, characters = 0, of_these = 0;
  for (const std::string_view line : lines) {
    for (const std::string_view word : split_unicode_words(line)) {
      ++words;
      for_each_character(word, [&](std::string_view character) {
        ++characters;
        of_these += is_in(kWithoutSpaces, point_of(character));
      });
    }
  }
  return characters > words * (2 * of_these > characters ? kLongWordOfThese : kLongWord);
}

}  // namespace tearless::engine
