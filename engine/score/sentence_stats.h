// The file outputs/<set>.stats: BLEU statistics of every sentence, so that significance tests need no second decoding.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/score/bleu.h"

namespace tearless::engine {

/// The file's text: a line of column names, then one line of tab-separated numbers per sentence.
std::string sentence_stats_text(const std::vector<BleuStats>& sentences);

/// Parses that text. Throws UserError, naming `file` and the line, if it is malformed.
std::vector<BleuStats> parse_sentence_stats(std::string_view text, const std::filesystem::path& file);

}  // namespace tearless::engine
