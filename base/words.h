// The words of a line, as multi-bleu.perl and the BPE of tokenised text see them, and numbers in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tearless {

/// What lies between ASCII white space (space, \t, \n, \v, \f, \r): U+00A0, U+0085 and U+2028 are parts of words.
std::vector<std::string_view> split_words(std::string_view line);

/// "1 run", "2 runs".
std::string counted(int64_t count, std::string_view noun);

/// "950", "12k", "1.2M": n >= 0, rounded.
std::string short_count(int64_t n);

}  // namespace tearless
