// Well-formed UTF-8, and what of it may be shown on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tearless {

/// The length of the well-formed UTF-8 sequence at the start of `text`, 0 where there is none (overlong forms,
/// surrogates and code points beyond U+10FFFF are malformed).
size_t utf8_length(std::string_view text);

bool valid_utf8(std::string_view text);

/// `text` on one line, with nothing in it that a terminal, or a reader of a table, would obey instead of showing:
/// control characters, separators of lines and marks of direction are written as \n, \x1b, \u202e; bytes that are not
/// UTF-8 as \xe9. What is printable already stays as it is.
std::string printable(std::string_view text);

/// The same for a text of many lines: lines may end, and tabs stand.
std::string printable_lines(std::string_view text);

}  // namespace tearless
