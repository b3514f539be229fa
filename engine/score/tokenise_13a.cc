// The 13a tokeniser. Its four rules are regular expressions whose matches do not overlap: a character consumed by one
// match cannot start the next, so ".." after a word is split once. The rules apply to bytes, because the characters
// that they name are ASCII.
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "engine/score/bleu.h"

namespace tearless::engine {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }
/// ASCII punctuation except ' , - and the full stop.
bool stands_alone(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Where `first` and `second` match two adjacent characters, inserts `before`, `between` and `after` around them.
template <class First, class Second>
std::string space_pairs(std::string_view text, First first, Second second, std::string_view before,
                        std::string_view between, std::string_view after) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      out.append(before).append(1, text[i]).append(between).append(1, text[i + 1]).append(after);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// The length in bytes of the white space at the start of `text`, as Python's str.split() defines it; 0 if none.
size_t space_length(std::string_view text) {
  const auto c = static_cast<unsigned char>(text[0]);
  if (c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F)) return 1;
  if (text.starts_with("\xC2\x85") || text.starts_with("\xC2\xA0")) return 2;
  if (text.starts_with("\xE2\x80") && text.size() > 2) {
    const auto last = static_cast<unsigned char>(text[2]);  // U+2000 … U+200A, U+2028, U+2029, U+202F
    return last <= 0x8A || last == 0xA8 || last == 0xA9 || last == 0xAF ? 3 : 0;
  }
  for (const char* other : {"\xE1\x9A\x80", "\xE2\x81\x9F", "\xE3\x80\x80"}) {  // U+1680, U+205F, U+3000
    if (text.starts_with(other)) return 3;
  }
  return 0;
}

std::string single_spaced(std::string_view text) {
  std::string out;
  bool space_due = false;
  while (!text.empty()) {
    const size_t space = space_length(text);
    if (space == 0) {
      if (space_due && !out.empty()) out += ' ';
      out += text[0];
    }
    space_due = space > 0;
    text.remove_prefix(space > 0 ? space : 1);
  }
  return out;
}

}  // namespace

std::string tokenise_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kEntities = {
      {{"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}};
  for (const auto& [entity, character] : kEntities) replace_all(text, entity, character);

  std::string spaced;
  for (const char c : " " + text + " ") {
    if (stands_alone(c)) {
      spaced.append(1, ' ').append(1, c).append(1, ' ');
    } else {
      spaced += c;
    }
  }
  const auto not_digit = [](char c) { return !is_digit(c); };
  const auto is_hyphen = [](char c) { return c == '-'; };
  spaced = space_pairs(spaced, not_digit, is_stop, "", " ", " ");
  spaced = space_pairs(spaced, is_stop, not_digit, " ", " ", "");
  spaced = space_pairs(spaced, is_digit, is_hyphen, "", " ", " ");
  return single_spaced(spaced);
}

}  // namespace tearless::engine
