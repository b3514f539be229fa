#include "engine/train/updater.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/ops/backend.h"
#include "engine/train/captured_updater.h"
#include "engine/train/execution.h"
#include "engine/train/observe.h"
#include "engine/train/update_gradients.h"

namespace tearless::engine {
namespace {

using Clock = std::chrono::steady_clock;

class EagerUpdater final : public Updater {
 public:
  EagerUpdater(Trainable& trained, const TrainOptions& train, const ExecutionOptions& execution, OptimiserState& state,
               TapeProfile* profile)
      : trained_(trained), train_(train), execution_(execution), state_(state), profile_(profile) {
    if (const ObserveOptions& observe = execution.observe; observe.of_groups()) {
      groups_.emplace(trained.parameters(), [&](const std::string& name) { return observed_group(observe, name); });
    }
    begin_update();
  }

  int64_t capacity() const override { return 1; }

  void add(int64_t n, int64_t index) override { gradients_->add(n, index, nullptr, profile_); }

  void start(int64_t n, int64_t index, double learning_rate) override {
    SumVariances variances;
    const bool observed = n % execution_.log_updates == 0 && execution_.observe.variances;
    gradients_->add(n, index, observed ? &variances : nullptr, profile_);
    UpdateResult result{
        .sums = gradients_->sums(), .rows = gradients_->rows(), .fallback_ops = gradients_->fallback_ops()};
    for (const auto& [sublayer, variance] : variances.variances()) result.observed["variance." + sublayer] = variance;
    if (result.finite()) step(n, learning_rate, result);
    results_.push_back(std::move(result));
    begin_update();
  }

  std::vector<UpdateResult> collect() override { return std::exchange(results_, {}); }

 private:
  void begin_update() { gradients_.emplace(trained_, train_, ops_of(execution_)); }

  /// Clips the gradients and makes the optimiser's step, if they are finite.
  void step(int64_t n, double learning_rate, UpdateResult& result) {
    Parameters& parameters = trained_.parameters();
    const double divisor = gradients_->divisor();
    const Clock::time_point optimiser = Clock::now();
    result.gradient_norm = global_norm(parameters.gradients()) / divisor;
    if (!result.finite()) return;
    const bool logged = n % execution_.log_updates == 0 && execution_.observe.groups;
    std::map<std::string, double> norms;
    if (logged || execution_.observe.window_means) norms = groups_->norms(parameters.gradients());
    for (auto& [group, norm] : norms) norm /= divisor;
    std::optional<ObservedStep> observed;
    if (logged) observed.emplace(parameters, *groups_);
    optimiser_step(train_, learning_rate, n, result.gradient_norm, divisor, parameters.gradients(), parameters.values(),
                   state_);
    if (logged) {
      for (const auto& [group, norm] : norms) result.observed["grad_norm." + group] = norm;
      observed->add_metrics(result.observed);
    }
    if (execution_.observe.window_means) result.group_norms = std::move(norms);
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
  OptimiserState& state_;
  TapeProfile* profile_;
  std::optional<ParameterGroups> groups_;     // of ObserveOptions::of_groups()
  std::optional<UpdateGradients> gradients_;  // of the update that has been begun
  std::vector<UpdateResult> results_;
};

}  // namespace

bool UpdateResult::finite() const { return std::isfinite(sums.mean()) && std::isfinite(gradient_norm); }

std::unique_ptr<Updater> make_updater(Trainable& trained, const TrainOptions& train, const ExecutionOptions& execution,
                                      OptimiserState& state, TapeProfile* profile) {
  const at::Tensor& values = trained.parameters().values();
  const OptimiserKernels& kernels = optimiser_kernels_for(values);
  const bool one_batch_of_adam = train.accumulate == 1 && train.optimiser.chosen().adam && train.optimiser.l2 == 0;
  if (const CaptureGraph capture = capture_for(values); capture && one_batch_of_adam && kernels.squared_norm &&
                                                        kernels.adam_on_device && captures_updates(execution) &&
                                                        !execution.observe.updates() && !profile) {
    return std::make_unique<CapturedUpdater>(trained, train, state, capture);
  }
  return std::make_unique<EagerUpdater>(trained, train, execution, state, profile);
}

}  // namespace tearless::engine
