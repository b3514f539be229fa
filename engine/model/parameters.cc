#include "engine/model/parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

#include "engine/ops/random.h"

namespace tearless::engine {
namespace {

void fill(float* values, const ParameterSpec& spec, uint32_t seed) {
  const RandomStream stream(seed, "init." + spec.name);
  const int64_t columns = spec.shape.back();
  for (int64_t i = 0; i < spec.size(); ++i) {
    const int64_t row = i / columns;
    const auto column = static_cast<uint32_t>(i % columns);
    const auto uniform = [&](uint32_t inner) {
      return uniform_open(stream.draw(inner, static_cast<uint32_t>(row), 0, 0));
    };
    double value = spec.initial.scale;
    switch (spec.initial.kind) {
      case Initial::Kind::kConstant:
        break;
      case Initial::Kind::kUniform:
        value *= 2 * uniform(column) - 1;
        break;
      case Initial::Kind::kNormal:  // Box–Muller, the cosine half
        value *=
            std::sqrt(-2 * std::log(uniform(2 * column))) * std::cos(2 * std::numbers::pi * uniform(2 * column + 1));
        break;
    }
    value += spec.initial.mean;
    values[i] = row == spec.initial.zero_row ? 0.0f : static_cast<float>(value);
  }
}

/// Matmuls are fast only on 16-byte aligned operands. A single scalar gain in front of a matrix would misalign all that
/// follows.
bool keeps_alignment(const ParameterSpec& spec) {
  constexpr int64_t kInSixteenBytes = 8;  // elements of bf16
  return spec.size() % kInSixteenBytes == 0;
}

int64_t size_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

int64_t ParameterSpec::size() const { return size_of(shape); }

Parameters::Parameters(uint32_t seed, const at::Device& device, RowPrecision precision)
    : seed_(seed), device_(device), precision_(precision) {}

Value Parameters::declare(ParameterSpec spec) { return declare_joined({std::move(spec)}); }

Value Parameters::declare_joined(std::vector<ParameterSpec> specs) {
  if (values_.defined()) throw std::logic_error("declared after allocate(): " + specs.front().name);
  std::vector<int64_t> shape = specs.front().shape;
  for (const ParameterSpec& spec : specs) {
    // One shape, so that allocate() does not separate them.
    if (spec.shape != specs.front().shape) throw std::logic_error("joined with another shape: " + spec.name);
    if (!index_.emplace(spec.name, std::pair{specs_.size(), int64_t{0}}).second) {
      throw std::logic_error("two parameters of one name: " + spec.name);
    }
    specs_.push_back(spec);
  }
  shape[0] *= static_cast<int64_t>(specs.size());
  declared_.push_back({specs.front().name, std::move(shape), Value::unbound_parameter()});
  return declared_.back().value;
}

void Parameters::allocate() {
  std::stable_partition(specs_.begin(), specs_.end(), keeps_alignment);
  int64_t offset = 0;
  for (size_t i = 0; i < specs_.size(); ++i) {
    index_.at(specs_[i].name) = {i, offset};
    offset += specs_[i].size();
  }
  values_ = at::empty({offset}, at::TensorOptions(device_).dtype(at::kFloat));
  gradients_ = at::zeros_like(values_);
  if (precision_ == RowPrecision::kBf16) bf16_copy_ = at::empty_like(values_, at::kBFloat16);
  for (const Declared& d : declared_) bind(d.value, d.first, d.shape);
  declared_.clear();
  initialise();
}

int64_t Parameters::count() const {
  int64_t total = 0;
  for (const ParameterSpec& spec : specs_) total += spec.size();
  return total;
}

void Parameters::initialise() {
  at::Tensor host = device_.is_cpu() ? values_ : at::empty(values_.sizes(), at::kFloat);
  float* next = host.mutable_data_ptr<float>();
  for (const ParameterSpec& spec : specs_) {
    fill(next, spec, seed_);
    next += spec.size();
  }
  if (!host.is_alias_of(values_)) values_.copy_(host);
  update_bf16_copy();
}

void Parameters::update_bf16_copy() {
  if (bf16_copy_.defined()) bf16_copy_.copy_(values_);
}

void Parameters::bind(const Value& value, std::string_view first, const std::vector<int64_t>& shape) const {
  const int64_t offset = index_.find(first)->second.second;
  const auto part = [&](const at::Tensor& all) { return all.slice(0, offset, offset + size_of(shape)).view(shape); };
  value.bind(part(values_), part(gradients_), bf16_copy_.defined() ? part(bf16_copy_) : bf16_copy_);
}

Value Parameters::get(std::string_view name) const {
  const auto it = index_.find(name);
  if (it == index_.end()) return {};
  const Value value = Value::unbound_parameter();
  bind(value, name, specs_[it->second.first].shape);
  return value;
}

}  // namespace tearless::engine
