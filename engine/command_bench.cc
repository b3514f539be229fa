// tearless-engine bench: time per update, tokens/s, the share of the matmuls, and the time of every operation.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/run_directory.h"
#include "base/toml.h"
#include "engine/bench/bench.h"
#include "engine/bench/bench_kernels.h"
#include "engine/commands.h"
#include "engine/device.h"
#include "engine/ops/backend.h"
#include "engine/ops/kernel_variants.h"
#include "engine/ops/matmul.h"
#include "engine/ops/memory.h"
#include "engine/run/run_options.h"
#include "engine/task/translate.h"
#include "engine/train/execution.h"

namespace tearless::engine {
namespace {

using nlohmann::json;

struct BenchArguments {
  std::filesystem::path config, lengths;
  int64_t vocabulary = 8000, threads = 0, updates = 30, megabytes = 0;
  std::string instructions, variants;
  bool bf16 = false, turns = false, as_json = false, decode = false, kernels = false;
};

json decoding_as_json(Bench& bench) {
  const auto timed = bench.decode();
  if (!timed) fail("bench: this task does not translate: there is nothing to decode");
  return {{"seconds", timed->seconds}, {"sentences", timed->decoded.sentences}, {"tokens", timed->decoded.tokens}};
}

json description(const Bench& bench) {
  return {{"build", std::string(build_stamp())},
          {"instructions", std::string(cpu_backend().name)},
          {"matmul", matmul_library_name()},
          {"threads", at::get_num_threads()},
          {"parameters", bench.parameter_count()}};
}

/// peak_operations_per_second() of the run's device and precision; null where that was not what it measures.
json peak(const ExecutionOptions& run) {
  if (run.device != ExecutionOptions::Device::kCpu || uses_bf16_matmuls()) return nullptr;
  const double rate = peak_operations_per_second();
  prepare_processor(run);
  return rate;
}

/// Answers requests on standard input, one line of JSON each, so that another program can be timed alternately.
int take_turns(Bench& bench, const ExecutionOptions& run) {
  json ready = description(bench);
  ready["ready"] = true;
  fmt::print("{}\n", ready.dump());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const json question = json::parse(line, nullptr, /*allow_exceptions=*/false);
    json answer;
    if (question.is_object() && question.contains("updates") && question["updates"].is_number_integer()) {
      answer = {{"seconds", bench.updates(question["updates"].get<int64_t>())}};
    } else if (question.is_object() && question.contains("decode")) {
      answer = decoding_as_json(bench);
    } else if (question.is_object() && question.contains("peak")) {
      answer = {{"peak_operations_per_second", peak(run)}, {"operations_per_update", bench.operations_per_update()}};
    } else {
      fail(
          "bench --turns: cannot parse \"{}\"; expected {{\"updates\": N}}, {{\"decode\": true}} or {{\"peak\": true}}",
          line);
    }
    fmt::print("{}\n", answer.dump());
    std::fflush(stdout);
  }
  return kExitDone;
}

int report(Bench& bench, const ExecutionOptions& run, const BenchArguments& args) {
  const int64_t rows_before = bench.rows_seen();
  const std::vector<double> seconds = bench.updates(args.updates);
  const int64_t rows = bench.rows_seen() - rows_before;
  const double step = median(seconds);
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const TapeProfile profile = bench.profile();
  const double per_update = 1.0 / static_cast<double>(bench.batch_count());
  const double floor = bench.matmul_floor_seconds(profile.matmuls) * per_update;

  json out = description(bench);
  out["updates"] = args.updates;
  out["step_seconds"] = step;
  out["tokens_per_second"] = static_cast<double>(rows) / total;
  out["matmul_floor_seconds"] = floor;
  out["operations_per_update"] = profile.operations_needed() * per_update;
  out["peak_operations_per_second"] = peak(run);
  out["peak_memory_bytes"] = peak_memory_bytes();
  json& operations = out["operations"] = json::object();
  for (const auto& [name, times] : profile.operations) {
    operations[name] = {{"calls", static_cast<double>(times.calls) * per_update},
                        {"forward_seconds", times.forward_seconds * per_update},
                        {"backward_seconds", times.backward_seconds * per_update}};
  }
  if (args.decode) out["decode"] = decoding_as_json(bench);
  if (args.as_json) {
    fmt::print("{}\n", out.dump(2));
    return kExitDone;
  }
  fmt::print("{}\n{} parameters, {} threads, kernels for {}, matmuls by {}\n", build_stamp(), bench.parameter_count(),
             at::get_num_threads(), cpu_backend().name, matmul_library_name());
  fmt::print("step          {:10.3f} ms (median of {})\ntokens/s      {:10.0f}, source and target\n", 1e3 * step,
             args.updates, static_cast<double>(rows) / total);
  fmt::print("matmuls alone {:10.3f} ms: {:.0f} % of the mean step\npeak memory   {:10.1f} MiB\n", 1e3 * floor,
             100 * floor * static_cast<double>(args.updates) / total,
             static_cast<double>(peak_memory_bytes()) / (1 << 20));
  if (const json& limit = out["peak_operations_per_second"]; !limit.is_null()) {
    const double needed = out["operations_per_update"].get<double>() / step;
    fmt::print("{:.1f} GFLOP/s of the {:.1f} that a large matmul reaches: {:.0f} % of the peak\n", 1e-9 * needed,
               1e-9 * limit.get<double>(), 100 * needed / limit.get<double>());
  }
  fmt::print("\n{:26}{:>8}{:>13}{:>13}{:>8}\n", "operation", "calls", "forward ms", "backward ms", "share");
  std::vector<std::pair<std::string, TapeProfile::Times>> sorted(profile.operations.begin(), profile.operations.end());
  const auto all = [](const TapeProfile::Times& t) { return t.forward_seconds + t.backward_seconds; };
  std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return all(a.second) > all(b.second); });
  double sum = 0;
  for (const auto& [name, times] : sorted) sum += all(times);
  for (const auto& [name, times] : sorted) {
    fmt::print("{:26}{:8.0f}{:13.3f}{:13.3f}{:6.1f} %\n", name, static_cast<double>(times.calls) * per_update,
               1e3 * times.forward_seconds * per_update, 1e3 * times.backward_seconds * per_update,
               100 * all(times) / sum);
  }
  if (args.decode) {
    const json& d = out["decode"];
    fmt::print("\nbeam search: {} sentences in {:.3f} s, {:.1f} a second\n", d["sentences"].get<int64_t>(),
               d["seconds"].get<double>(), d["sentences"].get<double>() / d["seconds"].get<double>());
  }
  return kExitDone;
}

