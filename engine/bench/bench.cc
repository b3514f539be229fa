#include "engine/bench/bench.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "engine/ops/backend.h"
#include "engine/task/transformer_batch.h"
#include "engine/train/execution.h"

namespace tearless::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr double kLearningRate = 1e-4;
constexpr int32_t kFirstWord = kUnk + 1;

TokenLines random_lines(const std::vector<int64_t>& words, bool with_eos, int64_t vocab_size,
                        const RandomStream& stream) {
  TokenLines lines;
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<int32_t> line;
    for (int64_t w = 0; w < words[i]; ++w) {
      const uint32_t bits = stream.draw(static_cast<uint32_t>(w), 0, static_cast<uint32_t>(i), 0);
      line.push_back(kFirstWord + static_cast<int32_t>(bits % static_cast<uint32_t>(vocab_size - kFirstWord)));
    }
    if (with_eos) line.push_back(kEos);
    lines.add(line);
  }
  return lines;
}

ParallelTokens random_corpus(const BenchLengths& lengths, int64_t vocab_size, uint32_t seed) {
  std::vector<int64_t> source, target;
  for (const auto& batch : lengths) {
    for (const auto& [source_rows, target_rows] : batch) {
      source.push_back(source_rows - 1);
      target.push_back(target_rows - 1);
    }
  }
  return {random_lines(source, true, vocab_size, RandomStream(seed, "bench.source")),
          random_lines(target, false, vocab_size, RandomStream(seed, "bench.target"))};
}

}  // namespace

BenchLengths read_bench_lengths(const std::filesystem::path& path) {
  BenchLengths lengths;
  try {
    lengths = nlohmann::json::parse(read_file(path)).at("batches").get<BenchLengths>();
  } catch (const nlohmann::json::exception& error) {
    fail("{}: not a list of sentence lengths ({}); expected {{\"batches\": [[[source rows, target rows], …], …]}}",
         path.string(), error.what());
  }
  if (lengths.empty()) fail("{}: \"batches\" is empty", path.string());
  for (const auto& batch : lengths) {
    if (batch.empty()) fail("{}: a batch has no sentences", path.string());
    for (const auto& [source, target] : batch) {
      if (source < 1 || target < 1)
        fail("{}: a sentence has {} source and {} target rows; each needs at least 1", path.string(), source, target);
    }
  }
  return lengths;
}

BenchLengths equal_bench_lengths(int64_t tokens) {
  constexpr int32_t kRows = 24;
  return {std::vector(static_cast<size_t>(std::max<int64_t>(1, tokens / (2 * kRows))), std::pair{kRows, kRows})};
}

Bench::Bench(const TranslateOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
             int64_t vocab_size, const BenchLengths& lengths)
    : options_(options),
      train_(train),
      execution_(execution),
      corpus_(random_corpus(lengths, vocab_size, train.seed_for_order())),
      parameters_(train.seed_for_init(), device_of(execution), row_precision(execution)),
      model_(
          std::make_unique<Transformer>(parameters_, options.model,
                                        OutputVocabulary::from(std::vector<uint8_t>(static_cast<size_t>(vocab_size), 1),
                                                               options.model.mask_target_vocabulary),
                                        train.seed_for_dropout())),
      translator_(std::make_unique<Translator>(*model_, options.decode, ops_of(execution))) {
  parameters_.allocate();
  moments_.emplace(parameters_.values());
  updater_ = make_updater(*this, train, execution, *moments_);
  int32_t line = 0;
  for (const auto& batch : lengths) {
    batches_.emplace_back();
    for (size_t i = 0; i < batch.size(); ++i) batches_.back().push_back(line++);
  }
}

std::unique_ptr<Batch> Bench::ready(int64_t index, uint32_t update) {
  return std::make_unique<TransformerBatch>(model_->ready(pack(corpus_, batches_[static_cast<size_t>(index)]), update));
}

LossSums Bench::loss(const ForwardContext& context, const Batch& batch) {
  return loss_sums(model_->loss(context, TransformerBatch::in(batch), train_.label_smoothing));
}

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
  profile.wait = [this] { wait_for(parameters_.values()); };
  const auto updater = make_updater(*this, train_, execution_, *moments_, &profile);
  for (int64_t i = 0; i < batch_count(); ++i) make(*updater, 1);
  return profile;
}

Bench::Decoded Bench::decode() {
  // Two translations capture all decode steps before the timed one.
  for (int i = 0; i < 2 && updater_->capacity() > 1 && !decoded_; ++i) translator_->translate(corpus_, [] {});
  decoded_ = true;
  const Clock::time_point start = Clock::now();
  const auto outputs = translator_->translate(corpus_, [] {});
  Decoded decoded{seconds_since(start), static_cast<int64_t>(outputs.size()), 0};
  for (const auto& output : outputs) decoded.tokens += static_cast<int64_t>(output.size());
  return decoded;
}

double Bench::matmul_floor_seconds(const std::vector<TapeProfile::Matmul>& matmuls) const {
  const auto options = parameters_.values().options().dtype(parameters_.row_type());
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> shapes;
  for (const auto& p : matmuls) ++shapes[{p.rows, p.in, p.out}];
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
      wait_for(parameters_.values());
      tries.push_back(seconds_since(start));
    }
    std::nth_element(tries.begin(), tries.begin() + kTries / 2, tries.end());
    sum += static_cast<double>(count) * tries[kTries / 2];
  }
  return sum;
}

}  // namespace tearless::engine
