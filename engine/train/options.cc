#include "engine/train/options.h"

#include <algorithm>

#include "base/error.h"

namespace tearless::engine {
namespace {

constexpr auto kSchedules = std::to_array<std::string_view>({"invsqrt", "valdecay", "nowarmup"});
constexpr auto kDecayRules = std::to_array<std::string_view>({"min_window", "best_patience"});
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

void describe(SettingsVisitor& v, ScheduleOptions& o) {
  v.choice(
      {.key = "kind",
       .meaning = "learning rate at update n, d the model width, w the warm-up: `invsqrt` scale · d^-½ · min(n · "
                  "w^-1.5, n^-½) (TwT eq. 7); "
                  "`valdecay` the same ramp, then decay on plateaus of the dev score; `nowarmup` lr from the first "
                  "update, decay on plateaus"},
      o.kind, kSchedules);
  const bool plain = o.kind == ScheduleKind::kNowarmup;
  const bool peak = o.peak_lr.has_value();
  const bool decays = o.kind != ScheduleKind::kInvsqrt;
  v.number({.key = "scale",
            .meaning = "multiplies the warm-up schedules (2 = \"2×LR\")",
            .min = 0,
            .max = 1000,
            .applies = !plain && !peak},
           o.scale);
  v.integer({.key = "warmup_updates", .meaning = "updates of linear warm-up", .min = 1, .max = 1e9, .applies = !plain},
            o.warmup_updates);
  v.number({.key = "lr", .meaning = "learning rate of `nowarmup`", .min = 0, .max = 10, .applies = plain && !peak},
           o.lr);
  v.optional_number({.key = "peak_lr",
                     .meaning = "the highest learning rate, for every kind; replaces scale and lr: `invsqrt` reaches "
                                "it at update w, `nowarmup` begins with it, `valdecay` stays at update w - 1 of the "
                                "ramp to it (the code of TwT). peak_lr = scale · d^-½ · w^-½; unset: scale or lr",
                     .min = 1e-12,
                     .max = 10},
                    o.peak_lr);
  v.number({.key = "decay_factor",
            .meaning = "the learning rate is multiplied by this on a plateau",
            .min = 0,
            .max = 1,
            .applies = decays},
           o.decay_factor);
  v.integer({.key = "decay_patience",
             .meaning = "evaluations that the plateau rule looks back on",
             .min = 1,
             .max = 1000,
             .applies = decays},
            o.decay_patience);
  v.choice({.key = "decay_rule",
            .meaning = "`min_window`: below each of the last evaluations (the code of TwT); `best_patience`: that many "
                       "evaluations without a "
                       "new best (its text)",
            .applies = decays},
           o.decay_rule, kDecayRules);
}

void describe(SettingsVisitor& v, AdamOptions& o) {
  v.number({.key = "beta1", .meaning = "decay of the first moment", .min = 0, .max = 0.999999}, o.beta1);
  v.number({.key = "beta2", .meaning = "decay of the second moment", .min = 0, .max = 0.9999999}, o.beta2);
  v.number({.key = "eps", .meaning = "added outside the root", .min = 0, .max = 1}, o.eps);
}

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
  v.number({.key = "min_lr",
            .meaning = "training ends when a decaying learning rate falls below this",
            .min = 0,
            .max = 1,
            .applies = o.schedule.kind != ScheduleKind::kInvsqrt},
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
  v.table("schedule", o.schedule);
  v.table("adam", o.adam);
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
  v.integer(local("keep_checkpoints", "newest checkpoints kept, besides the best", 1, 1000), o.keep_checkpoints);
}

void check_consistent(const ExecutionOptions& o) {
  if (o.device == ExecutionOptions::Device::kCpu && o.precision == ExecutionOptions::Precision::kTf32) {
    fail("run.precision = \"tf32\" needs run.device = \"cuda\": on the CPU there are \"fp32\" and \"bf16\"");
  }
}

}  // namespace tearless::engine
