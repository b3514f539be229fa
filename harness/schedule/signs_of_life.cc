#include "harness/schedule/signs_of_life.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tearless::harness {
namespace {

constexpr int64_t kLogIsFull = 4 << 20;  // bytes; more output than this is no sign of life
constexpr double kMinStall = 300;        // seconds; less silence is never a stall …
constexpr double kStallFactor = 30;      // … and neither is less than so many times the longest gap between signs
constexpr int kSignsOfARhythm = 5;       // signs after which the longest gap says something

}  // namespace

void SignsOfLife::note(int64_t metrics_bytes, int64_t log_bytes, double now) {
  log_is_full_ |= log_bytes < log_seen_ || log_bytes > kLogIsFull;
  log_seen_ = log_bytes;
  const int64_t size = metrics_bytes + (log_is_full_ ? 0 : log_bytes);
  if (std::exchange(size_seen_, size) == size) return;
  if (signs_++ > 0) longest_gap_ = std::max(longest_gap_, quiet(now));
  last_ = now;
}

double SignsOfLife::longest_in_training() const {
  if (signs_ < kSignsOfARhythm) return std::numeric_limits<double>::infinity();
  return std::max(kMinStall, kStallFactor * longest_gap_);
}

}  // namespace tearless::harness
