// sacreBLEU's tokenisers: how raw text becomes the words that BLEU counts. Each returns words with single spaces
// between them. White space is Unicode's here, as in Python (ngrams.h).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"

namespace tearless::engine {

/// mteval-v13a's, for languages with spaces.
std::string tokenise_13a(std::string_view line);
/// Chinese: each character of Chinese is a word, the rest is as in 13a.
std::string tokenise_zh(std::string_view line);
/// Every character is a word.
std::string tokenise_char(std::string_view line);

/// The rules of 13a for a line, without its replacement of entities.
std::string tokenise_western(std::string_view line);

enum class Tokeniser { k13a, kZh, kChar };
inline constexpr std::array<std::string_view, 3> kTokeniserNames = {"13a", "zh", "char"};
std::string tokenise(Tokeniser tokeniser, std::string_view line);

/// Describes a setting whose value names one of `names`, among them tokenisers. A refusal of another tokeniser of
/// sacreBLEU says what to use.
template <class Choice, size_t N>
void describe_tokeniser(SettingsVisitor& visitor, const Field& field, Choice& value,
                        const std::array<std::string_view, N>& names) {
  try {
    visitor.choice(field, value, names);
  } catch (const UserError& error) {
    const std::string_view sentence = error.what();
    for (const std::string_view other : {"mecab", "flores", "spm", "intl"}) {
      if (sentence.find(other) == std::string_view::npos) continue;
      fail("{}. That tokeniser needs a dictionary or tables that are not here: use \"char\" for text without spaces",
           sentence);
    }
    throw;
  }
}

/// Whether the lines have hardly a space: a tokeniser that needs them then counts sentences as words, and BLEU is near
/// 0 whatever the model does.
bool has_hardly_a_space(const std::vector<std::string_view>& lines);

}  // namespace tearless::engine