/// Times single kernels against a plain copy, without a model.
int report_kernels(const RunOptions& options, const BenchArguments& args) {
  constexpr int64_t kOnGpu = 1 << 30, kOnCpu = 64 << 20;
  const ModelOptions& model = options.as<TranslateOptions>("bench --kernels").model;
  const at::Device device = device_of(options.run);
  const at::Tensor like =
      at::empty({0}, at::TensorOptions().device(device).dtype(
                         row_precision(options.run) == RowPrecision::kBf16 ? at::kBFloat16 : at::kFloat));
  const int64_t usual = device.is_cpu() ? kOnCpu : kOnGpu;
  const auto rates = kernel_rates(like, model.d_model, args.megabytes > 0 ? args.megabytes << 20 : usual,
                                  parameter_count(model, args.vocabulary));
  const auto gigabytes = [](const KernelRate& rate) { return 1e-9 * rate.bytes / rate.seconds; };
  if (args.as_json) {
    json out = json::object();
    for (const KernelRate& rate : rates) {
      out[rate.name] = {{"seconds", rate.seconds},
                        {"gigabytes_per_second", gigabytes(rate)},
                        {"share_of_copy", gigabytes(rate) / gigabytes(rates.front())}};
    }
    fmt::print("{}\n", out.dump(2));
    return kExitDone;
  }
  fmt::print("{:32}{:>10}{:>10}{:>14}\n", "kernel", "ms", "GB/s", "share of copy");
  for (const KernelRate& rate : rates) {
    fmt::print("{:32}{:10.3f}{:10.1f}{:12.0f} %\n", rate.name, 1e3 * rate.seconds, gigabytes(rate),
               100 * gigabytes(rate) / gigabytes(rates.front()));
  }
  return kExitDone;
}

}  // namespace

Action command_bench(CLI::App& app) {
  const auto args = std::make_shared<BenchArguments>();
  app.add_option("CONFIG", args->config, "TOML file with settings; [model], [train], [decode] and [run] are used")
      ->required();
  app.add_option("--vocabulary", args->vocabulary, "vocabulary size, of parse the number of words")
      ->check(CLI::Range(8, 1 << 24))
      ->capture_default_str();
  app.add_option(
      "--lengths", args->lengths,
      "JSON file {\"batches\": [[[source rows, target rows], …], …]}, for classify [[rows, …], …], for digits "
      "and parse [[examples], …] (default: sentences of 24 rows that fill train.batch.tokens, or a batch of "
      "images or examples)");
  app.add_option("--threads", args->threads, "number of threads (default: run.threads)")->check(CLI::PositiveNumber);
  app.add_option("--updates", args->updates, "number of updates to time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--instructions", args->instructions, "use the kernels for x86-64-v2, x86-64-v3 or x86-64-v4");
  app.add_option(
      "--variants", args->variants,
      "use these variants of CUDA's kernels, which were never timed, separated by commas: " + kernel_variant_names());
  app.add_flag("--bf16", args->bf16, "with run.precision = \"bf16\"");
  app.add_flag("--decode", args->decode, "also time beam search over the source sentences");
  app.add_flag("--kernels", args->kernels,
               "time single kernels and a memory copy instead of updates; rows have model.d_model channels");
  app.add_option("--megabytes", args->megabytes, "size of the tensors of --kernels in MiB (default: 64, on a GPU 1024)")
      ->check(CLI::Range(1, 1 << 16));
  app.add_flag("--json", args->as_json, "machine-readable");
  app.add_flag("--turns", args->turns,
               "read requests {\"updates\": N}, {\"decode\": true} and {\"peak\": true} from standard input, one a "
               "line; answer each "
               "with its seconds");
  return [args] {
    RunOptions options = read_run_options(read_toml_settings(args->config), args->config.parent_path(), {});
    if (args->bf16) options.run.precision = ExecutionOptions::Precision::kBf16;
    open_device(options.run);
    kernel_variants() = kernel_variants_of(args->variants);
    if (!args->instructions.empty()) use_cpu_backend(args->instructions);
    if (args->threads > 0) options.run.threads = args->threads;
    prepare_processor(options.run);
    if (args->kernels) return report_kernels(options, *args);
    const MadeUpTask subject = options.task->made_up_task(options.train, options.run, args->vocabulary, args->lengths);
    Bench bench(subject, options.train, options.run);
    bench.updates(bench.warm_up());
    return args->turns ? take_turns(bench, options.run) : report(bench, options.run, *args);
  };
}

}  // namespace tearless::engine
