#include "harness/statistics/seed_value.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "harness/statistics/rounding.h"

namespace tearless::harness {

std::vector<double> numbers_of(std::span<const SeedValue> values) {
  std::vector<double> numbers;
  std::ranges::transform(values, std::back_inserter(numbers), &SeedValue::value);
  return numbers;
}

double SeedPairs::rounding() const {
  return kRounding * std::max(greatest_magnitude(first), greatest_magnitude(second));
}

std::vector<double> SeedPairs::differences() const {
  std::vector<double> differences;
  for (size_t i = 0; i < size(); ++i) {
    const double difference = first[i] - second[i];
    differences.push_back(std::abs(difference) <= rounding() ? 0 : difference);
  }
  return differences;
}

SeedPairs pairs_of(std::span<const SeedValue> a, std::span<const SeedValue> b) {
  std::map<int64_t, double> second;
  for (const SeedValue& one : b) second.emplace(one.seed, one.value);
  SeedPairs pairs;
  for (const SeedValue& one : a) {
    const auto other = second.find(one.seed);
    if (other == second.end()) continue;
    pairs.first.push_back(one.value);
    pairs.second.push_back(other->second);
  }
  return pairs;
}

}  // namespace tearless::harness
