// The cube activation of Chen and Manning's parser (2014, §3.2; docs/spec/tasks.md §4.3).
#pragma once

#include "engine/ops/tape.h"

namespace tearless::engine {

/// x [T, W] → x³, element by element.
Value cube(Tape& tape, const Value& x);

}  // namespace tearless::engine
