#include "harness/runs/measured.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/pattern.h"
#include "base/words.h"

namespace tearless::harness {
namespace {

constexpr std::string_view kPrefix = "measured.";

using Attempts = std::vector<AttemptRecord>;

/// A number of measured.json; nullopt if the attempt has none of that name.
std::optional<double> number_in(const AttemptRecord& attempt, const char* key) {
  const auto found = attempt.measured.find(key);
  if (found == attempt.measured.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<double> sum_of(const Attempts& attempts, const char* key) {
  std::optional<double> sum;
  for (const AttemptRecord& attempt : attempts) {
    if (const auto value = number_in(attempt, key)) sum = sum.value_or(0) + *value;
  }
  return sum;
}

std::optional<double> greatest(const Attempts& attempts, const char* key) {
  std::optional<double> greatest;
  for (const AttemptRecord& attempt : attempts) greatest = std::max(greatest, number_in(attempt, key));
  return greatest;
}

/// Without training_seconds all seconds are taken as those of updates.
std::optional<double> training_seconds_in(const AttemptRecord& attempt) {
  const auto seconds = number_in(attempt, "training_seconds");
  return seconds ? seconds : number_in(attempt, "seconds");
}

/// The sum of `above` over that of `below`, of the attempts that have both.
template <class Above, class Below>
std::optional<double> ratio(const Attempts& attempts, Above above, Below below) {
  double dividend = 0, divisor = 0;
  for (const AttemptRecord& attempt : attempts) {
    const std::optional<double> a = above(attempt), b = below(attempt);
    if (!a || !b) continue;
    dividend += *a;
    divisor += *b;
  }
  return divisor > 0 ? std::optional(dividend / divisor) : std::nullopt;
}

auto number_called(const char* key) {
  return [key](const AttemptRecord& attempt) { return number_in(attempt, key); };
}

std::optional<double> tokens_in(const AttemptRecord& attempt) {
  const auto speed = number_in(attempt, "tokens_per_second"), seconds = training_seconds_in(attempt);
  return speed && seconds ? std::optional(*speed * *seconds) : std::nullopt;
}

struct Measure {
  std::string_view name;
  std::optional<double> (*value)(const Attempts&);
};

// clang-format off
constexpr Measure kMeasures[] = {
    {"seconds_per_update",   [](const Attempts& a) { return ratio(a, training_seconds_in, number_called("updates")); }},
    {"tokens_per_second",    [](const Attempts& a) { return ratio(a, tokens_in, training_seconds_in); }},
    {"training_seconds",     [](const Attempts& a) { return sum_of(a, "training_seconds"); }},
    {"decoding_seconds",     [](const Attempts& a) { return sum_of(a, "decoding_seconds"); }},
    {"sentences_per_second", [](const Attempts& a) { return ratio(a, number_called("decoded_sentences"), number_called("decoding_seconds")); }},
    {"seconds",              [](const Attempts& a) { return sum_of(a, "seconds"); }},
    {"peak_memory_bytes",    [](const Attempts& a) { return greatest(a, "peak_memory_bytes"); }},
};
// clang-format on

}  // namespace

const std::vector<std::string>& measured_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Measure& measure : kMeasures) all.push_back(std::string(kPrefix).append(measure.name));
    return all;
  }();
  return names;
}

bool is_measured(std::string_view name) {
  const size_t at = name.find(kPrefix);
  return at != std::string_view::npos && (at == 0 || name[at - 1] == '.');
}

bool matches_score(std::string_view pattern, std::string_view name) {
  return matches_pattern(pattern, name) && (is_measured(pattern) || !is_measured(name));
}

bool is_known_before_training(std::string_view score) { return score == "parameters"; }

std::map<std::string, double> measured_numbers(const std::vector<AttemptRecord>& attempts) {
  std::map<std::string, double> numbers;
  for (size_t i = 0; i < std::size(kMeasures); ++i) {
    if (const auto value = kMeasures[i].value(attempts)) numbers[measured_names()[i]] = *value;
  }
  return numbers;
}

std::set<std::string> measured_on(const std::vector<AttemptRecord>& attempts) {
  std::set<std::string> machines;
  for (const AttemptRecord& attempt : attempts) {
    if (!attempt.measured.is_object() || attempt.measured.empty()) continue;
    const auto threads = number_in(attempt, "threads");
    const auto count = static_cast<int64_t>(threads.value_or(0));
    machines.insert(machine_of(attempt) + (threads ? ", " + counted(count, "thread") : ""));
  }
  return machines;
}

}  // namespace tearless::harness
