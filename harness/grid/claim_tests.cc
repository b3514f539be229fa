#include <fmt/ranges.h>

#include "base/error.h"
#include "base/table_reader.h"
#include "harness/grid/sections.h"
#include "harness/statistics/looks.h"

namespace tearless::harness {
namespace {

constexpr int64_t kMinLookSeeds = 2;
constexpr double kMaxLevel = 0.5;

}  // namespace

ClaimTests load_claim_tests(const toml::table* table, const std::string& file, size_t seeds) {
  ClaimTests tests;
  if (!table) return tests;
  TableReader reader(*table, "[claims]", file);
  tests.level = reader.number("level").value_or(tests.level);
  if (!(tests.level > 0 && tests.level < kMaxLevel))
    fail("{}: level must be above 0 and below {}, as in level = 0.05", reader.location("level"), kMaxLevel);
  const toml::array* const looks = reader.list("looks");
  tests.location = reader.location("looks");
  reader.refuse_leftovers();
  if (!looks) return tests;
  const auto refuse = [&](const std::string& what) {
    fail(
        "{}: looks {}; write the numbers of seeds after which claims are decided, the last that of all seeds: looks = "
        "[3, 5, 8, 12]",
        tests.location, what);
  };
  if (looks->empty() || looks->size() > kMaxLooks)
    refuse(fmt::format("has {} numbers, 1 to {} are allowed", looks->size(), kMaxLooks));
  for (const toml::node& node : *looks) {
    const int64_t look = node.is_integer() ? **node.as_integer() : 0;
    if (look < kMinLookSeeds || look > static_cast<int64_t>(kMaxLookSeeds))
      refuse(fmt::format("has a value that is no whole number from {} to {}", kMinLookSeeds, kMaxLookSeeds));
    const auto own = static_cast<size_t>(look);
    if (!tests.looks.empty() && own <= tests.looks.back())
      refuse(fmt::format("has {} after {}, and each must be greater than the one before", own, tests.looks.back()));
    tests.looks.push_back(own);
  }
  if (tests.looks.back() != seeds) {
    fail("{}: the last look is at {} seeds, and the grid has {}; write seeds = {}, or other looks", tests.location,
         tests.looks.back(), seeds, tests.looks.back());
  }
  return tests;
}

}  // namespace tearless::harness
