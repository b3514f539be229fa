// outputs/<set>.stats: the BLEU statistics of every sentence, so that significance needs no second decoding.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/score/bleu.h"

namespace tearless::engine {

/// The first line names the columns; then one line a sentence, numbers between tabs.
std::string sentence_stats_text(const std::vector<BleuStats>& sentences);

/// UserError, naming `file` and line, where the text is not what sentence_stats_text() writes.
std::vector<BleuStats> parse_sentence_stats(std::string_view text, const std::filesystem::path& file);

}  // namespace tearless::engine
