#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "harness/views/reading.h"

namespace tearless::harness {
namespace {

/// The number that a text begins with, if what follows are marks and no letters, digits, blanks or brackets, or / and
/// another number, as in 62.26/1.00.
std::optional<double> marked_number(const std::string& text) {
  const char* const all_end = text.data() + text.size();
  const auto read = [&](const char* begin, double& number) {
    const auto [end, error] = std::from_chars(begin, all_end, number, std::chars_format::fixed);
    return error == std::errc() && std::isfinite(number) ? end : nullptr;
  };
  double number = 0, other = 0;
  const char* end = read(text.data(), number);
  if (end && end != all_end && *end == '/') end = read(end + 1, other);
  if (!end) return std::nullopt;
  const bool are_marks = std::all_of(
      end, all_end, [](const char c) { return static_cast<unsigned char>(c) >= 0x80 || c == '*' || c == '\''; });
  return are_marks ? std::optional(number) : std::nullopt;
}

}  // namespace

PublishedNumber read_published(const toml::node& node, const TableReader& reader) {
  if (const auto number = node.value<double>(); number && node.is_number() && std::isfinite(*number)) return {*number};
  if (const auto* text = node.as_string()) {
    if (text->get().empty()) return {};
    const std::optional<double> number = marked_number(text->get());
    return {number ? nlohmann::json(*number) : nlohmann::json(text->get()), text->get()};
  }
  if (const auto* table = node.as_table()) {
    TableReader own(*table, "a published value", reader.file());
    const toml::node* value = own.any("value");
    const std::optional<Name> source = name_at(own, "source");
    own.refuse_leftovers();
    if (value && !value->is_table() && source) {
      PublishedNumber published = read_published(*value, reader);
      published.source = *source;
      return published;
    }
  }
  fail(
      "{}: a published value must be a finite number, a text (\"\" for none; \"20.91‡\" is a number with a mark) or "
      "{{ value = …, source = … }}",
      reader.location(node));
}

}  // namespace tearless::harness
