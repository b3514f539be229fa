#include "base/words.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace tearless {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string lowered(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::vector<std::string> list_items(std::string_view list) {
  constexpr std::string_view kSeparator = ", ";
  std::vector<std::string> items;
  for (size_t begin = 0, end; begin <= list.size(); begin = end + kSeparator.size()) {
    end = std::min(list.find(kSeparator, begin), list.size());
    items.emplace_back(list.substr(begin, end - begin));
  }
  return items;
}

std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kSpace, end);
  }
  return words;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) || c == '_' || c == '-');
  });
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || c >= 0x80 ||
           std::string_view("_@%+=:,./-").find(static_cast<char>(c)) != std::string::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line.append(line.empty() ? "" : " ").append(shell_word(word));
  return line;
}

std::vector<std::string> words_of_shell_line(std::string_view line) {
  std::vector<std::string> words;
  bool is_in_word = false;
  char quote = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote == 0 && std::isspace(static_cast<unsigned char>(c))) {
      is_in_word = false;
      continue;
    }
    if (!std::exchange(is_in_word, true)) words.emplace_back();
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && at + 1 < line.size()) {
      words.back() += line[++at];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) fail("a quote {} has no other one that ends it", quote);
  return words;
}

std::string option_words(std::string_view option, const std::vector<std::string>& values) {
  std::string words;
  for (const std::string& value : values) words.append(" ").append(option).append(" ").append(shell_word(value));
  return words;
}

std::string some_of(const std::vector<std::string>& texts, size_t most, std::string_view between) {
  const size_t shown = std::min(texts.size(), most);
  const std::string first =
      fmt::format("{}", fmt::join(texts.begin(), texts.begin() + static_cast<ptrdiff_t>(shown), between));
  return shown == texts.size() ? first : fmt::format("{} and {} more", first, texts.size() - shown);
}

std::string last_word(std::string_view dotted) { return std::string(dotted.substr(dotted.rfind('.') + 1)); }

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string short_count(int64_t n) {
  if (n >= 999'500) return fmt::format("{:.1f}M", static_cast<double>(n) / 1e6);  // the line below would say "1000k"
  return n >= 1000 ? fmt::format("{:.0f}k", static_cast<double>(n) / 1e3) : std::to_string(n);
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1000) return counted(bytes, "byte");
  double amount = static_cast<double>(bytes) / 1e3;
  const char* const kUnits[] = {"kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; amount >= 999.5 && unit + 1 < std::size(kUnits); ++unit) amount /= 1e3;
  return amount < 9.95 ? fmt::format("{:.1f} {}", amount, kUnits[unit])
                       : fmt::format("{:.0f} {}", amount, kUnits[unit]);
}

}  // namespace tearless
