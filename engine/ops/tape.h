// The list of operations of one step. Each operation's forward leaves on the tape what its backward needs; backward()
// walks the list from the end. There is no autograd graph over the model: autograd serves only as the judge in tests
// and, inside by_formula(), for an operation that has a formula but no hand-written backward yet.
//
// Letters for shapes, everywhere in engine/: T rows of one packed side, S source rows, N sentences, D model width, F
// feed-forward width, H heads, V vocabulary, K kept target vocabulary.
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

/// A tensor with a place for its gradient. A handle: copies name the same tensor.
class Value {
 public:
  Value() = default;
  explicit Value(at::Tensor data) : node_(std::make_shared<Node>(Node{std::move(data), {}, {}})) {}
  /// A parameter: its gradient is added to `grad`, a view of the flat gradient buffer. `low`: its copy in bf16, which
  /// follows it; undefined where the model computes in its own type.
  static Value parameter(at::Tensor data, at::Tensor grad, at::Tensor low = {});

  explicit operator bool() const { return node_ != nullptr; }
  const at::Tensor& data() const { return node_->data; }
  /// What products with rows of `type` take: the data, or its copy in that type.
  at::Tensor as(at::ScalarType type) const;
  /// Undefined where nothing that depends on this value reached the loss.
  const at::Tensor& grad() const { return node_->grad; }
  bool has_grad() const { return node_->grad.defined(); }
  const at::Tensor& low() const { return node_->low; }

  /// Adds a gradient. The tensor is taken over and may be written to later: never hand the same one to two values.
  void add_grad(at::Tensor grad) const;
  /// The gradient to add to in place; made of zeros where there is none yet.
  at::Tensor& grad_buffer() const;

 private:
  struct Node {
    at::Tensor data, grad, low;
  };
  std::shared_ptr<Node> node_;
};

/// Where the time of a tape went, for `tearless-engine bench`: by operation, and the shapes of its products.
struct TapeProfile {
  struct Times {
    double forward_seconds = 0, backward_seconds = 0;
    int64_t calls = 0;
  };
  struct Product {
    int64_t rows, in, out;
  };
  std::map<std::string, Times> operations;
  std::vector<Product> products;
  /// Waits for the device, so that an operation's time is its own.
  std::function<void()> wait = [] {};
};

class Tape {
 public:
  enum class Kind {
    kRecording,  // a training step: backward() will follow
    kForward,    // evaluation and decoding: nothing is kept
  };
  enum class Ops {
    kFast,       // hand-written operations where the device has them
    kReference,  // every operation by its formula: the judge
  };

  explicit Tape(Kind kind, Ops ops = Ops::kFast) : kind_(kind), ops_(ops) {}

  bool recording() const { return kind_ == Kind::kRecording; }
  /// True where kernels are wanted and there are some for x's device.
  bool fast(const at::Tensor& x) const;

  /// Adds an operation that has run. `backward` reads the gradients of its outputs and adds to those of its inputs.
  void record(const char* operation, std::function<void()> backward);

  using Formula = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
  /// Runs an operation by its formula; its backward is autograd over that formula alone. `inputs` may hold empty values
  /// (optional inputs), which reach the formula as undefined tensors. Inputs in bf16 reach it as fp32. The result is of
  /// the first input's type, or of `type` where given.
  Value by_formula(const std::vector<Value>& inputs, const Formula& formula,
                   std::optional<at::ScalarType> type = std::nullopt);

  /// Holds on to something that operations refer to until backward() is done, and returns it.
  template <class T>
  const T& keep(T value) {
    auto kept = std::make_shared<const T>(std::move(value));
    kept_.push_back(kept);
    return *kept;
  }

  /// Says that what stands at `host` stands at `device` too: operations then read it there instead of copying it. Both
  /// must live as long as the tape.
  void place(const void* host, const void* device) { placed_[host] = device; }
  /// Null where nothing was placed.
  const void* placed(const void* host) const {
    const auto it = placed_.find(host);
    return it == placed_.end() ? nullptr : it->second;
  }

  /// Walks the tape from its end and empties it. The gradient of the last operation's output must stand.
  void backward();

  /// Adds times to `profile` from now on: an operation's forward is what passed since the one before it was recorded.
  void profile_to(TapeProfile* profile);
  TapeProfile* profile() const { return profile_; }

  /// How many operations ran by formula since the tape was made.
  int64_t fallback_ops() const { return fallback_ops_; }

 private:
  Kind kind_;
  Ops ops_;
  int64_t fallback_ops_ = 0;
  struct Record {
    const char* operation;
    std::function<void()> backward;
  };
  std::vector<Record> records_;
  TapeProfile* profile_ = nullptr;
  std::chrono::steady_clock::time_point last_record_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::map<const void*, const void*> placed_;
};

}  // namespace tearless::engine
