// The runs that a selection (selectors.h) means, as the sweeps have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/store/selectors.h"

namespace tearless::harness {

/// A run as a sweep has it: with its labels, seed and place there.
struct SelectedRun {
  std::string sweep;  // "": no sweep has it any more
  int64_t place = 0;  // in the sweep, from 1; 0 without a sweep
  RunRecord run;
};

enum class EachRun {
  kOnce,          // as the newest of the selected sweeps has it, at its first place there
  kInEverySweep,  // and at every place
};

/// In the order of the sweeps and of their grids, after the runs that no sweep has. A run that was named without a
/// sweep is given as the newest one has it.
std::vector<SelectedRun> selected_runs(const Store& store, const Selection& selection, EachRun each);

}  // namespace tearless::harness
