#include "engine/ops/tape.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

namespace tearless::engine {

double TapeProfile::operations_needed() const {
  constexpr double kOperations = 2, kPasses = 3;  // of a multiply-add; forward, and two matmuls backward
  double multiply_adds = static_cast<double>(attention_multiply_adds);
  for (const Matmul& m : matmuls) multiply_adds += static_cast<double>(m.rows * m.in * m.out);
  return kOperations * kPasses * multiply_adds;
}

using Clock = std::chrono::steady_clock;

namespace {

at::Tensor widened(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x; }

}  // namespace

Value Value::parameter(at::Tensor data, at::Tensor grad, at::Tensor bf16_copy) {
  Value value = unbound_parameter();
  value.bind(std::move(data), std::move(grad), std::move(bf16_copy));
  return value;
}

void Value::bind(at::Tensor data, at::Tensor grad, at::Tensor bf16_copy) const {
  *node_ = {std::move(data), std::move(grad), std::move(bf16_copy), /*requires_grad=*/true};
}

at::Tensor Value::as(at::ScalarType type) const {
  return type == at::kBFloat16 && node_->bf16_copy.defined() ? node_->bf16_copy : node_->data.to(type);
}

void Value::add_grad(at::Tensor grad) const {
  if (!node_->requires_grad) return;
  if (node_->grad.defined()) {
    node_->grad.add_(grad);
  } else {
    node_->grad = std::move(grad);
  }
}

at::Tensor& Value::grad_buffer() const {
  if (!node_->grad.defined()) node_->grad = at::zeros_like(node_->data);
  return node_->grad;
}

void Tape::record(const char* operation, std::function<void()> backward) {
  if (!recording()) return;
  records_.push_back({operation, std::move(backward)});
  if (!profile_) return;
  profile_->wait();
  const auto now = Clock::now();
  TapeProfile::Times& times = profile_->operations[operation];
  times.forward_seconds += std::chrono::duration<double>(now - last_record_).count();
  ++times.calls;
  last_record_ = now;
}

void Tape::profile_to(TapeProfile* profile) {
  profile_ = profile;
  last_record_ = Clock::now();
}

Value Tape::by_formula(const std::vector<Value>& inputs, const Formula& formula, std::optional<at::ScalarType> type) {
  ++fallback_ops_;
  std::vector<at::Tensor> leaves;
  bool requires_grad = false;
  for (const Value& input : inputs) {
    leaves.push_back(input ? widened(input.data().detach()) : at::Tensor());
    if (!input || !input.requires_grad()) continue;
    requires_grad = true;
    if (recording()) leaves.back().requires_grad_(true);
  }
  at::Tensor output;
  {
    const at::AutoGradMode local_graph(recording());
    output = formula(leaves);
  }
  // A copy where backward() follows: autograd may have saved the output, and the next operation may overwrite the
  // result.
  const Value result(output.detach().to(type.value_or(inputs.front().data().scalar_type()), /*non_blocking=*/false,
                                        /*copy=*/recording()),
                     requires_grad);
  record("by formula", [inputs, leaves, output, result] {
    if (!result.has_grad()) return;
    std::vector<at::Tensor> wanted;
    std::vector<Value> receivers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || !inputs[i].requires_grad()) continue;
      wanted.push_back(leaves[i]);
      receivers.push_back(inputs[i]);
    }
    const auto grads =
        torch::autograd::grad({output}, wanted, {result.grad().to(output.scalar_type())}, /*retain_graph=*/false,
                              /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < grads.size(); ++i) {
      // copy = true, because autograd may return one tensor for two inputs and add_grad() takes it over.
      if (grads[i].defined()) receivers[i].add_grad(grads[i].to(receivers[i].data().scalar_type(), false, true));
    }
  });
  return result;
}

void Tape::backward() {
  while (!records_.empty()) {
    // Moved out: what the operation saved is freed at the end of this iteration, so memory falls during backward.
    const Record record = std::move(records_.back());
    records_.pop_back();
    const auto start = profile_ ? Clock::now() : Clock::time_point();
    record.backward();
    if (!profile_) continue;
    profile_->wait();
    profile_->operations[record.operation].backward_seconds +=
        std::chrono::duration<double>(Clock::now() - start).count();
  }
  saved_.clear();
}

}  // namespace tearless::engine
