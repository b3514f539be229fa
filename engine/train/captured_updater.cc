#include "engine/train/captured_updater.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace tearless::engine {
namespace {

constexpr int64_t kUnderWay = 16;
constexpr size_t kAligned = 16;  // bytes

/// What a step leaves on the device.
struct StepLeft {
  RowLoss sums;
  UpdateOutcome outcome;
};

constexpr size_t rounded_up(size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

template <class T>
size_t bytes_of(const std::vector<T>& part) {
  return rounded_up(part.size() * sizeof(T));
}

/// `bytes` of memory that the device's copies can go on reading or writing while the host does other things.
at::Tensor host_memory(size_t bytes, const at::Tensor& like) {
  return at::empty({static_cast<int64_t>(bytes)},
                   at::TensorOptions().dtype(at::kByte).pinned_memory(!like.device().is_cpu()));
}

/// The element of type T at that byte of a tensor of bytes.
template <class T>
T* at_byte(const at::Tensor& bytes, size_t offset = 0) {
  return reinterpret_cast<T*>(bytes.mutable_data_ptr<uint8_t>() + offset);
}
at::Tensor doubles(const at::Tensor& bytes, int64_t count) {
  return bytes.slice(0, 0, count * static_cast<int64_t>(sizeof(double))).view(at::kDouble);
}

}  // namespace

/// One bucket: what the device reads, and how the step is done again.
struct CapturedUpdater::CapturedStep {
  ReadyBatch batch;         // padded; the one that was there when the step was captured
  at::Tensor inputs;        // on the device: UpdateInputs, then the parts of the batch
  bool by_formula = false;  // in part: formulas copy from the host, which no captured step may
  Repeated walk;
};

/// The host's side of one update under way: what it sends, and what comes back.
struct CapturedUpdater::Slot {
  at::Tensor sent, left;  // memory of the host
  UpdateResult result;
};

CapturedUpdater::CapturedUpdater(Trainable& trained, const TrainOptions& train, Moments& moments, Capture capture,
                                 int64_t most_captured)
    : trained_(trained),
      train_(train),
      moments_(moments),
      capture_(capture),
      most_captured_(most_captured),
      slots_(kUnderWay),
      left_(at::zeros({static_cast<int64_t>(sizeof(StepLeft))},
                      trained.parameters().values().options().dtype(at::kByte))) {
  for (Slot& slot : slots_) slot.left = host_memory(sizeof(StepLeft), left_);
}

CapturedUpdater::~CapturedUpdater() = default;

int64_t CapturedUpdater::capacity() const { return kUnderWay; }

void CapturedUpdater::start(int64_t n, int64_t index, double learning_rate) {
  const auto update = static_cast<uint32_t>(n);
  ReadyBatch batch = trained_.ready(index, update);
  Slot& slot = slots_.at(under_way_);
  slot.result = {.rows = batch.source.row_count() + batch.target.row_count()};
  slot.result.sums.tokens = batch.tokens();

  const Bucket bucket = bucket_of(batch);
  CapturedStep& step = steps_[bucket];
  batch = padded(std::move(batch), bucket);
  size_t bytes = rounded_up(sizeof(UpdateInputs));
  for_each_part(batch, [&](const auto& part) { bytes += bytes_of(part); });
  if (!step.inputs.defined()) step.inputs = at::empty({static_cast<int64_t>(bytes)}, left_.options());
  if (!slot.sent.defined() || static_cast<size_t>(slot.sent.numel()) < bytes) slot.sent = host_memory(bytes, left_);

  const AdamRates rates = adam_rates(adam_step_of(train_, learning_rate, n));
  const UpdateInputs inputs{.share = 1.0 / static_cast<double>(slot.result.sums.tokens),
                            .rate = rates.rate,
                            .inverse_root = rates.inverse_root,
                            .update = update};
  std::memcpy(at_byte<char>(slot.sent), &inputs, sizeof inputs);
  size_t offset = rounded_up(sizeof inputs);
  for_each_part(batch, [&](const auto& part) {
    std::memcpy(at_byte<char>(slot.sent, offset), part.data(), part.size() * sizeof part[0]);
    offset += bytes_of(part);
  });
  step.inputs.copy_(slot.sent.slice(0, 0, static_cast<int64_t>(bytes)), /*non_blocking=*/true);

  const bool captured_before = step.walk.captured();
  if (!captured_before) step.batch = std::move(batch);
  fallback_ops_ = 0;
  step.walk.run(step.by_formula || captured_ == most_captured_ ? nullptr : capture_,
                [this, &step, update] { launch(step, update); });
  captured_ += step.walk.captured() && !captured_before;
  step.by_formula = fallback_ops_ > 0;
  slot.result.fallback_ops = fallback_ops_;
  slot.left.copy_(left_, /*non_blocking=*/true);
  ++under_way_;
}

void CapturedUpdater::launch(CapturedStep& step, uint32_t update) {
  Parameters& parameters = trained_.parameters();
  StepLeft* left = at_byte<StepLeft>(left_);
  const UpdateInputs* inputs = at_byte<UpdateInputs>(step.inputs);
  const StepOnDevice on_device{.update = &inputs->update,
                               .loss = {.share = doubles(step.inputs, 1), .sums = doubles(left_, 2)}};
  on_device.loss.sums.zero_();

  Tape tape(Tape::Kind::kRecording);
  size_t offset = rounded_up(sizeof(UpdateInputs));
  for_each_part(step.batch, [&](const auto& part) {
    tape.place(part.data(), at_byte<char>(step.inputs, offset));
    offset += bytes_of(part);
  });
  trained_.loss({tape, update, &on_device}, step.batch);
  tape.backward();
  fallback_ops_ = tape.fallback_ops();

  const at::Tensor& values = parameters.values();
  const OptimiserKernels& kernels = optimiser_kernels_for(values);
  void* stream = stream_for(values);
  kernels.squared_norm(
      {.size = values.numel(), .gradients = read<float>(parameters.gradients()), .sum = &left->outcome.squared_norm},
      stream);
  kernels.adam_on_device({.adam = adam_call(adam_step_of(train_, /*learning_rate=*/0, update), parameters.gradients(),
                                            parameters.values(), moments_.first, moments_.second),
                          .clip_norm = train_.clip_norm,
                          .inputs = inputs,
                          .outcome = &left->outcome,
                          .theta_bf16 = reinterpret_cast<uint16_t*>(write<bf16>(parameters.low()))},
                         stream);
}

std::vector<UpdateResult> CapturedUpdater::collect() {
  wait_for(left_);
  std::vector<UpdateResult> results;
  for (size_t i = 0; i < under_way_; ++i) {
    Slot& slot = slots_[i];
    const StepLeft& left = *at_byte<StepLeft>(slot.left);
    slot.result.sums.loss = left.sums.loss;
    slot.result.sums.nll = left.sums.nll;
    slot.result.gradient_norm = std::sqrt(left.outcome.squared_norm);
    if (left.outcome.frozen_at != 0) slot.result.gradient_norm = std::numeric_limits<double>::quiet_NaN();
    results.push_back(slot.result);
    if (!slot.result.finite()) break;
  }
  under_way_ = 0;
  return results;
}

}  // namespace tearless::engine
