#include "engine/data/text_encoding.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"

namespace tearless::engine {
namespace {

/// The code points of the bytes 0x80–0x9f; 0 where Windows-1252 defines none. From 0xa0 on it is Latin-1.
constexpr std::array<uint16_t, 32> kWindows1252 = {0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                                   0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
                                                   0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                                   0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

/// REQUIRES: `point` < 0x10000.
void append_utf8(std::string& text, unsigned point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xC0 | point >> 6);
    text += static_cast<char>(0x80 | (point & 0x3F));
  } else {
    text += static_cast<char>(0xE0 | point >> 12);
    text += static_cast<char>(0x80 | (point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (point & 0x3F));
  }
}

[[noreturn]] void fail_at_byte(const std::string& location, std::string_view line, size_t at, TextEncoding encoding) {
  fail("{}: byte {} of the line, 0x{:02x}, is not {}; set data.encoding or convert the file, for example with iconv",
       location, at + 1, static_cast<unsigned char>(line[at]), kTextEncodingNames[static_cast<size_t>(encoding)]);
}

}  // namespace

std::string to_utf8(std::string_view line, TextEncoding encoding, const std::string& location) {
  if (encoding == TextEncoding::kUtf8) {
    for (size_t at = 0; at < line.size();) {
      const size_t length = utf8_length(line.substr(at));
      if (length == 0) fail_at_byte(location, line, at, encoding);
      at += length;
    }
    return std::string(line);
  }
  if (std::all_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
    return std::string(line);  // most lines of English text
  }
  std::string text;
  for (size_t at = 0; at < line.size(); ++at) {
    const auto byte = static_cast<unsigned char>(line[at]);
    const unsigned point = byte >= 0x80 && byte < 0xA0 ? kWindows1252[byte - 0x80u] : byte;
    if (point == 0 && byte != 0) fail_at_byte(location, line, at, encoding);
    append_utf8(text, point);
  }
  return text;
}

std::string lower_cased(std::string_view text) {
  std::string lower(text);
  for (size_t i = 0; i < lower.size(); ++i) {
    if (lower[i] >= 'A' && lower[i] <= 'Z') lower[i] = static_cast<char>(lower[i] - 'A' + 'a');
    if (i + 1 == lower.size()) break;
    // The letters beyond ASCII are two bytes: U+00C0–U+00FF begin with 0xc3, U+0140–U+017F with 0xc5.
    const auto first = static_cast<unsigned char>(lower[i]);
    const auto second = static_cast<unsigned char>(lower[i + 1]);
    if (first == 0xC3 && second >= 0x80 && second <= 0x9E && second != 0x97) {  // À … Þ, not ×
      lower[i + 1] = static_cast<char>(second + 0x20);
    } else if (first == 0xC5 && (second == 0x92 || second == 0xA0 || second == 0xBD)) {  // Œ, Š, Ž
      lower[i + 1] = static_cast<char>(second + 1);
    } else if (first == 0xC5 && second == 0xB8) {  // Ÿ is U+0178, ÿ is U+00FF
      lower[i] = static_cast<char>(0xC3);
      lower[i + 1] = static_cast<char>(0xBF);
    }
  }
  return lower;
}

std::string_view looks_coded(std::string_view beginning, bool is_by_symbol) {
  constexpr size_t kEnough = 100;        // bytes, of fewer anything may be text
  constexpr size_t kBytesOfNumber = 12;  // at most, on average: longer ones are digits by themselves
  const auto zeros = static_cast<size_t>(std::ranges::count(beginning, '\0'));
  if (beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF") || zeros * 50 > beginning.size()) {
    return "has bytes as UTF-16 has them; convert it to UTF-8, for example with iconv";
  }
  const std::vector<std::string_view> words = split_words(beginning);
  if (beginning.size() < kEnough || words.size() < 2) return "";
  const bool has_short_words = words.size() * kBytesOfNumber >= beginning.size();
  if (has_short_words && beginning.find_first_not_of("0123456789 \t\r\n") == beginning.npos) {
    return "consists of digits and blanks alone; it may be a list of numbers, which stand for another text";
  }
  const auto letters = std::ranges::count_if(words, [](std::string_view w) { return utf8_length(w) == w.size(); });
  if (is_by_symbol && letters * 20 > std::ssize(words) * 19) {
    return "has a blank after each letter; it may be made of another text by putting its letters apart";
  }
  return "";
}

}  // namespace tearless::engine
