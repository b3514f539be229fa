// The schedule inverse_sqrt of fairseq (docs/spec/training.md §2).
#include <cmath>

#include "engine/train/schedule.h"

namespace tearless::engine {
namespace {

/// With k = n - 1 updates made: init_lr + k · (peak_lr - init_lr) / w for k < w, then peak_lr · √w / √k. The first
/// update has init_lr, update w + 1 the peak.
class InverseSqrt final : public ScheduleKindOf<InverseSqrt> {
 public:
  InverseSqrt() {
    meaning =
        "with k = n - 1 updates made: from inverse_sqrt.init_lr in a line to peak_lr at k = w, then peak_lr · √w / √k "
        "(fairseq)";
  }
  void describe_own(SettingsVisitor& v, std::string_view switched_off_by) override {
    v.number({.key = "init_lr",
              .meaning = "learning rate of the first update",
              .min = 0,
              .max = 10,
              .neutral = 1e-7,
              .switched_off_by = switched_off_by},
             init_lr);
  }
  double learning_rate(int64_t n, const ScheduleInputs& in) const override {
    const auto k = static_cast<double>(n - 1), w = static_cast<double>(in.options.warmup_updates);
    const double peak = in.options.peak_lr.value();
    return k < w ? init_lr + k * (peak - init_lr) / w : peak * std::sqrt(w) / std::sqrt(k);
  }

  double init_lr = 1e-7;
};

}  // namespace

std::unique_ptr<ScheduleKind> inverse_sqrt_schedule() { return std::make_unique<InverseSqrt>(); }

}  // namespace tearless::engine
