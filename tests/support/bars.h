// A data set of images in MNIST's form, made up by rule.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tearless::test {

inline constexpr int kBarSide = 12;  // pixels

/// The IDX files NAME.images and NAME.labels: `count` images of a bar in noise. The digit says where the bar is: 0–4
/// from left to right, 5–9 from top to bottom.
void write_bars(const std::filesystem::path& folder, const std::string& name, uint32_t count, uint32_t seed);

}  // namespace tearless::test
