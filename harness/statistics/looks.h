// Looks at a growing number of seeds: the level at which each of them is tested, so that all together err as seldom as
// one test would.
#pragma once

#include <cstddef>
#include <span>

namespace tearless::harness {

enum class Sides { kOne, kTwo };

/// kPaired: Student's t of the differences within seeds, or of one sample. kWelch: Welch's of two independent cells,
/// for the worst of the ratios 1, 2, 3, 5 and 10 of their standard deviations.
enum class Design { kPaired, kWelch };

/// Up to so many looks, and so many seeds at the last, are found within a second or two.
inline constexpr size_t kMaxLooks = 8, kMaxLookSeeds = 100;

/// The constant nominal level of each look (Pocock 1977, with t in place of z): the largest multiple of 10⁻⁶ at which
/// the looks together reject in at most `level` of the cases in which there is no difference. kOne: of the test of one
/// side.
///
/// n: the pairs (kWelch: the values of each cell) at each look. Successive ones may be equal: that look sees nothing
/// new. One look has `level` itself. By 10⁶ simulated paths with a fixed seed, so the same on every machine, and its
/// relative error is some 0.5 % at 5 %; remembered for the life of the process, for any thread. REQUIRES: n from 2 to
/// kMaxLookSeeds, none below the one before it, kMaxLooks at most; 0 < level < 1.
double constant_level(std::span<const size_t> n, double level, Sides sides, Design design);

/// How often at least one of these looks rejects at the nominal two-sided `level`, at most 0.05, where there is no
/// difference: what it comes to to add seeds until a test rejects. Of pairs; otherwise as constant_level().
double level_of_all(std::span<const size_t> n, double level);

}  // namespace tearless::harness
