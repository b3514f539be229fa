// What it took to train runs.
#pragma once

#include <cstdint>
#include <string>

#include "harness/results/row.h"

namespace tearless::harness {

struct TrainingCost {
  int64_t attempts = 0, of_unknown_length = 0;  // the latter are not in the hours
  double core_hours = 0;           // of attempts on the CPU: from start to end, times the threads of the run
  double gpu_hours = 0;            // of attempts on a GPU
  std::string from = {}, to = {};  // UTC: the first start, and the last end

  void add(const Row& row);
};

}  // namespace tearless::harness
