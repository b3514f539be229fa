#include "engine/train/updater.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/ops/backend.h"
#include "engine/train/captured_updater.h"
#include "engine/train/execution.h"
#include "engine/train/observe.h"

namespace tearless::engine {
namespace {

using Clock = std::chrono::steady_clock;

class EagerUpdater final : public Updater {
 public:
  EagerUpdater(Trainable& trained, const TrainOptions& train, const ExecutionOptions& execution, OptimiserState& state,
               TapeProfile* profile)
      : trained_(trained),
        train_(train),
        execution_(execution),
        ops_(ops_of(execution)),
        state_(state),
        profile_(profile) {}

  int64_t capacity() const override { return 1; }

  void add(int64_t n, int64_t index) override {
    if (result_.finite()) run(n, index, nullptr);
  }

  void start(int64_t n, int64_t index, double learning_rate) override {
    std::map<std::string, double> variances;
    const bool observed = n % execution_.log_updates == 0 && execution_.observe.variances;
    if (result_.finite()) run(n, index, observed ? &variances : nullptr);
    for (const auto& [sublayer, variance] : variances) result_.observed["variance." + sublayer] = variance;
    if (result_.finite()) step(n, learning_rate);
    results_.push_back(std::exchange(result_, {}));
    loss_divisor_ = 0;
  }

  std::vector<UpdateResult> collect() override { return std::exchange(results_, {}); }

 private:
  bool accumulates() const { return train_.accumulate > 1; }
  bool by_batches() const { return train_.accumulate_by == TrainOptions::AccumulateBy::kBatches; }
  /// What the accumulated gradients are to be divided by. One batch has the gradient of its mean.
  double divisor() const {
    if (!accumulates()) return 1;
    return static_cast<double>(by_batches() ? train_.accumulate : std::max<int64_t>(1, loss_divisor_));
  }

  /// Forward and backward pass of one batch of update n.
  void run(int64_t n, int64_t index, std::map<std::string, double>* variances) {
    const auto update = static_cast<uint32_t>(n);
    const std::unique_ptr<Batch> batch = trained_.ready(index, update);
    Tape tape(Tape::Kind::kRecording, ops_);
    if (profile_) tape.profile_to(profile_);
    if (accumulates() && !by_batches()) tape.set_loss_scale(1);
    result_.sums += trained_.loss({.tape = tape, .update = update, .variances = variances}, *batch);
    result_.rows += batch->rows();
    loss_divisor_ += batch->loss_divisor();
    result_.fallback_ops += tape.fallback_ops();
    if (result_.finite()) tape.backward();
  }

  /// Clips the gradients and makes the optimiser's step, if they are finite.
  void step(int64_t n, double learning_rate) {
    Parameters& parameters = trained_.parameters();
    const Clock::time_point optimiser = Clock::now();
    result_.gradient_norm = global_norm(parameters.gradients()) / divisor();
    if (!result_.finite()) return;
    std::optional<ObservedGroups> groups;
    if (n % execution_.log_updates == 0 && execution_.observe.groups) groups.emplace(parameters, divisor());
    optimiser_step(train_, learning_rate, n, result_.gradient_norm, divisor(), parameters.gradients(),
                   parameters.values(), state_);
    if (groups) groups->add_metrics(result_.observed);
    parameters.update_bf16_copy();
    if (!profile_) return;
    profile_->wait();
    TapeProfile::Times& times = profile_->operations["clip, Adam"];
    times.forward_seconds += std::chrono::duration<double>(Clock::now() - optimiser).count();
    ++times.calls;
  }

  Trainable& trained_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  Tape::Ops ops_;
  OptimiserState& state_;
  TapeProfile* profile_;
  UpdateResult result_;       // of the batches so far
  int64_t loss_divisor_ = 0;  // Batch::loss_divisor() of these
  std::vector<UpdateResult> results_;
};

}  // namespace

bool UpdateResult::finite() const { return std::isfinite(sums.mean()) && std::isfinite(gradient_norm); }

std::unique_ptr<Updater> make_updater(Trainable& trained, const TrainOptions& train, const ExecutionOptions& execution,
                                      OptimiserState& state, TapeProfile* profile) {
  const at::Tensor& values = trained.parameters().values();
  const OptimiserKernels& kernels = optimiser_kernels_for(values);
  const bool one_batch_of_adam = train.accumulate == 1 && train.optimiser.chosen().adam;
  if (const CaptureGraph capture = capture_for(values); capture && one_batch_of_adam && kernels.squared_norm &&
                                                        kernels.adam_on_device && captures_updates(execution) &&
                                                        !execution.observe.updates() && !profile) {
    return std::make_unique<CapturedUpdater>(trained, train, state, capture);
  }
  return std::make_unique<EagerUpdater>(trained, train, execution, state, profile);
}

}  // namespace tearless::engine
