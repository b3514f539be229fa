// The words of a line, as multi-bleu.perl and the BPE of tokenised text see them, and a noun after a number.
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

}  // namespace tearless
