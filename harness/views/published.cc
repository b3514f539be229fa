#include <algorithm>
#include <array>
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

constexpr std::array kOfPrediction = {"prediction", "at_most", "runs"};

Tolerance read_prediction(const toml::table& table, const TableReader& reader) {
  constexpr int64_t kMaxRuns = 1'000'000;
  TableReader own(table, "published.tolerance", reader.file());
  const toml::node* prediction = own.any("prediction");
  const std::optional<double> at_most = own.number("at_most");
  const int64_t runs = whole_number(own, "runs", 1, kMaxRuns).value_or(1);
  own.refuse_leftovers();
  if (!prediction || prediction->value_exact<bool>() != true) {
    fail("{}: a tolerance with at_most or runs needs prediction = true; a distance is a number, tolerance = 0.5",
         own.location("prediction"));
  }
  if (!at_most) {
    fail(
        "{}: a prediction needs at_most, the greatest half-width of its interval that agrees with a number, as in "
        "at_most = 0.5: without it three seeds agree with nearly everything",
        own.location());
  }
  if (!(*at_most > 0) || !std::isfinite(*at_most))
    fail("{}: at_most must be a number above 0, in the unit that the table shows", own.location("at_most"));
  return {.at_most = *at_most, .runs = static_cast<size_t>(runs)};
}

}  // namespace

bool is_prediction(const toml::node& node) {
  const toml::table* table = node.as_table();
  return table && std::ranges::any_of(*table, [](const auto& entry) {
           return entry.second.is_boolean() ||
                  std::ranges::find(kOfPrediction, entry.first.str()) != kOfPrediction.end();
         });
}

Tolerance read_tolerance(const toml::node& node, const TableReader& reader) {
  if (is_prediction(node)) return read_prediction(*node.as_table(), reader);
  const std::optional<double> distance = node.is_number() ? node.value<double>() : std::nullopt;
  if (!distance || !(*distance > 0) || !std::isfinite(*distance)) {
    fail(
        "{}: published.tolerance must be a number above 0, {{ prediction = true, at_most = 0.5 }}, or a table of "
        "score = one of the two",
        reader.location(node));
  }
  return {.at_most = *distance};
}

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
