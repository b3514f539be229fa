// The 13a tokeniser. Its four rules are regular expressions whose matches do not overlap: a character consumed by one
// match cannot start the next, so ".." after a word is split once. The rules apply to bytes, because the characters
// that they name are ASCII.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/score/ngrams.h"
#include "engine/score/tokenise.h"

namespace tearless::engine {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string replaced;
  size_t begin = 0;
  for (size_t at; (at = text.find(from, begin)) != std::string::npos; begin = at + from.size()) {
    replaced.append(text, begin, at - begin).append(to);
  }
  text = replaced.append(text, begin);
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

}  // namespace

std::string tokenise_western(std::string_view line) {
  std::string spaced;
  for (const char c : line) {
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
  return fmt::format("{}", fmt::join(split_unicode_words(spaced), " "));
}

std::string tokenise_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kEntities = {
      {{"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}};
  for (const auto& [entity, character] : kEntities) replace_all(text, entity, character);
  return tokenise_western(" " + text + " ");
}

}  // namespace tearless::engine
