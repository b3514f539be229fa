// Joins tokenised text to raw text, as detokenizer.perl of the Moses toolkit does (v. 2011 to 2023, without -u and
// -penn). sacreBLEU is of such text.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tearless::engine {

/// The languages that Moses' tokeniser knows, and Korean and Japanese, which its detokeniser knows. Czech, English,
/// Finnish, French, Italian and Korean have rules of their own, the others those that all share, as "general" has.
inline constexpr auto kDetokenisedLanguages = std::to_array<std::string_view>(
    {"general", "as", "bn", "ca", "cs", "de", "el", "en", "es", "et",  "fi",  "fr",  "ga", "gu",
     "hi",      "hu", "is", "it", "ja", "kn", "ko", "lt", "lv", "ml",  "mni", "mr",  "nl", "or",
     "pa",      "pl", "pt", "ro", "ru", "sk", "sl", "sv", "ta", "tdt", "te",  "yue", "zh"});

/// The raw text of a tokenised line: escapes of Moses' tokeniser, such as &quot; and &#124;, are the characters that
/// they stand for; punctuation, brackets, quotes and contractions are beside the words that they belong to. A line that
/// begins with "<" and ends with ">", and one of white space, are returned as they are. REQUIRES: a language of
/// kDetokenisedLanguages, valid UTF-8.
std::string detokenise(std::string_view line, std::string_view language);

/// detokenise() of each line.
template <class Lines>
std::vector<std::string> detokenised(const Lines& lines, std::string_view language) {
  std::vector<std::string> raw;
  for (const std::string_view line : lines) raw.push_back(detokenise(line, language));
  return raw;
}

}  // namespace tearless::engine
