#include "base/utf8.h"

#include <fmt/format.h>

namespace tearless {
namespace {

unsigned code_point(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence.front());
  if (sequence.size() == 1) return first;
  unsigned point = first & (0x7Fu >> sequence.size());
  for (const char c : sequence.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return point;
}

bool is_control(unsigned point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x2028 || point == 0x2029;
}

/// Bidirectional controls, which change the display order of the text around them, and the byte order mark.
bool turns_text(unsigned point) {
  return point == 0x061C || point == 0x200E || point == 0x200F || (point >= 0x202A && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

enum class Style { kText, kLines, kJson };

bool is_shown(unsigned point, Style style) {
  if (style == Style::kLines && (point == '\n' || point == '\t')) return true;
  if (style == Style::kJson && point < 0x20) return true;  // between values; in strings they are escaped already
  return !is_control(point) && !turns_text(point);
}

std::string escaped(unsigned point, Style style) {
  if (style == Style::kJson) return fmt::format("\\u{:04x}", point);
  switch (point) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return point < 0x80 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{:04x}", point);
  }
}

std::string shown(std::string_view text, Style style) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(sequence.size());
    const unsigned point = code_point(sequence);
    if (length == 0) {  // not UTF-8
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(sequence.front()));
    } else if (is_shown(point, style)) {
      out += sequence;
    } else {
      out += escaped(point, style);
    }
  }
  return out;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

bool valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) { return shown(text, Style::kText); }

std::string printable_lines(std::string_view text) { return shown(text, Style::kLines); }

std::string printable_json(std::string_view json) { return shown(json, Style::kJson); }

size_t display_width(std::string_view text) {
  // fmt pads to a display width. No text is wider than its number of bytes, so n bytes with width w, padded to n
  // columns, become n + (n - w) bytes: w = 2n - size.
  return 2 * text.size() - fmt::formatted_size("{:<{}}", text, text.size());
}

std::string cut_to_width(std::string_view text, size_t columns) {
  std::string beginning(text);
  for (size_t characters = columns; display_width(beginning) > columns; --characters) {
    beginning = fmt::format("{:.{}}", text, characters);
  }
  return beginning;
}

std::string fitted(const std::string& text, size_t columns) {
  if (display_width(text) <= columns) return text;
  return columns == 0 ? "" : cut_to_width(text, columns - 1) + "…";
}

std::vector<std::string> wrapped(const std::string& text, size_t columns) {
  std::vector<std::string> lines;
  std::string rest = text;
  while (display_width(rest) > columns) {
    const std::string begin = cut_to_width(rest, columns);
    if (begin.empty()) break;  // one character is wider
    const size_t blank = rest[begin.size()] == ' ' ? begin.size() : begin.rfind(' ');
    const size_t end = blank == std::string::npos || blank == 0 ? begin.size() : blank;
    lines.push_back(rest.substr(0, end));
    rest.erase(0, rest.find_first_not_of(' ', end));
  }
  if (!rest.empty()) lines.push_back(rest);
  return lines;
}

}  // namespace tearless
