#include "harness/schedule/cores.h"

#include <sched.h>

#include <algorithm>

namespace tearless::harness {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace tearless::harness
