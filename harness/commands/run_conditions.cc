#include "harness/commands/run_conditions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "base/numbers.h"
#include "base/words.h"
#include "harness/console/columns.h"
#include "harness/table/table.h"

namespace tearless::harness {
using nlohmann::json;
namespace {

std::optional<double> number_in(const std::string& text) {
  const auto number = number_of<double>(text);
  return number && std::isnan(*number) ? std::nullopt : number;
}

std::optional<double> number_in(const json& value) {
  if (value.is_string()) return number_in(value.get_ref<const std::string&>());  // labels are texts
  if (!value.is_number() || std::isnan(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

struct Operator {
  std::string_view text;
  bool (*of_numbers)(double, double);
};
// Longer ones before those that they begin with.
constexpr Operator kOperators[] = {
    {"!=", [](double a, double b) { return a != b; }}, {"<=", [](double a, double b) { return a <= b; }},
    {">=", [](double a, double b) { return a >= b; }}, {"=", [](double a, double b) { return a == b; }},
    {"<", [](double a, double b) { return a < b; }},   {">", [](double a, double b) { return a > b; }}};

std::string unquoted(std::string_view text) {
  const bool is_quoted =
      text.size() > 1 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
  return std::string(is_quoted ? text.substr(1, text.size() - 2) : text);
}

// "test.bleu_13a > 20". It does not hold for a run that has no such value.
struct Condition {
  std::string name;
  Operator compare = {};
  std::string value;

  bool holds(const json& of_run) const {
    if (of_run.is_null()) return false;
    if (of_run.is_array()) {  // of several tags one
      const bool is_among = std::ranges::find(of_run, json(value)) != of_run.end();
      return (compare.text == "=" && is_among) || (compare.text == "!=" && !is_among);
    }
    const std::optional<double> left = number_in(of_run), right = number_in(value);
    if (left && right) return compare.of_numbers(*left, *right);
    const bool is_equal = value_text(of_run) == value;
    return (compare.text == "=" && is_equal) || (compare.text == "!=" && !is_equal);
  }
};

Condition condition_in(const std::string& text) {
  const size_t at = text.find_first_of("!<>=");
  const auto compare = std::find_if(std::begin(kOperators), std::end(kOperators), [&](const Operator& known) {
    return at != std::string::npos && text.compare(at, known.text.size(), known.text) == 0;
  });
  const bool is_one = compare != std::end(kOperators);
  const Condition condition = is_one ? Condition{std::string(trimmed(text.substr(0, at))), *compare,
                                                 unquoted(trimmed(text.substr(at + compare->text.size())))}
                                     : Condition();
  if (condition.name.empty() || condition.value.find_first_of("!<>=") == 0) {
    fail("--where \"{}\" is no condition; write NAME = VALUE, with = != < <= > or >=", text);
  }
  if (compare->text.find_first_of("<>") != std::string_view::npos && !number_in(condition.value)) {
    fail("--where \"{}\": {} compares with a number, and \"{}\" is a text; texts have = and !=", text, compare->text,
         condition.value);
  }
  return condition;
}

}  // namespace

void filter(RunList& list, const std::vector<std::string>& where) {
  for (const std::string& text : where) {
    const Condition condition = condition_in(text);
    const auto value_of = list.value_named(condition.name, "--where");
    list.keep([&](const Row& row) { return condition.holds(value_of(row)); });
  }
}

void sort(RunList& list, const std::string& by) {
  const bool descending = by.starts_with('-');
  const auto value_of = list.value_named(by.substr(descending ? 1 : 0), "--sort");
  const auto key_of = [&](const Row& row) {
    const json value = value_of(row);
    const std::optional<double> number = number_in(value);
    const std::string text = value_text(value);
    return std::tuple(number ? 0 : text.empty() ? 2 : 1, number.value_or(0), text);
  };
  list.sort([&](const Row& a, const Row& b) {
    const auto [rank_a, number_a, text_a] = key_of(a);
    const auto [rank_b, number_b, text_b] = key_of(b);
    if (rank_a != rank_b) return rank_a < rank_b;
    if (rank_a == 0) return descending ? number_a > number_b : number_a < number_b;
    return descending ? text_a > text_b : text_a < text_b;
  });
}

}  // namespace tearless::harness
