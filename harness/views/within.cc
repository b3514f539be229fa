#include "harness/views/within.h"

#include <charconv>

#include "base/error.h"
#include "base/words.h"

namespace tearless::harness {

Within read_within(const toml::node& node, const std::string& at, const std::string& unit, const char* of,
                   const char* key) {
  const std::string text = node.value_exact<std::string>().value_or("");
  Within within;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), within.limit);
  if (error == std::errc()) within.unit = trimmed({end, text.data() + text.size()});
  if (within.unit.empty() || !(within.limit > 0) || !std::isfinite(within.limit)) {
    fail("{} must be a number above 0 and its unit, that of the score or % of {}'s mean: {} = \"0.3 {}\"", at, of, key,
         unit);
  }
  return within;
}

bool is_unit_of(const std::string& unit, const std::string& score, const Names& names) {
  const std::string last = last_word(score), own = lowered(unit);
  return own == lowered(score) || own == lowered(last) || own == lowered(name_of(names, score).text);
}

}  // namespace tearless::harness
