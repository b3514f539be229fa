#include "engine/score/detokenise.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/score/ngrams.h"

namespace tearless::engine {
namespace {

using Points = std::u32string;

Points points_of(std::string_view text) {
  Points points;
  while (!text.empty()) {
    utf8proc_int32_t point = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                         static_cast<utf8proc_ssize_t>(text.size()), &point);
    if (length <= 0) point = 0xFFFD;  // not UTF-8
    points += static_cast<char32_t>(point);
    text.remove_prefix(length <= 0 ? 1 : static_cast<size_t>(length));
  }
  return points;
}

utf8proc_category_t category(char32_t point) { return utf8proc_category(static_cast<utf8proc_int32_t>(point)); }

/// Perl's \p{Alpha} but for the marks among its letters, which the scripts of languages with rules of their own lack.
bool is_letter(char32_t point) {
  const auto of = category(point);
  return (of >= UTF8PROC_CATEGORY_LU && of <= UTF8PROC_CATEGORY_LO) || of == UTF8PROC_CATEGORY_NL;
}
bool is_letter_or_digit(char32_t point) { return is_letter(point) || category(point) == UTF8PROC_CATEGORY_ND; }
Points lower_case(Points word) {
  for (char32_t& point : word) point = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point)));
  return word;
}
bool is_ascii_digit(char32_t point) { return point >= '0' && point <= '9'; }

/// Chinese, Japanese and Korean, in Moses' ranges.
bool is_cjk(char32_t point) {
  static constexpr std::pair<char32_t, char32_t> kRanges[] = {{0x1100, 0x11FF}, {0x2E80, 0xA4CF},  {0xA840, 0xA87F},
                                                              {0xAC00, 0xD7AF}, {0xF900, 0xFAFF},  {0xFE30, 0xFE4F},
                                                              {0xFF65, 0xFFDC}, {0x20000, 0x2FFFF}};
  return std::ranges::any_of(kRanges, [&](const auto& range) { return range.first <= point && point <= range.second; });
}

bool is_all(const Points& word, auto of_kind) { return !word.empty() && std::ranges::all_of(word, of_kind); }
auto one_of(const char32_t* characters) {
  return [all = std::u32string_view(characters)](char32_t point) { return all.find(point) != all.npos; };
}

bool opens(char32_t point) { return one_of(U"([{¿¡")(point) || category(point) == UTF8PROC_CATEGORY_SC; }
bool is_number(const Points& word) { return is_all(word, is_ascii_digit); }

/// "'s": an apostrophe and a letter.
bool is_contraction(const Points& word) { return word.size() > 1 && word[0] == '\'' && is_letter(word[1]); }
/// "l'", "dell'": a letter and an apostrophe at the end.
bool is_elision(const Points& word) {
  return word.size() > 1 && word.back() == '\'' && is_letter(word[word.size() - 2]);
}

/// "li", "mail…": what Czech joins to the word before by a hyphen.
bool follows_hyphen_in_czech(const Points& word) {
  const Points lower = lower_case(word);
  return lower == U"li" || lower.starts_with(U"mail");
}

/// "n", "ssa", "seenkin": a Finnish case ending, with or without a possessive suffix and a clitic.
bool is_case_ending_in_finnish(const Points& word) {
  static const std::u32string_view endings[] = {
      U"N",   U"n",   U"A",   U"a",   U"Ä",   U"ä",   U"ssa",  U"Ssa",  U"ssä", U"Ssä", U"sta", U"stä", U"Sta", U"Stä",
      U"hun", U"Hun", U"hyn", U"Hyn", U"han", U"Han", U"hän",  U"Hän",  U"hön", U"Hön", U"un",  U"Un",  U"yn",  U"Yn",
      U"an",  U"An",  U"än",  U"Än",  U"ön",  U"Ön",  U"seen", U"Seen", U"lla", U"Lla", U"llä", U"Llä", U"lta", U"Lta",
      U"ltä", U"Ltä", U"lle", U"Lle", U"ksi", U"Ksi", U"kse",  U"Kse",  U"tta", U"Tta", U"ine", U"Ine"};
  static const std::u32string_view possessives[] = {U"", U"ni", U"si", U"mme", U"nne", U"nsa"};
  static const std::u32string_view clitics[] = {U"",   U"ko", U"kö",   U"han",  U"hän",
                                                U"pa", U"pä", U"kaan", U"kään", U"kin"};
  for (const auto ending : endings) {
    if (!word.starts_with(ending)) continue;
    const std::u32string_view rest = std::u32string_view(word).substr(ending.size());
    for (const auto possessive : possessives) {
      if (!rest.starts_with(possessive)) continue;
      if (std::ranges::find(clitics, rest.substr(possessive.size())) != std::end(clitics)) return true;
    }
  }
  return false;
}

void append(std::string& text, const Points& points) {
  for (const char32_t point : points) {
    utf8proc_uint8_t bytes[4];
    const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes);
    text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
  }
}

