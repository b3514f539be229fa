#include "engine/score/sentence_stats.h"

#include <array>
#include <charconv>

#include "base/error.h"

namespace tearless::engine {
namespace {

constexpr std::string_view kColumns =
    "matches_1\tmatches_2\tmatches_3\tmatches_4\ttotals_1\ttotals_2\ttotals_3\ttotals_4\thypothesis_length\treference_"
    "length";

/// The fields in column order.
template <class Stats>
auto fields(Stats& s) {
  return std::array{&s.matches[0], &s.matches[1], &s.matches[2], &s.matches[3],        &s.totals[0],
                    &s.totals[1],  &s.totals[2],  &s.totals[3],  &s.hypothesis_length, &s.reference_length};
}

bool parse(std::string_view line, BleuStats& stats) {
  const char* at = line.data();
  const char* const end = at + line.size();
  for (int64_t* field : fields(stats)) {
    const auto [stopped, error] = std::from_chars(at, end, *field);
    if (error != std::errc()) return false;
    const bool last = field == &stats.reference_length;
    if (last) return stopped == end;
    if (stopped == end || *stopped != '\t') return false;
    at = stopped + 1;
  }
  return false;
}

}  // namespace

std::string sentence_stats_text(const std::vector<BleuStats>& sentences) {
  std::string text(kColumns);
  text += '\n';
  for (const BleuStats& stats : sentences) {
    std::string_view separator = "";
    for (const int64_t* field : fields(stats)) {
      text.append(separator).append(std::to_string(*field));
      separator = "\t";
    }
    text += '\n';
  }
  return text;
}

std::vector<BleuStats> parse_sentence_stats(std::string_view text, const std::filesystem::path& file) {
  std::vector<BleuStats> sentences;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    BleuStats stats;
    const bool good = end != std::string_view::npos && (number == 1 ? line == kColumns : parse(line, stats));
    if (!good) fail("{}:{}: not a line of sentence statistics; decode the run again", file.string(), number);
    if (number > 1) sentences.push_back(stats);
    text.remove_prefix(end + 1);
  }
  return sentences;
}

}  // namespace tearless::engine
