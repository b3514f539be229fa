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
    const auto row = static_cast<uint32_t>(i / columns);
    const auto column = static_cast<uint32_t>(i % columns);
    const auto uniform = [&](uint32_t inner) { return uniform_open(stream.draw(inner, row, 0, 0)); };
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
    values[i] = static_cast<float>(value);
  }
}

}  // namespace

int64_t ParameterSpec::size() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t total_size(const std::vector<ParameterSpec>& specs) {
  int64_t total = 0;
  for (const ParameterSpec& spec : specs) total += spec.size();
  return total;
}

Parameters::Parameters(std::vector<ParameterSpec> specs, uint32_t seed, const at::Device& device,
                       RowPrecision precision)
    : specs_(std::move(specs)), seed_(seed) {
  // Matmuls are fast only on 16-byte aligned operands. A single scalar gain in front of a matrix would misalign all
  // that follows.
  constexpr int64_t kInSixteenBytes = 8;  // elements of bf16
  std::stable_partition(specs_.begin(), specs_.end(),
                        [](const ParameterSpec& spec) { return spec.size() % kInSixteenBytes == 0; });
  int64_t offset = 0;
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (!index_.emplace(specs_[i].name, std::pair{i, offset}).second) {
      throw std::logic_error("two parameters of one name: " + specs_[i].name);
    }
    offset += specs_[i].size();
  }
  values_ = at::empty({offset}, at::TensorOptions(device).dtype(at::kFloat));
  gradients_ = at::zeros_like(values_);
  if (precision == RowPrecision::kBf16) bf16_copy_ = at::empty_like(values_, at::kBFloat16);
  initialise();
}

void Parameters::initialise() {
  at::Tensor host = values_.is_cpu() ? values_ : at::empty(values_.sizes(), at::kFloat);
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

Value Parameters::view(int64_t offset, const std::vector<int64_t>& shape) const {
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  const auto part = [&](const at::Tensor& all) { return all.slice(0, offset, offset + size).view(shape); };
  return Value::parameter(part(values_), part(gradients_), bf16_copy_.defined() ? part(bf16_copy_) : bf16_copy_);
}

Value Parameters::get(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? Value() : view(it->second.second, specs_[it->second.first].shape);
}

Value Parameters::joined(const std::vector<std::string>& names) const {
  const auto& [first, begin] = index_.at(names.front());
  std::vector<int64_t> shape = specs_[first].shape;
  int64_t end = begin + specs_[first].size();
  for (size_t i = 1; i < names.size(); ++i) {
    const auto& [spec, offset] = index_.at(names[i]);
    if (offset != end) throw std::logic_error("joined parameters must follow each other: " + names[i]);
    shape[0] += specs_[spec].shape[0];
    end = offset + specs_[spec].size();
  }
  return view(begin, shape);
}

}  // namespace tearless::engine
