// How far a run is, by its files alone. An attempt records it when it begins (write_start()), so that the work that the
// attempt before it had lost stays known when the metrics of that work are cut off.
#pragma once

#include <cstdint>

#include "base/run_directory.h"

namespace tearless {

struct WorkDone {
  int64_t checkpoint = 0;   // step of the newest checkpoint; 0: there is none
  int64_t step = 0;         // of the last complete line of metrics.jsonl; 0: there is none
  int64_t reported_ns = 0;  // when metrics.jsonl was written last, nanoseconds since 1970; 0: there is no such file
};

WorkDone work_done(const RunDirectory& run);

}  // namespace tearless
