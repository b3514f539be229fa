#include "engine/train/captured_updater.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace tearless::engine {
namespace {

constexpr int64_t kUnderWay = 16;
constexpr size_t kAligned = 16;  // bytes; alignment of the parts of a batch on the device

constexpr size_t rounded_up(size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

/// `bytes` of pinned host memory, so that copies to and from the device are asynchronous.
at::Tensor host_memory(size_t bytes, const at::Tensor& like) {
  return at::empty({static_cast<int64_t>(bytes)},
                   at::TensorOptions().dtype(at::kByte).pinned_memory(!like.device().is_cpu()));
}

/// The element of type T at that byte of a tensor of bytes.
template <class T>
T* at_byte(const at::Tensor& bytes, size_t offset = 0) {
  return reinterpret_cast<T*>(bytes.mutable_data_ptr<uint8_t>() + offset);
}
/// `count` doubles from that byte on.
at::Tensor doubles(const at::Tensor& bytes, size_t offset, size_t count) {
  const auto begin = static_cast<int64_t>(offset);
  return bytes.slice(0, begin, begin + static_cast<int64_t>(count * sizeof(double))).view(at::kDouble);
}

/// The results of an update on the device: an UpdateOutcome, then the sums of the loss.
constexpr size_t kSumsAt = rounded_up(sizeof(UpdateOutcome));

}  // namespace

/// The captured update of one bucket.
struct CapturedUpdater::CapturedStep {
  std::unique_ptr<Batch> batch;  // padded; the one that was captured
  at::Tensor inputs;             // device memory: UpdateInputs, then the parts of the batch
  bool by_formula = false;       // has operations without a kernel: these copy from the host, which cannot be captured
  CapturedGraph graph;
};

/// The host's buffers of one update in flight.
struct CapturedUpdater::Slot {
  at::Tensor inputs, outputs;  // host memory: inputs and results
  UpdateResult result;
};

CapturedUpdater::CapturedUpdater(Trainable& trained, const TrainOptions& train, OptimiserState& state,
                                 CaptureGraph capture, int64_t most_captured)
    : trained_(trained),
      train_(train),
      state_(state),
      capture_(capture),
      most_captured_(most_captured),
      slots_(kUnderWay),
      sums_(trained.loss_names().size()),
      outputs_(at::zeros({static_cast<int64_t>(kSumsAt + sums_ * sizeof(double))},
                         trained.parameters().values().options().dtype(at::kByte))) {
  require(train.accumulate == 1 && train.optimiser.chosen().adam,
          "captured updates: of several batches, or not of Adam");
  for (Slot& slot : slots_) slot.outputs = host_memory(static_cast<size_t>(outputs_.numel()), outputs_);
}

CapturedUpdater::~CapturedUpdater() = default;

int64_t CapturedUpdater::capacity() const { return kUnderWay; }

void CapturedUpdater::add(int64_t, int64_t) { std::abort(); }

void CapturedUpdater::start(int64_t n, int64_t index, double learning_rate) {
  const auto update = static_cast<uint32_t>(n);
  std::unique_ptr<Batch> batch = trained_.ready(index, update);
  Slot& slot = slots_.at(in_flight_);
  slot.result = {.rows = batch->rows()};
  slot.result.sums.predictions = batch->predictions();

  CapturedStep& step = steps_[batch->bucket()];
  batch->pad();
  size_t bytes = rounded_up(sizeof(UpdateInputs));
  for (const Batch::Part& part : batch->parts()) bytes += rounded_up(part.bytes);
  if (!step.inputs.defined()) step.inputs = at::empty({static_cast<int64_t>(bytes)}, outputs_.options());
  if (!slot.inputs.defined() || static_cast<size_t>(slot.inputs.numel()) < bytes)
    slot.inputs = host_memory(bytes, outputs_);

  const UpdateInputs inputs{.loss_scale = 1.0 / static_cast<double>(batch->loss_divisor()),
                            .adam = adam_factors(adam_step_of(train_, learning_rate, n)),
                            .update = update};
  std::memcpy(at_byte<char>(slot.inputs), &inputs, sizeof inputs);
  size_t offset = rounded_up(sizeof inputs);
  for (const Batch::Part& part : batch->parts()) {
    if (part.bytes > 0) std::memcpy(at_byte<char>(slot.inputs, offset), part.data, part.bytes);
    offset += rounded_up(part.bytes);
  }
  step.inputs.copy_(slot.inputs.slice(0, 0, static_cast<int64_t>(bytes)), /*non_blocking=*/true);

  const bool captured_before = step.graph.captured();
  if (!captured_before) step.batch = std::move(batch);
  fallback_ops_ = 0;
  step.graph.run(step.by_formula || captured_ == most_captured_ ? nullptr : capture_,
                 [this, &step, update] { launch(step, update); });
  captured_ += step.graph.captured() && !captured_before;
  step.by_formula = fallback_ops_ > 0;
  slot.result.fallback_ops = fallback_ops_;
  slot.outputs.copy_(outputs_, /*non_blocking=*/true);
  ++in_flight_;
}

void CapturedUpdater::launch(CapturedStep& step, uint32_t update) {
  Parameters& parameters = trained_.parameters();
  UpdateOutcome* outcome = at_byte<UpdateOutcome>(outputs_);
  const UpdateInputs* inputs = at_byte<UpdateInputs>(step.inputs);
  const ReplayInputs on_device{
      .update = &inputs->update,
      .loss = {.loss_scale = doubles(step.inputs, 0, 1), .sums = doubles(outputs_, kSumsAt, sums_)}};
  on_device.loss.sums.zero_();

  Tape tape(Tape::Kind::kRecording);
  size_t offset = rounded_up(sizeof(UpdateInputs));
  for (const Batch::Part& part : step.batch->parts()) {
    tape.set_device_copy(part.data, at_byte<char>(step.inputs, offset));
    offset += rounded_up(part.bytes);
  }
  trained_.loss({tape, update, &on_device}, *step.batch);
  tape.backward();
  fallback_ops_ = tape.fallback_ops();

  const at::Tensor& values = parameters.values();
  const OptimiserKernels& kernels = optimiser_kernels_for(values);
  void* stream = stream_for(values);
  kernels.squared_norm(
      {.size = values.numel(), .gradients = read<float>(parameters.gradients()), .sum = &outcome->squared_norm},
      stream);
  kernels.adam_on_device({.adam = adam_call(adam_step_of(train_, /*learning_rate=*/0, update), parameters.gradients(),
                                            parameters.values(), state_.buffers[0], state_.buffers[1]),
                          .clip_norm = train_.clip_norm,
                          .inputs = inputs,
                          .outcome = outcome,
                          .theta_bf16 = reinterpret_cast<uint16_t*>(write<bf16>(parameters.bf16_copy()))},
                         stream);
}

std::vector<UpdateResult> CapturedUpdater::collect() {
  wait_for(outputs_);
  std::vector<UpdateResult> results;
  for (size_t i = 0; i < in_flight_; ++i) {
    Slot& slot = slots_[i];
    const UpdateOutcome& outcome = *at_byte<UpdateOutcome>(slot.outputs);
    const double* sums = at_byte<double>(slot.outputs, kSumsAt);
    slot.result.sums.values.assign(sums, sums + sums_);
    slot.result.gradient_norm = std::sqrt(outcome.squared_norm);
    if (outcome.frozen_at != 0) slot.result.gradient_norm = std::numeric_limits<double>::quiet_NaN();
    results.push_back(slot.result);
    if (!slot.result.finite()) break;
  }
  in_flight_ = 0;
  return results;
}

}  // namespace tearless::engine
