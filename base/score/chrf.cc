#include "base/score/chrf.h"

#include <fmt/format.h>

#include <charconv>

namespace tearless {
namespace {

constexpr std::string_view kPrefix = "chrF";

}  // namespace

std::vector<std::string> chrf_columns(int64_t beta, int64_t word_order) {
  std::vector<std::string> columns;
  const auto append = [&](char what, int64_t orders) {
    for (int64_t n = 1; n <= orders; ++n) {
      for (const char* counted : {"hypothesis", "reference", "matches"}) {
        columns.push_back(fmt::format("{}{}_{}_{}{}", kPrefix, beta, counted, what, n));
      }
    }
  };
  append('c', kChrfCharacterOrder);
  append('w', word_order);
  return columns;
}

std::optional<int64_t> chrf_beta(const std::vector<std::string>& columns) {
  if (columns.empty() || !columns[0].starts_with(kPrefix)) return std::nullopt;
  int64_t beta = 0;
  std::from_chars(columns[0].data() + kPrefix.size(), columns[0].data() + columns[0].size(), beta);
  const int64_t orders = std::ssize(columns) / 3;
  if (beta < 1 || columns != chrf_columns(beta, orders - kChrfCharacterOrder)) return std::nullopt;
  return beta;
}

double chrf(std::span<const int64_t> sum, int64_t beta) {
  double precision = 0, recall = 0, orders = 0;
  for (size_t i = 0; i + 2 < sum.size(); i += 3) {
    if (sum[i] == 0 || sum[i + 1] == 0) continue;
    precision += static_cast<double>(sum[i + 2]) / static_cast<double>(sum[i]);
    recall += static_cast<double>(sum[i + 2]) / static_cast<double>(sum[i + 1]);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double beta_squared = static_cast<double>(beta) * static_cast<double>(beta);  // of any beta that a file names
  return 100 * ((1 + beta_squared) * precision * recall / (beta_squared * precision + recall));
}

}  // namespace tearless
