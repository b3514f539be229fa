// The schedule cosine: a linear warm-up, then half a cosine (Loshchilov and Hutter 2017, eq. 5, without restarts).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "engine/train/schedule.h"

namespace tearless::engine {
namespace {

/// peak_lr · n / w for n ≤ w; then, with N the last update, floor + ½ · (peak_lr - floor) · (1 + cos(π (n - w) / (N -
/// w))): peak_lr at update w, floor at update N.
class Cosine final : public ScheduleKindOf<Cosine> {
 public:
  Cosine() {
    meaning =
        "peak_lr · n / w, then half a cosine from peak_lr at update w to cosine.floor at the last update (Loshchilov "
        "and Hutter 2017)";
    falls_to_end = true;
  }
  // The default is that of train.min_lr, so that this does not end the training before its last update.
  void describe_own(SettingsVisitor& v, std::string_view switched_off_by) override {
    v.number({.key = "floor",
              .meaning = "learning rate of the last update; below train.min_lr the training ends before it",
              .min = 0,
              .max = 10,
              .neutral = 1e-6,
              .switched_off_by = switched_off_by},
             floor);
  }
  void check(const ScheduleInputs& in) const override {
    if (floor <= in.options.peak_lr.value()) return;
    fail("train.schedule.cosine.floor = {} is above train.schedule.peak_lr = {}; it must not be", floor,
         *in.options.peak_lr);
  }
  double learning_rate(int64_t n, const ScheduleInputs& in) const override {
    const auto update = static_cast<double>(n), w = static_cast<double>(in.options.warmup_updates);
    const double peak = in.options.peak_lr.value();
    if (n <= in.options.warmup_updates) return peak * update / w;
    const double part = std::min(1.0, (update - w) / (static_cast<double>(in.updates) - w));
    return floor + 0.5 * (peak - floor) * (1 + std::cos(std::numbers::pi * part));
  }

  double floor = 1e-6;
};

}  // namespace

std::unique_ptr<ScheduleKind> cosine_schedule() { return std::make_unique<Cosine>(); }

}  // namespace tearless::engine
