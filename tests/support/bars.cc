#include "tests/support/bars.h"

#include <random>

#include "tests/support/paths.h"

namespace tearless::test {
namespace {

std::string big_endian(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}

}  // namespace

void write_bars(const std::filesystem::path& folder, const std::string& name, uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);  // not a distribution of the library: their numbers differ between libraries
  std::string images = big_endian(0x803) + big_endian(count) + big_endian(kBarSide) + big_endian(kBarSide);
  std::string labels = big_endian(0x801) + big_endian(count);
  for (uint32_t i = 0; i < count; ++i) {
    const int digit = static_cast<int>(random() % 10), at = 2 + 2 * (digit % 5);
    for (int y = 0; y < kBarSide; ++y) {
      for (int x = 0; x < kBarSide; ++x) {
        const auto noise = static_cast<int>(random() % 96);
        const int across = digit < 5 ? x : y;
        images += static_cast<char>(across == at || across == at - 1 ? 159 + noise : noise);
      }
    }
    labels += static_cast<char>(digit);
  }
  write_text(folder / (name + ".images"), images);
  write_text(folder / (name + ".labels"), labels);
}

}  // namespace tearless::test
