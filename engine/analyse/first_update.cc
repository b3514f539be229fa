#include "engine/analyse/first_update.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "engine/model/stream_observer.h"
#include "engine/train/execution.h"
#include "engine/train/observe.h"
#include "engine/train/update_gradients.h"

namespace tearless::engine {
namespace {

/// δ [T, D] of some rows, and of others after them: what its norms are made of. In double and in the order of the
/// rows, so that nothing depends on threads.
class GradientSums {
 public:
  void add(const at::Tensor& gradient) {
    const at::Tensor host = gradient.to(at::kCPU, at::kFloat).contiguous();
    const auto width = static_cast<size_t>(host.size(1));
    const float* element = host.const_data_ptr<float>();
    columns_.resize(width, 0);
    for (int64_t row = 0; row < host.size(0); ++row) {
      for (double& column : columns_) {
        const double d = *element++;
        column += d;
        squares_ += d * d;
      }
    }
  }

  /// Of gradients that are `divisor` times too large.
  GradientNorms norms(double divisor) const {
    double of_sum = 0;
    for (const double column : columns_) of_sum += column * column;
    return {std::sqrt(of_sum) / divisor, std::sqrt(squares_) / divisor};
  }

 private:
  std::vector<double> columns_;
  double squares_ = 0;
};

class StreamGradients final : public StreamObserver {
 public:
  bool sees_gradients() const override { return true; }

  void see(Tape& tape, const std::string& sublayer, StreamPoint point, const Value& rows) override {
    Points& points = sublayers_[sublayer];  // references into a map stay valid
    if (point == StreamPoint::kSum) points.variance.add(rows.data());
    GradientSums& sums = points.gradients[static_cast<size_t>(point)];
    tape.record("observed gradient", [rows, &sums] {
      if (rows.has_grad()) sums.add(rows.grad());
    });
  }

  std::map<std::string, SublayerGradients> sublayers(double divisor) const {
    std::map<std::string, SublayerGradients> all;
    for (const auto& [name, points] : sublayers_) {
      const auto norms = [&](StreamPoint point) { return points.gradients[static_cast<size_t>(point)].norms(divisor); };
      all[name] = {norms(StreamPoint::kInput), norms(StreamPoint::kSum), norms(StreamPoint::kOutput),
                   points.variance.value()};
    }
    return all;
  }

 private:
  struct Points {
    GradientSums gradients[3];  // by StreamPoint
    ElementVariance variance;
  };
  std::map<std::string, Points> sublayers_;
};

}  // namespace

FirstUpdate analyse_first_update(Task& task, const TrainOptions& train, const ExecutionOptions& execution) {
  StreamGradients streams;
  UpdateGradients gradients(task, train, ops_of(execution));
  int64_t pass = -1, batches = 0, next = 0;
  for (int64_t i = 0; i < train.accumulate; ++i) {
    if (next == batches) {
      batches = task.start_pass(++pass);
      next = 0;
      for (at::Tensor& carried : task.carried()) carried.zero_();
    }
    gradients.add(/*n=*/1, next++, &streams);
  }
  Parameters& parameters = task.parameters();
  if (!std::isfinite(gradients.sums().mean())) {
    fail("the loss of the first batch is not finite, so there are no gradients to analyse");
  }
  const double divisor = gradients.divisor();
  FirstUpdate seen{.sublayers = streams.sublayers(divisor), .layers = {}};
  for (const auto& [layer, norm] : ParameterGroups(parameters, layer_of).norms(parameters.gradients())) {
    seen.layers[layer] = norm / divisor;
  }
  parameters.gradients().zero_();
  return seen;
}

}  // namespace tearless::engine
