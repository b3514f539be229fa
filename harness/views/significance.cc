#include "harness/views/significance.h"

#include <algorithm>

#include "base/error.h"
#include "base/table_reader.h"
#include "harness/views/reading.h"

namespace tearless::harness {
namespace {

using Method = SignificanceTest::Method;

void load_method(TableReader& reader, bool has_seeds, SignificanceTest& test) {
  const bool is_over_seeds = has_seeds && !reader.has("samples") && !reader.has("seed");
  constexpr Method kMethods[] = {Method::kRandomisation, Method::kBootstrap, Method::kSignFlip, Method::kT};
  test.method =
      kMethods[reader.choice("method", {"randomisation", "bootstrap", "sign-flip", "t"}, is_over_seeds ? 3 : 0)];
  if (reader.text("compat")) {
    reader.choice("compat", {"sacrebleu"}, 0);
    if (test.method != Method::kBootstrap)
      fail("{}: compat = \"sacrebleu\" is a form of method = \"bootstrap\"", reader.location("compat"));
    test.method = Method::kSacrebleu;
    test.sampling.samples = 1000;  // its default
  }
}

std::vector<double> load_levels(TableReader& reader) {
  const toml::node* node = reader.any("level");
  if (!node) return {0.05};
  std::vector<double> levels;
  const auto add = [&](const toml::node& one) {
    const std::optional<double> level = one.is_number() ? one.value<double>() : std::nullopt;
    levels.push_back(level && *level > 0 && *level < 1 ? *level : -1);
  };
  if (const toml::array* list = node->as_array()) {
    for (const toml::node& one : *list) add(one);
  } else {
    add(*node);
  }
  const bool fall = levels.size() < 2 || levels[0] > levels[1];
  if (levels.empty() || levels.size() > 2 || std::ranges::min(levels) < 0 || !fall) {
    fail("{}: level must be a number between 0 and 1, or two of which the second is smaller, as in [0.05, 0.01]",
         reader.location("level"));
  }
  return levels;
}

}  // namespace

SignificanceTest read_significance_test(TableReader& reader, bool has_seeds) {
  constexpr int64_t kMaxSamples = 10'000'000, kMaxSeed = 1LL << 53;
  SignificanceTest test;
  load_method(reader, has_seeds, test);
  test.levels = load_levels(reader);
  test.is_corrected = reader.choice("correction", {"holm", "none"}, 0) == 0;
  for (const char* key : {"samples", "seed"}) {
    if (reader.has(key) && !test.draws_samples())
      fail("{}: {} is of tests that draw samples, and method = \"t\" draws none", reader.location(key), key);
  }
  test.sampling.samples = whole_number(reader, "samples", 1, kMaxSamples).value_or(test.sampling.samples);
  test.sampling.seed = static_cast<uint64_t>(whole_number(reader, "seed", 0, kMaxSeed).value_or(1));
  const double least_p = 1 / static_cast<double>(test.sampling.samples + 1);
  if (test.is_over_sentences() && least_p > test.levels.back()) {
    fail("{}: {} samples have no p below {:.2g}, and level is {}; take more", reader.location("samples"),
         test.sampling.samples, least_p, test.levels.back());
  }
  const auto flag = [&](const char* key) {
    const toml::node* node = reader.any(key);
    if (!node) return true;
    const std::optional<bool> value = node->value_exact<bool>();
    if (!value) fail("{}: {} must be true or false", reader.location(key), key);
    return *value;
  };
  test.is_paired = flag("paired");
  if (reader.has("paired") && test.method != Method::kT)
    fail("{}: paired is of method = \"t\"; the others always pair by seed", reader.location("paired"));
  test.is_bold = flag("bold");
  if (reader.has("bold")) test.bold_location = reader.location("bold");
  reader.refuse_leftovers();
  return test;
}

}  // namespace tearless::harness
