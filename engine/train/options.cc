#include "engine/train/options.h"

#include <algorithm>

#include "base/error.h"

namespace tearless::engine {
namespace {

constexpr auto kAccumulateBy = std::to_array<std::string_view>({"predictions", "batches"});
constexpr auto kDevices = std::to_array<std::string_view>({"cpu", "cuda"});
constexpr auto kPrecisions = std::to_array<std::string_view>({"fp32", "tf32", "bf16"});
constexpr auto kMatmuls = std::to_array<std::string_view>({"auto", "mkl", "openblas"});
constexpr auto kOps = std::to_array<std::string_view>({"fast", "reference"});
constexpr double kMaxSeed = 4294967295.0;

}  // namespace

int64_t TrainOptions::update_limit() const {
  const int64_t by_epochs = epoch_updates * max_epochs;
  return max_updates > 0 ? std::min(max_updates, by_epochs) : by_epochs;
}

int64_t TrainOptions::evaluation_limit() const { return (update_limit() + epoch_updates - 1) / epoch_updates; }

void describe(SettingsVisitor& v, TrainOptions& o, bool data_follow_seed) {
  v.integer({.key = "seed",
             .meaning = "of initial values, data order and dropout together",
             .min = 0,
             .max = kMaxSeed,
             .applies = data_follow_seed || !(o.init_seed && o.order_seed && o.dropout_seed)},
            o.seed);
  const auto own_seed = [&](const char* key, const char* meaning, std::optional<int64_t>& value) {
    v.optional_integer({.key = key, .meaning = meaning, .min = 0, .max = kMaxSeed}, value);
  };
  own_seed("init_seed", "of initial values alone; unset: seed", o.init_seed);
  own_seed("order_seed", "of the data order alone; unset: seed", o.order_seed);
  own_seed("dropout_seed", "of dropout alone; unset: seed", o.dropout_seed);
  v.integer({.key = "epoch_updates",
             .meaning = "updates of an epoch; each ends with an evaluation on dev",
             .min = 1,
             .max = 1e9},
            o.epoch_updates);
  v.integer({.key = "max_epochs", .meaning = "training ends after this many epochs", .min = 1, .max = 1e6},
            o.max_epochs);
  v.integer({.key = "max_updates",
             .meaning = "training ends after this many updates; 0: no such limit",
             .min = 0,
             .max = 1e12,
             .neutral = 0},
            o.max_updates);
  v.integer({.key = "early_stop",
             .meaning = "training ends after this many evaluations without a better dev score; 0: never",
             .min = 0,
             .max = 1e6,
             .neutral = 0},
            o.early_stop);
  // Only schedules that decay on plateaus had it at first: there its value is in every id.
  v.number({.key = "min_lr",
            .meaning = "training ends at an evaluation after the warm-up, if the learning rate is below this",
            .min = 0,
            .max = 1,
            .neutral = o.schedule.chosen().decays ? std::nullopt : std::optional<nlohmann::json>(1e-6)},
           o.min_lr);
  v.number(
      {.key = "label_smoothing",
       .meaning =
           "probability mass spread evenly over all classes (of translation: the output vocabulary), the gold one too",
       .min = 0,
       .max = 0.99,
       .neutral = 0.0},
      o.label_smoothing);
  v.number({.key = "clip_norm",
            .meaning = "gradients are scaled down to this global L2 norm; 0: not",
            .min = 0,
            .max = 1e6,
            .neutral = 0.0},
           o.clip_norm);
  v.integer({.key = "accumulate",
             .meaning = "consecutive batches whose gradients make one update; above 1 updates run operation by "
                        "operation on a GPU too",
             .min = 1,
             .max = 1e6,
             .neutral = 1},
            o.accumulate);
  v.choice({.key = "accumulate_by",
            .meaning = "weights of these batches: `predictions`, so that the update is that of one batch with all of "
                       "them; `batches`, equal weights",
            .neutral = "predictions",
            .applies = o.accumulate > 1},
           o.accumulate_by, kAccumulateBy);
  v.table_of("select", [&] { describe(v, o.select, o.early_stop > 0 || o.schedule.chosen().decays); });
  v.table("schedule", o.schedule);
  v.table("optimiser", o.optimiser);
  v.table_of("adam", [&] {
    const bool applies = o.optimiser.chosen().adam.has_value();
    v.number({.key = "beta1", .meaning = "decay of the first moment", .min = 0, .max = 0.999999, .applies = applies},
             o.adam.beta1);
    v.number({.key = "beta2", .meaning = "decay of the second moment", .min = 0, .max = 0.9999999, .applies = applies},
             o.adam.beta2);
    v.number({.key = "eps", .meaning = "added outside the root", .min = 0, .max = 1, .applies = applies}, o.adam.eps);
  });
}

void check_consistent(const TrainOptions& o) {
  check_consistent(o.schedule, o.update_limit());
  const bool of_epochs = o.select.kind == SelectOptions::Kind::kLastEpochs;
  const int64_t at_most = of_epochs ? o.update_limit() / o.epoch_updates : o.evaluation_limit();
  if (o.select.count > at_most) {
    fail(
        "train.select.count = {}, but the training has at most {} {}; lower it, or raise train.max_epochs or "
        "train.max_updates",
        o.select.count, at_most, of_epochs ? "whole epochs" : "evaluations");
  }
}

void describe(SettingsVisitor& v, ObserveOptions& o) {
  v.integer({.key = "early_stop",
             .meaning = "with train.early_stop = 0: the metric `would_stop.<dev score>` says at which update this many "
                        "evaluations without a better dev score would have ended the training; 0: it says nothing",
             .min = 0,
             .max = 1e6,
             .identity = Identity::kLocal},
            o.early_stop);
}

void describe(SettingsVisitor& v, ExecutionOptions& o) {
  v.choice({.key = "device", .meaning = "`cpu`, or `cuda` for one NVIDIA GPU", .neutral = "cpu"}, o.device, kDevices);
  v.choice(
      {.key = "precision",
       .meaning = "arithmetic of training and search: `fp32`; `bf16`; on `cuda` also `tf32`, matmuls with 10 bits "
                  "of fraction. With `bf16` the operands and results of matmuls are rounded to 7 bits of fraction, "
                  "on `cuda` all rows; weights, norms, softmax, loss and optimiser stay fp32, on `cuda` also "
                  "gradients of weights. On `cpu` it needs a processor with AVX512_BF16",
       .neutral = "fp32"},
      o.precision, kPrecisions);
  v.choice({.key = "ops",
            .meaning = "`reference` runs every operation by its formula, slowly; tests compare the kernels with it",
            .neutral = "fast"},
           o.ops, kOps);
  const auto local = [](const char* key, const char* meaning, double min, double max) {
    return Field{.key = key, .meaning = meaning, .min = min, .max = max, .identity = Identity::kLocal};
  };
  v.integer(local("threads", "processor threads of one run; results do not depend on it", 1, 1024), o.threads);
  v.choice({.key = "matmul",
            .meaning =
                "library of the processor's fp32 matmuls: `mkl`, `openblas`, or `auto`, the faster one: OpenBLAS where "
                "the processor is not Intel's, has AVX2, and the library is installed. Results depend on it in "
                "their last bits, so runs of different libraries are marked as mixed",
            .identity = Identity::kLocal},
           o.matmul, kMatmuls);
  v.integer(
      local("log_updates", "updates between two reports of training loss, learning rate and gradient norm", 1, 1e9),
      o.log_updates);
  v.integer(local("keep_checkpoints", "newest checkpoints kept, besides the selected ones", 1, 1000),
            o.keep_checkpoints);
}

void check_consistent(const ExecutionOptions& o) {
  if (o.device == ExecutionOptions::Device::kCpu && o.precision == ExecutionOptions::Precision::kTf32) {
    fail("run.precision = \"tf32\" needs run.device = \"cuda\": on the CPU there are \"fp32\" and \"bf16\"");
  }
}

}  // namespace tearless::engine
