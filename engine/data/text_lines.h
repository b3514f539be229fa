// The lines of text files, as every road into the engine reads them: corpora, test sets, labelled sentences, files that
// are scored or translated.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/data/raw_files.h"

namespace tearless::engine {

/// Ends lines at '\n' alone: a CR inside a line, U+0085 and U+2028 are text. Leaves out what editors write without
/// showing it: carriage returns at the ends of lines, and a byte order mark at the start of the file. The views point
/// into `bytes`.
std::vector<std::string_view> text_lines(std::string_view bytes);

/// The numbers of lines that a file chooses of `count`, from 0; the file has them from 1, one a line and increasing.
/// Throws UserError, naming `file` and the line, for another text, a number beyond `count` and one that is not above
/// the one before.
std::vector<size_t> line_numbers(std::string_view bytes, const std::string& file, size_t count);

/// The longest sentence of a dev or test set: one of more subwords takes the memory of the run when it is evaluated.
inline constexpr size_t kMaxEvaluatedTokens = 10'000;
inline constexpr std::string_view kOverlongAdvice = "are the ends of lines lost? Split the line, or remove it";

/// Says for each file of the sets what text_lines() leaves out of it. Throws UserError if one cannot be read.
void say_left_out(const DataFiles& files, const Say& say);

}  // namespace tearless::engine
