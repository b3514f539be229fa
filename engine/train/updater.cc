#include "engine/train/updater.h"

#include <ATen/ops/zeros_like.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "engine/ops/backend.h"
#include "engine/train/captured_updater.h"
#include "engine/train/execution.h"

namespace tearless::engine {
namespace {

using Clock = std::chrono::steady_clock;

class EagerUpdater final : public Updater {
 public:
  EagerUpdater(Trainable& trained, const TrainOptions& train, Tape::Ops ops, Moments& moments, TapeProfile* profile)
      : trained_(trained), train_(train), ops_(ops), moments_(moments), profile_(profile) {}

  int64_t capacity() const override { return 1; }

  void start(int64_t n, int64_t index, double learning_rate) override {
    const auto update = static_cast<uint32_t>(n);
    const std::unique_ptr<Batch> batch = trained_.ready(index, update);
    Parameters& parameters = trained_.parameters();
    UpdateResult& result = results_.emplace_back();
    Tape tape(Tape::Kind::kRecording, ops_);
    if (profile_) tape.profile_to(profile_);
    result.sums = trained_.loss({tape, update}, *batch);
    result.rows = batch->rows();
    result.fallback_ops = tape.fallback_ops();
    if (!result.finite()) return;
    tape.backward();
    const Clock::time_point optimiser = Clock::now();
    result.gradient_norm = global_norm(parameters.gradients());
    if (!result.finite()) return;
    adam_step(adam_step_of(train_, learning_rate, n), result.gradient_norm, parameters.gradients(), parameters.values(),
              moments_.first, moments_.second);
    parameters.update_bf16_copy();
    if (!profile_) return;
    profile_->wait();
    TapeProfile::Times& times = profile_->operations["clip, Adam"];
    times.forward_seconds += std::chrono::duration<double>(Clock::now() - optimiser).count();
    ++times.calls;
  }

  std::vector<UpdateResult> collect() override { return std::exchange(results_, {}); }

 private:
  Trainable& trained_;
  const TrainOptions& train_;
  Tape::Ops ops_;
  Moments& moments_;
  TapeProfile* profile_;
  std::vector<UpdateResult> results_;
};

}  // namespace

bool UpdateResult::finite() const { return std::isfinite(sums.mean()) && std::isfinite(gradient_norm); }

Moments::Moments(const at::Tensor& parameters)
    : first(at::zeros_like(parameters)), second(at::zeros_like(parameters)) {}

AdamStep adam_step_of(const TrainOptions& train, double learning_rate, int64_t update) {
  return {learning_rate, train.adam.beta1, train.adam.beta2, train.adam.eps, train.clip_norm, update};
}

std::unique_ptr<Updater> make_updater(Trainable& trained, const TrainOptions& train, const ExecutionOptions& execution,
                                      Moments& moments, TapeProfile* profile) {
  const Tape::Ops ops = ops_of(execution);
  const at::Tensor& values = trained.parameters().values();
  const OptimiserKernels& kernels = optimiser_kernels_for(values);
  if (const CaptureGraph capture = capture_for(values);
      capture && kernels.squared_norm && kernels.adam_on_device && captures_updates(execution) && !profile) {
    return std::make_unique<CapturedUpdater>(trained, train, moments, capture);
  }
  return std::make_unique<EagerUpdater>(trained, train, ops, moments, profile);
}

}  // namespace tearless::engine
