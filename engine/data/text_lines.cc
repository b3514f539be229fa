#include "engine/data/text_lines.h"

#include <limits>

#include "base/files.h"
#include "base/numbers.h"
#include "base/words.h"

namespace tearless::engine {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

std::vector<std::string_view> text_lines(std::string_view bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  std::vector<std::string_view> lines = split_lines(bytes);
  for (std::string_view& line : lines) {
    while (line.ends_with('\r')) line.remove_suffix(1);
  }
  return lines;
}

std::vector<size_t> line_numbers(std::string_view bytes, const std::string& file, size_t count) {
  std::vector<size_t> numbers;
  for (const std::string_view line : text_lines(bytes)) {
    const std::string location = fmt::format("{}:{}", file, numbers.size() + 1);
    const size_t number = number_of<size_t>(line).value_or(0);
    if (number == 0) fail("{}: \"{}\" is no line number; write one a line, the first line is 1", location, line);
    if (number > count) fail("{}: line {} of a set of {}; is the file of another set?", location, number, count);
    if (!numbers.empty() && number <= numbers.back() + 1) {
      fail("{}: {} after {}; sort the numbers, and leave out repeated ones", location, number, numbers.back() + 1);
    }
    numbers.push_back(number - 1);
  }
  if (numbers.empty()) fail("{} is empty: put one line number a line into it", file);
  return numbers;
}

void say_left_out(const DataFiles& files, const Say& say) {
  for (const DataSet& set : files.sets) {
    for (const std::string& file : set.files()) {
      const std::string bytes = read_regular_file(file, std::numeric_limits<uint64_t>::max());
      int64_t ends = 0;
      for (const std::string_view line : split_lines(bytes)) ends += line.ends_with('\r');
      const bool marked = bytes.starts_with(kByteOrderMark);
      if (ends == 0 && !marked) continue;
      say(fmt::format("{}: left out {}{}{}", file,
                      ends > 0 ? "the carriage returns at the ends of " + counted(ends, "line") : "",
                      ends > 0 && marked ? ", and " : "", marked ? "the byte order mark at the start" : ""));
    }
  }
}

}  // namespace tearless::engine