/// In Moses' order: "&amp;lt;" becomes "&lt;".
std::string unescaped(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"&bar;", "|"},   {"&#124;", "|"}, {"&lt;", "<"},  {"&gt;", ">"},  {"&bra;", "["}, {"&ket;", "]"},
      {"&quot;", "\""}, {"&apos;", "'"}, {"&#91;", "["}, {"&#93;", "]"}, {"&amp;", "&"}};
  for (const auto& [escape, character] : kEscapes) {
    for (size_t at = 0; (at = text.find(escape, at)) != text.npos; at += character.size())
      text.replace(at, escape.size(), character);
  }
  return text;
}

/// As Perl's split(/ /): there is an empty word before a blank at the start and between two blanks, none at the end.
std::vector<Points> split_at_blanks(std::string_view line) {
  std::vector<Points> words;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(points_of(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  while (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

/// Puts the words of one line together, from left to right.
class Joiner {
 public:
  Joiner(std::vector<Points> words, std::string_view language) : words_(std::move(words)), language_(language) {}

  std::string joined() {
    for (at_ = 0; at_ < words_.size(); ++at_) place();
    return std::move(text_);
  }

 private:
  void place() {
    const Points& word = words_[at_];
    if (!word.empty() && is_cjk(word[0])) {
      const bool goes_on = !before().empty() && is_cjk(before().back()) && language_ != "ko";
      goes_on ? to_the_left() : apart();
    } else if (is_all(word, opens)) {
      to_the_right();
    } else if (is_all(word, one_of(U",.?!:;\\%}])"))) {
      if (language_ == "fr" && word.size() == 1 && one_of(U"?!:;\\%")(word[0])) text_ += ' ';
      to_the_left();
    } else if (language_ == "en" && is_contraction(word) && !before().empty() && is_letter_or_digit(before().back())) {
      to_the_left();
    } else if (language_ == "cs" && is_number(word) && (before() == U"." || before() == U",") && is_number(before(2))) {
      to_the_left();
    } else if ((language_ == "fr" || language_ == "it") && is_elision(word) && !after().empty() &&
               is_letter(after()[0])) {
      to_the_right();
    } else if (language_ == "cs" && !word.empty() && is_letter(word.back()) && at_ + 3 < words_.size() &&
               (!after().empty() && (after()[0] == '-' || after()[0] == U'–') && after().size() == 1) &&
               follows_hyphen_in_czech(after(2))) {
      to_the_right();
      ++at_;  // the hyphen
      append(text_, words_[at_]);
    } else if (is_all(word, one_of(U"'\"„“`"))) {
      place_quote();
    } else if (language_ == "fi" && before().ends_with(U':') && is_case_ending_in_finnish(word)) {
      append(text_, lower_case(word));
      blank_ = " ";
    } else {
      apart();
    }
  }

  /// The first quote of its kind opens, the second closes, and so on.
  void place_quote() {
    const Points& word = words_[at_];
    const Points kind = is_all(word, one_of(U"„“")) ? U"\"" : word;
    bool& open = open_[kind];
    if (language_ == "cs" && word == U"„") open = false;
    if (language_ == "cs" && word == U"“") open = true;
    if (!open && language_ == "en" && word == U"'" && before().ends_with(U's')) {  // the boys' house
      to_the_left();
      return;
    }
    open ? to_the_left() : to_the_right();
    open = !open;
  }

  void apart() { put(blank_, " "); }
  void to_the_left() { put("", " "); }
  void to_the_right() { put(blank_, ""); }
  void put(std::string_view blank_before, std::string_view blank_after) {
    text_ += blank_before;
    append(text_, words_[at_]);
    blank_ = blank_after;
  }

  const Points& before(size_t distance = 1) const { return at_ >= distance ? words_[at_ - distance] : none_; }
  const Points& after(size_t distance = 1) const {
    return at_ + distance < words_.size() ? words_[at_ + distance] : none_;
  }

  std::vector<Points> words_;
  std::string_view language_;
  const Points none_;
  size_t at_ = 0;
  std::map<Points, bool> open_;
  std::string_view blank_ = " ";  // before the next word
  std::string text_;
};

}  // namespace

std::string detokenise(std::string_view line, std::string_view language) {
  const bool is_tag = line.size() > 2 && line.front() == '<' && line.back() == '>';
  if (is_tag || split_unicode_words(line).empty()) return std::string(line);
  std::string text = " " + std::string(line) + " ";
  for (size_t at = 0; (at = text.find(" @-@ ", at)) != text.npos; ++at) text.replace(at, 5, "-");
  text = unescaped(std::move(text));
  text = Joiner(split_at_blanks(text), language).joined();
  std::string single;
  for (const char c : text) {
    if (c != ' ' || (!single.empty() && single.back() != ' ')) single += c;
  }
  if (single.ends_with(' ')) single.pop_back();
  return single;
}

}  // namespace tearless::engine
