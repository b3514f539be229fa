// Encodings of raw text, and lower-casing. Independent of the locale.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace tearless::engine {

enum class TextEncoding { kUtf8, kWindows1252 };
inline constexpr std::array<std::string_view, 2> kTextEncodingNames = {"utf-8", "windows-1252"};

/// `line` in UTF-8. Throws UserError, naming `location` ("file:line"), the position of the byte in the line from 1 and
/// its value, for the first byte that is not text of `encoding`: where a UTF-8 sequence is malformed, or one of the
/// five bytes that Windows-1252 does not define (0x81, 0x8d, 0x8f, 0x90, 0x9d).
std::string to_utf8(std::string_view line, TextEncoding encoding, const std::string& location);

/// Replaces the capital letters of Windows-1252 by their small letters: A–Z, À–Þ (U+00C0–U+00DE without ×), Š, Œ, Ž and
/// Ÿ. Every other character is unchanged, so other alphabets keep their capitals. REQUIRES: `text` is valid UTF-8.
std::string lower_cased(std::string_view text);

/// What the beginning of a text looks like if another tool seems to have coded it: "consists of digits and blanks
/// alone; …"; "" for other text. `is_by_symbol`: it is read symbol by symbol, so letters apart are another text.
std::string_view looks_coded(std::string_view beginning, bool is_by_symbol);

}  // namespace tearless::engine
