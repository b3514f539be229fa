#include "engine/bench/bench.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "engine/bench/bench_kernels.h"
#include "engine/ops/backend.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The parameters stay as initialised: after some updates on made-up sentences the model would end every output at
/// once, and there would be no search to time.
constexpr double kLearningRate = 0;

}  // namespace

Bench::Bench(const MadeUpTask& subject, const TrainOptions& train, const ExecutionOptions& execution)
    : subject_(subject),
      train_(train),
      execution_(execution),
      optimiser_(train.optimiser.chosen(), subject.task->parameters().values()),
      updater_(make_updater(*subject.task, train, execution, optimiser_)) {}

double Bench::make(Updater& updater, int64_t count) {
  const Clock::time_point start = Clock::now();
  for (int64_t i = 0; i < count; ++i) {
    ++updates_;
    updater.start(updates_, (updates_ - 1) % batch_count(), kLearningRate);
  }
  for (const UpdateResult& result : updater.collect()) rows_seen_ += result.rows;
  return seconds_since(start);
}

std::vector<double> Bench::updates(int64_t count) {
  std::vector<double> seconds;
  while (static_cast<int64_t>(seconds.size()) < count) {
    const int64_t together = std::min(updater_->capacity(), count - static_cast<int64_t>(seconds.size()));
    const double each = make(*updater_, together) / static_cast<double>(together);
    seconds.insert(seconds.end(), static_cast<size_t>(together), each);
  }
  return seconds;
}

int64_t Bench::warm_up() const { return updater_->capacity() > 1 ? 3 * batch_count() : 3; }

TapeProfile Bench::profile() {
  TapeProfile profile;
  profile.wait = [this] { wait_for(subject_.task->parameters().values()); };
  const auto updater = make_updater(*subject_.task, train_, execution_, optimiser_, &profile);
  for (int64_t i = 0; i < batch_count(); ++i) make(*updater, 1);
  return profile;
}

std::optional<Bench::TimedDecoding> Bench::decode() {
  if (!subject_.decode) return std::nullopt;
  // Two translations capture all decode steps before the timed one.
  for (int i = 0; i < 2 && updater_->capacity() > 1 && !decoded_; ++i) subject_.decode();
  decoded_ = true;
  const Clock::time_point start = Clock::now();
  const MadeUpTask::Decoded decoded = subject_.decode();
  return TimedDecoding{seconds_since(start), decoded};
}

double Bench::matmul_floor_seconds(const std::vector<TapeProfile::Matmul>& matmuls) const {
  const auto options = subject_.task->parameters().values().options().dtype(subject_.task->parameters().row_type());
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> shapes;
  for (const auto& p : matmuls) ++shapes[{p.rows, p.in, p.out}];
  double sum = 0;
  for (const auto& [shape, count] : shapes) {
    const auto [rows, in, out] = shape;
    const at::Tensor x = at::ones({rows, in}, options), weight = at::ones({out, in}, options);
    const at::Tensor dy = at::ones({rows, out}, options);
    at::Tensor y = at::empty_like(dy), d_weight = at::empty_like(weight), dx = at::empty_like(x);
    constexpr int kTries = 9, kCalls = 4;  // several calls in a graph, so that launching it takes no part of the time
    CapturedGraph graph;
    const auto calls = [&] {
      for (int i = 0; i < kCalls; ++i) {
        matmul(x, weight.t(), y, /*add=*/false);
        matmul(dy.t(), x, d_weight, /*add=*/false);
        matmul(dy, weight, dx, /*add=*/false);
      }
    };
    std::vector<double> tries;
    for (int i = 0; i < kTries; ++i) {
      const Clock::time_point start = Clock::now();
      graph.run(capture_for(x), calls);
      wait_for(x);
      tries.push_back(seconds_since(start) / kCalls);
    }
    sum += static_cast<double>(count) * median(std::move(tries));
  }
  return sum;
}

}  // namespace tearless::engine
