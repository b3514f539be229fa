#include "engine/task/bench.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "engine/decode/search.h"
#include "engine/train/execution.h"

namespace tearless::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr double kLearningRate = 1e-4;
constexpr int32_t kFirstWord = kUnk + 1;

TokenLines random_lines(const std::vector<int64_t>& words, bool with_eos, int64_t vocabulary,
                        const RandomStream& stream) {
  TokenLines lines;
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<int32_t> line;
    for (int64_t w = 0; w < words[i]; ++w) {
      const uint32_t bits = stream.draw(static_cast<uint32_t>(w), 0, static_cast<uint32_t>(i), 0);
      line.push_back(kFirstWord + static_cast<int32_t>(bits % static_cast<uint32_t>(vocabulary - kFirstWord)));
    }
    if (with_eos) line.push_back(kEos);
    lines.add(line);
  }
  return lines;
}

ParallelTokens random_corpus(const BenchLengths& lengths, int64_t vocabulary, uint32_t seed) {
  std::vector<int64_t> source, target;
  for (const auto& batch : lengths) {
    for (const auto& [source_rows, target_rows] : batch) {
      source.push_back(source_rows - 1);
      target.push_back(target_rows - 1);
    }
  }
  return {random_lines(source, true, vocabulary, RandomStream(seed, "bench.source")),
          random_lines(target, false, vocabulary, RandomStream(seed, "bench.target"))};
}

}  // namespace

BenchLengths read_bench_lengths(const std::filesystem::path& path) {
  BenchLengths lengths;
  try {
    lengths = nlohmann::json::parse(read_file(path)).at("batches").get<BenchLengths>();
  } catch (const nlohmann::json::exception& error) {
    fail("{}: not a list of sentence lengths ({}); wanted is {{\"batches\": [[[source rows, target rows], …], …]}}",
         path.string(), error.what());
  }
  if (lengths.empty()) fail("{}: \"batches\" is empty", path.string());
  for (const auto& batch : lengths) {
    if (batch.empty()) fail("{}: a batch has no sentences", path.string());
    for (const auto& [source, target] : batch) {
      if (source < 1 || target < 1)
        fail("{}: a sentence has {} and {} rows; at least 1 is wanted", path.string(), source, target);
    }
  }
  return lengths;
}

BenchLengths equal_bench_lengths(int64_t tokens) {
  constexpr int32_t kRows = 24;
  return {std::vector(static_cast<size_t>(std::max<int64_t>(1, tokens / (2 * kRows))), std::pair{kRows, kRows})};
}

Bench::Bench(const RunOptions& options, int64_t vocabulary, const BenchLengths& lengths)
    : options_(options),
      corpus_(random_corpus(lengths, vocabulary, options.train.seed_for_order())),
      parameters_(transformer_specs(options.model, vocabulary), options.train.seed_for_init(), device_of(options.run)),
      model_(
          std::make_unique<Transformer>(parameters_, options.model,
                                        KeptVocabulary::from(std::vector<uint8_t>(static_cast<size_t>(vocabulary), 1),
                                                             options.model.mask_target_vocabulary),
                                        options.train.seed_for_dropout())),
      first_moment_(at::zeros_like(parameters_.values())),
      second_moment_(at::zeros_like(parameters_.values())) {
  int32_t line = 0;
  for (const auto& batch : lengths) {
    batches_.emplace_back();
    for (size_t i = 0; i < batch.size(); ++i) batches_.back().push_back(line++);
  }
}

double Bench::update(TapeProfile* profile) {
  const Clock::time_point start = Clock::now();
  const int64_t n = ++updates_;
  Tape tape(Tape::Kind::kRecording, ops_of(options_.run));
  if (profile) tape.profile_to(profile);
  const Step step{tape, static_cast<uint32_t>(n)};
  const PackedBatch& batch = tape.keep(pack(corpus_, batches_[static_cast<size_t>((n - 1) % batch_count())]));
  model_->loss(step, batch, options_.train.label_smoothing);
  tape.backward();
  const Clock::time_point optimiser = Clock::now();
  adam_step({kLearningRate, options_.train.adam.beta1, options_.train.adam.beta2, options_.train.adam.eps,
             options_.train.clip_norm, n},
            global_norm(parameters_.gradients()), parameters_.gradients(), parameters_.values(), first_moment_,
            second_moment_);
  synchronise();
  if (profile) {
    TapeProfile::Times& times = profile->operations["clip, Adam"];
    times.forward_seconds += seconds_since(optimiser);
    ++times.calls;
  }
  return seconds_since(start);
}

void Bench::synchronise() const {
  const at::Device device = parameters_.values().device();
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

int64_t Bench::next_rows() const {
  int64_t rows = 0;
  for (const int32_t line : batches_[static_cast<size_t>(updates_ % batch_count())]) {
    rows += corpus_.source_length(line) + corpus_.target_length(line);
  }
  return rows;
}

Bench::Decoded Bench::decode() const {
  const Clock::time_point start = Clock::now();
  const auto outputs = translate(*model_, corpus_, options_.decode, ops_of(options_.run), [] {});
  Decoded decoded{seconds_since(start), static_cast<int64_t>(outputs.size()), 0};
  for (const auto& output : outputs) decoded.tokens += static_cast<int64_t>(output.size());
  return decoded;
}

double Bench::product_floor_seconds(const std::vector<TapeProfile::Product>& products) const {
  const auto options = parameters_.values().options();
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> shapes;
  for (const auto& p : products) ++shapes[{p.rows, p.in, p.out}];
  double sum = 0;
  for (const auto& [shape, count] : shapes) {
    const auto [rows, in, out] = shape;
    const at::Tensor x = at::ones({rows, in}, options), weight = at::ones({out, in}, options);
    const at::Tensor dy = at::ones({rows, out}, options);
    at::Tensor y = at::empty_like(dy), d_weight = at::empty_like(weight), dx = at::empty_like(x);
    constexpr int kTries = 9;
    std::vector<double> tries;
    for (int i = 0; i < kTries; ++i) {
      const Clock::time_point start = Clock::now();
      at::mm_out(y, x, weight.t());
      at::mm_out(d_weight, dy.t(), x);
      at::mm_out(dx, dy, weight);
      synchronise();
      tries.push_back(seconds_since(start));
    }
    std::nth_element(tries.begin(), tries.begin() + kTries / 2, tries.end());
    sum += static_cast<double>(count) * tries[kTries / 2];
  }
  return sum;
}

}  // namespace tearless::engine
