#include "engine/data/text_lines.h"

#include <limits>

#include "base/files.h"
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
