// The interval of an estimate.
#pragma once

#include <utility>

namespace tearless::harness {

using Interval = std::pair<double, double>;  // its lower and its upper end

}  // namespace tearless::harness
