// The schedules of TwT (eq. 7 and §2.4; docs/spec/training.md §1.6).
#include <algorithm>
#include <cmath>

#include "engine/train/schedule.h"

namespace tearless::engine {
namespace {

/// A ramp to update w, then n^-½: with `peak_lr` p it is p · min(n / w, (w / n)^½).
struct TwtRamp {
  double w, scale;

  explicit TwtRamp(const ScheduleInputs& in)
      : w(static_cast<double>(in.options.warmup_updates)),
        scale(in.options.peak_lr ? *in.options.peak_lr * std::sqrt(w)
                                 : in.options.scale / std::sqrt(static_cast<double>(in.width))) {}
  double at(int64_t n) const { return scale * static_cast<double>(n) * std::pow(w, -1.5); }
};

class Invsqrt final : public ScheduleKindOf<Invsqrt> {
 public:
  Invsqrt() {
    meaning = "scale · d^-½ · min(n · w^-1.5, n^-½) (TwT eq. 7)";
    height = Height::kScale;
  }
  double learning_rate(int64_t n, const ScheduleInputs& in) const override {
    const TwtRamp ramp(in);
    return n < in.options.warmup_updates ? ramp.at(n) : ramp.scale / std::sqrt(static_cast<double>(n));
  }
};

/// With `peak_lr` p it stays at p · (w - 1) / w, at p for w = 1: TwT's code stays at the learning rate of update w - 1,
/// not at the peak of update w.
class Valdecay final : public ScheduleKindOf<Valdecay> {
 public:
  Valdecay() {
    meaning = "the same ramp, then decay on plateaus of the dev score";
    height = Height::kScale;
    decays = true;
  }
  double learning_rate(int64_t n, const ScheduleInputs& in) const override {
    return TwtRamp(in).at(std::min(n, std::max<int64_t>(1, in.options.warmup_updates - 1)));
  }
};

class Nowarmup final : public ScheduleKindOf<Nowarmup> {
 public:
  Nowarmup() {
    meaning = "lr from the first update, decay on plateaus";
    height = Height::kLr;
    has_warmup = false;
    decays = true;
  }
  double learning_rate(int64_t, const ScheduleInputs& in) const override {
    return in.options.peak_lr.value_or(in.options.lr);
  }
};

}  // namespace

std::unique_ptr<ScheduleKind> invsqrt_schedule() { return std::make_unique<Invsqrt>(); }
std::unique_ptr<ScheduleKind> valdecay_schedule() { return std::make_unique<Valdecay>(); }
std::unique_ptr<ScheduleKind> nowarmup_schedule() { return std::make_unique<Nowarmup>(); }

}  // namespace tearless::engine
