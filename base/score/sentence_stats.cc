#include "base/score/sentence_stats.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "base/words.h"

namespace tearless {
namespace {

constexpr int64_t kMaxSum = int64_t{1} << 53;  // up to here each whole number is a double

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

bool begins_as_a_number(std::string_view text) { return text[0] == '-' || (text[0] >= '0' && text[0] <= '9'); }

std::vector<std::string> columns_in(std::string_view line, std::string_view file) {
  std::vector<std::string> columns;
  std::set<std::string_view> seen;
  for (const std::string_view name : fields_of(line)) {
    if (name.empty() || begins_as_a_number(name)) {
      fail("{}:1: \"{}\" is no name of a column; the first line names the columns, with tabs between them", file,
           printable(name));
    }
    if (!seen.insert(name).second) fail("{}:1: there are two columns {}", file, printable(name));
    columns.emplace_back(name);
  }
  return columns;
}

int64_t count_in(std::string_view field, std::string_view file, size_t line) {
  const int64_t count = number_of<int64_t>(field).value_or(-1);
  if (count < 0 || count > kMaxSum)
    fail("{}:{}: \"{}\" is no count, a whole number from 0 to 2^53", file, line, printable(field));
  return count;
}

}  // namespace

std::vector<int64_t> SentenceStats::sum() const {
  std::vector<int64_t> sum(columns.size());
  for (const std::vector<int64_t>& row : rows) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += row[i];
  }
  return sum;
}

std::string stats_text(const SentenceStats& stats) {
  std::string text = fmt::format("{}\n", fmt::join(stats.columns, "\t"));
  for (const std::vector<int64_t>& row : stats.rows) text += fmt::format("{}\n", fmt::join(row, "\t"));
  return text;
}

SentenceStats read_stats(std::string_view text, std::string_view file) {
  if (!text.ends_with('\n')) {
    fail("{} is {}: it has no whole last line", file, text.empty() ? "empty" : "cut off");
  }
  const std::vector<std::string_view> lines = split_lines(text);
  SentenceStats stats{.columns = columns_in(lines[0], file)};
  std::vector<int64_t> sum(stats.columns.size());
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string_view> fields = fields_of(lines[i]);
    if (fields.size() != sum.size()) {
      fail("{}:{}: {} numbers for {}", file, i + 1, fields.size(), counted(std::ssize(sum), "column"));
    }
    std::vector<int64_t>& row = stats.rows.emplace_back();
    for (size_t k = 0; k < fields.size(); ++k) {
      row.push_back(count_in(fields[k], file, i + 1));
      sum[k] += row.back();
      if (sum[k] > kMaxSum) {
        fail("{}:{}: the sum of {} is above 2^53 from here on", file, i + 1, printable(stats.columns[k]));
      }
    }
  }
  return stats;
}

}  // namespace tearless
