// Checks of the numbers on the command line, for CLI::Option::check(). CLI11's own checks print the bounds of double,
// 300 digits long, and no check at all reports a number that cannot be converted without saying what is expected.
#pragma once

#include <CLI/CLI.hpp>

namespace tearless::harness {

/// Accepts the whole numbers from `least` to the largest int.
CLI::Validator whole_number_from(int least);

/// Accepts the whole numbers of 64 bits, signed.
CLI::Validator whole_number();

/// Accepts the finite numbers from `least`.
CLI::Validator number_from(double least);

}  // namespace tearless::harness
