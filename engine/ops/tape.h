// The tape: the list of the operations that a forward pass ran. Each operation saves on it what its backward needs;
// Tape::backward() runs the tape backwards and accumulates gradients.
//
// There is no autograd graph of the model. Autograd is used only inside Tape::by_formula(): in the reference
// implementation that tests compare with, and for an operation that has a formula but no kernel for the device.
//
// Shape letters, everywhere in engine/:
//   T  rows of one packed side (packed_rows.h)     N  sentences              V  vocabulary size
//   S  source rows                                 D  model width            K  size of the output vocabulary
//   H  heads, of d_h = D / H channels each         F  feed-forward width     W  any width
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tearless::engine {

class PackedWeights;  // packed_weights.h

/// A tensor and its gradient. A handle with shared ownership: copies refer to the same tensor. Default: empty.
class Value {
 public:
  Value() = default;
  /// `requires_grad` = false: input data, of which no gradient is wanted.
  explicit Value(at::Tensor data, bool requires_grad = true)
      : node_(std::make_shared<Node>(Node{std::move(data), {}, {}, requires_grad})) {}
  /// A parameter. Its gradient is accumulated in `grad`, a view of the flat gradient buffer. `bf16_copy` holds the same
  /// parameter rounded to bf16, kept up to date by the caller; undefined where the model computes in fp32.
  static Value parameter(at::Tensor data, at::Tensor grad, at::Tensor bf16_copy = {});
  /// A parameter that has no data yet: bind() supplies it, to this handle and to all copies of it.
  static Value unbound_parameter() { return Value(at::Tensor()); }
  void bind(at::Tensor data, at::Tensor grad, at::Tensor bf16_copy) const;

  explicit operator bool() const { return node_ != nullptr; }
  const at::Tensor& data() const { return node_->data; }
  /// The data in `type`, as a matmul with rows of that type takes it: the bf16 copy where there is one, else converted.
  at::Tensor as(at::ScalarType type) const;
  /// Undefined until a gradient has been added: it stays so where the loss does not depend on this value.
  const at::Tensor& grad() const { return node_->grad; }
  bool has_grad() const { return node_->grad.defined(); }
  /// If false, an operation may omit the work for this value's gradient, and add_grad() ignores it.
  bool requires_grad() const { return node_->requires_grad; }
  const at::Tensor& bf16_copy() const { return node_->bf16_copy; }

  /// Adds a gradient of the data's shape. Takes over the tensor and may write to it later: never pass the same one to
  /// two values.
  void add_grad(at::Tensor grad) const;
  /// The gradient, to be accumulated in place; allocated as zeros where the value has no gradient yet.
  at::Tensor& grad_buffer() const;

 private:
  struct Node {
    at::Tensor data, grad, bf16_copy;
    bool requires_grad;
  };
  std::shared_ptr<Node> node_;
};

/// Where the time of a tape went, for `tearless-engine bench`: seconds by operation, the shapes of its matmuls, and the
/// multiply-adds that its forward pass needs.
struct TapeProfile {
  struct Times {
    double forward_seconds = 0, backward_seconds = 0;
    int64_t calls = 0;
  };
  struct Matmul {
    int64_t rows, in, out;  // [rows, in] · [in, out]
  };
  std::map<std::string, Times> operations;
  std::vector<Matmul> matmuls;
  int64_t attention_multiply_adds = 0;  // scores and weighted sums of the pairs of rows that see each other

  /// Floating-point operations of the tape and its backward, which has two matmuls for each of the forward pass.
  double operations_needed() const;
  /// Called before the clock is read: waits for the device, so that a kernel's time counts for its own operation.
  std::function<void()> wait = [] {};
};

class Tape {
 public:
  enum class Kind {
    kRecording,  // training: backward() will follow
    kForward,    // evaluation and decoding: nothing is saved for backward
  };
  enum class Ops {
    kFast,       // hand-written kernels where the device has them (backend.h: fast())
    kReference,  // every operation by its formula: the reference implementation
  };

  explicit Tape(Kind kind, Ops ops = Ops::kFast) : kind_(kind), ops_(ops) {}

  bool recording() const { return kind_ == Kind::kRecording; }
  Ops ops() const { return ops_; }

  /// Appends an operation that has run; does nothing unless recording(). `operation` is its name in profiles and must
  /// outlive the tape. `backward` reads the gradients of the outputs and adds to those of the inputs.
  void record(const char* operation, std::function<void()> backward);

  using Formula = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
  /// Runs an operation by its formula and records it; its backward is autograd over that formula alone. `inputs` may
  /// hold empty values (optional inputs), which reach the formula as undefined tensors. Inputs in bf16 reach it as
  /// fp32. The result has the type of inputs[0], or `type` where given.
  Value by_formula(const std::vector<Value>& inputs, const Formula& formula,
                   std::optional<at::ScalarType> type = std::nullopt);

  /// Moves `value` into the tape and returns it: for data that operations refer to until backward() is done.
  template <class T>
  const T& save(T value) {
    auto saved = std::make_shared<const T>(std::move(value));
    saved_.push_back(saved);
    return *saved;
  }

  /// Registers `device` as the device copy of the host array at `host`: operations then read it instead of copying the
  /// array to the device. Both must outlive the tape.
  void set_device_copy(const void* host, const void* device) { device_copies_[host] = device; }
  /// The registered device copy of `host`, or null.
  const void* device_copy(const void* host) const {
    const auto it = device_copies_.find(host);
    return it == device_copies_.end() ? nullptr : it->second;
  }

  /// Runs the tape backwards and empties it. REQUIRES: the last operation's output has its gradient
  /// (smoothed_cross_entropy() sets it).
  void backward();

  /// From now on adds times to `profile`, which must outlive the tape. An operation's forward time is the time since
  /// the operation before it was recorded.
  void profile_to(TapeProfile* profile);
  TapeProfile* profile() const { return profile_; }

  /// From now on linear() lays out weights once and keeps them in `weights`, which must outlive the tape: for tapes
  /// that do not record, while the weights do not change.
  void set_packed_weights(PackedWeights* weights) { packed_weights_ = weights; }
  PackedWeights* packed_weights() const { return packed_weights_; }

  /// The factor of the summed loss in the gradient; unset: 1 / predictions (RowWeights::divisor),
  /// so that the gradient is that of the mean.
  void set_loss_scale(double scale) { loss_scale_ = scale; }
  std::optional<double> loss_scale() const { return loss_scale_; }

  /// How many operations ran by formula since construction.
  int64_t fallback_ops() const { return fallback_ops_; }

 private:
  Kind kind_;
  Ops ops_;
  int64_t fallback_ops_ = 0;
  std::optional<double> loss_scale_;
  struct Record {
    const char* operation;
    std::function<void()> backward;
  };
  std::vector<Record> records_;
  TapeProfile* profile_ = nullptr;
  std::chrono::steady_clock::time_point last_record_;
  std::vector<std::shared_ptr<const void>> saved_;
  std::map<const void*, const void*> device_copies_;
  PackedWeights* packed_weights_ = nullptr;
};

}  // namespace tearless::engine
