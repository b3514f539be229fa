#include "base/error.h"
#include "base/settings.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz {
namespace {

/// A line a setting, as run.toml has them, with every key in quotes.
std::string lines_of(const WrittenSettings& written) {
  std::string text;
  for (const auto& [key, value] : written.values) text += toml_value(key) + " = " + toml_value(value) + "\n";
  return text;
}

}  // namespace

int fuzz_settings(const uint8_t* data, size_t size) {
  WrittenSettings written;
  try {
    written = parse_toml_settings(text_of(data, size), "run.toml");
  } catch (const UserError&) {
    return 0;
  }
  const std::string text = lines_of(written);
  require(lines_of(parse_toml_settings(text, "again")) == text, "settings differ after they were written and read");
  return 0;
}

}  // namespace tearless::fuzz
