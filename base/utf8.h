// Validation of UTF-8, and escaping and width of text that is printed on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tearless {

/// Length in bytes of the well-formed UTF-8 sequence at the start of `text`, 0 if it is malformed (overlong forms,
/// surrogates, code points beyond U+10FFFF). REQUIRES: `text` is not empty.
size_t utf8_length(std::string_view text);

/// True if all of `text` is well-formed.
bool valid_utf8(std::string_view text);

/// `text` on one line, safe to print on a terminal. Control characters, line separators and bidirectional marks are
/// escaped as \n, \x1b, \u202e, bytes that are not UTF-8 as \xe9. Everything else is unchanged.
std::string printable(std::string_view text);

/// As printable(), but line feeds and tabs are unchanged.
std::string printable_lines(std::string_view text);

/// The number of columns that a text occupies on a terminal.
size_t display_width(std::string_view text);

/// The beginning of a text that occupies at most `columns`.
std::string cut_to_width(std::string_view text, size_t columns);

/// A text that occupies at most `columns`: itself, or its beginning and "…".
std::string fitted(const std::string& text, size_t columns);

/// The text in lines of at most `columns`, broken between words, or within one that is longer than a line.
std::vector<std::string> wrapped(const std::string& text, size_t columns);

/// JSON of the same value: what JSON allows in a string and printable() escapes is escaped as \u202e.
std::string printable_json(std::string_view json);

}  // namespace tearless
