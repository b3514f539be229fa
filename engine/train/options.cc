#include "engine/train/options.h"

#include <algorithm>

#include "base/error.h"

namespace tearless::engine {
namespace {

constexpr auto kAccumulateBy = std::to_array<std::string_view>({"predictions", "batches"});
constexpr auto kSmoothingForms = std::to_array<std::string_view>({"twt", "fairseq", "zero", "joey"});
constexpr auto kLossMeans = std::to_array<std::string_view>({"tokens", "sentences"});
constexpr auto kGroupBy = std::to_array<std::string_view>({"sublayer", "layer"});
constexpr auto kDevices = std::to_array<std::string_view>({"cpu", "cuda"});
constexpr auto kPrecisions = std::to_array<std::string_view>({"fp32", "tf32", "bf16"});
constexpr auto kMatmuls = std::to_array<std::string_view>({"auto", "mkl", "openblas"});
constexpr auto kOps = std::to_array<std::string_view>({"fast", "reference"});
constexpr double kMaxSeed = 4294967295.0;

}  // namespace

int64_t TrainOptions::update_limit(int64_t pass_updates) const {
  const int64_t of_epoch = epoch_updates.value_or(pass_updates);
  const int64_t by_epochs = of_epoch == 0 ? kUnlimited : of_epoch * max_epochs;
  return max_updates > 0 ? std::min(max_updates, by_epochs) : by_epochs;
}

int64_t TrainOptions::evaluation_limit(int64_t pass_updates) const {
  int64_t between = evaluate_updates.value_or(pass_updates);
  if (evaluate_updates == 0) between = epoch_updates.value_or(pass_updates);
  const int64_t updates = update_limit(pass_updates);
  return between == 0 || updates == kUnlimited ? kUnlimited : (updates + between - 1) / between;
}

void describe(SettingsVisitor& v, TrainOptions& o, bool data_follow_seed) {
  const bool seed_is_used = data_follow_seed || !(o.init_seed && o.order_seed && o.dropout_seed);
  v.integer({.key = "seed",
             .meaning = "of initial values, data order and dropout together",
             .min = 0,
             .max = kMaxSeed,
             .switched_off_by = seed_is_used ? "" : "train.init_seed"},
            o.seed);
  const auto own_seed = [&](const char* key, const char* meaning, std::optional<int64_t>& value) {
    v.optional_integer({.key = key, .meaning = meaning, .min = 0, .max = kMaxSeed}, value);
  };
  own_seed("init_seed", "of initial values alone; unset: seed", o.init_seed);
  own_seed("order_seed", "of the data order alone; unset: seed", o.order_seed);
  own_seed("dropout_seed", "of dropout alone; unset: seed", o.dropout_seed);
  v.optional_integer({.key = "epoch_updates",
                      .meaning = "updates of an epoch; `pass`: it ends with the update that has the last batch of a "
                                 "pass over the training set",
                      .min = 1,
                      .max = 1e9,
                      .unset_word = "pass"},
                     o.epoch_updates);
  v.optional_integer({.key = "evaluate_updates",
                      .meaning = "updates between two evaluations on dev; 0: one at the end of "
                                 "each epoch; `pass`: one at the end of each pass. One more ends the training",
                      .min = 0,
                      .max = 1e9,
                      .neutral = 0,
                      .unset_word = "pass"},
                     o.evaluate_updates);
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
           "probability mass ε spread evenly over all classes (of translation: the output vocabulary), the gold one "
           "too; label_smoothing_form has other ways",
       .min = 0,
       .max = 0.99,
       .neutral = 0.0},
      o.label_smoothing);
  v.choice({.key = "label_smoothing_form",
            .meaning = "of translation, how ε is spread, V the size of the vocabulary: `twt` ε / K for each of the K "
                       "tokens of the output vocabulary; `fairseq` ε / V for each token; `zero` (DS) ε / (V - 1) for "
                       "each other token than the label; `joey` ε / (V - 2) for each other token but PAD. All but "
                       "`twt` have a softmax over the whole vocabulary, so they need model.mask_target_vocabulary = "
                       "false. `zero` and `joey` subtract the entropy of the smoothed label from the loss",
            .neutral = "twt",
            .switched_off_by = o.label_smoothing > 0 ? "" : "train.label_smoothing"},
           o.label_smoothing_form, kSmoothingForms);
  v.choice({.key = "loss_mean",
            .meaning = "what an update minimises: the mean of the losses of all `tokens`, or the mean over `sentences` "
                       "(of translation) of the mean of each (DS). Logged losses and perplexities are per token",
            .neutral = "tokens"},
           o.loss_mean, kLossMeans);
  v.number(
      {.key = "diverged_loss",
       .meaning = "the run has diverged, and ends, at the first update whose loss (as `train.loss`, of that update) "
                  "is above this; 0: when a loss or gradient is not finite",
       .min = 0,
       .max = 1e30,
       .neutral = 0.0},
      o.diverged_loss);
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
                       "them (by loss_mean = sentences their number of sentences); `batches`, equal weights",
            .neutral = "predictions",
            .switched_off_by = o.accumulate > 1 ? "" : "train.accumulate"},
           o.accumulate_by, kAccumulateBy);
  v.table_of("select", [&] { describe(v, o.select, o.early_stop > 0 || o.schedule.chosen().decays); });
  v.table("schedule", o.schedule);
  v.table("optimiser", o.optimiser);
  v.table_of("adam", [&] {
    const auto of_adam = [&](const char* key, const char* meaning, double min, double max, double& value) {
      const char* const switched_off_by = o.optimiser.chosen().adam ? "" : "train.optimiser.kind";
      v.number({.key = key, .meaning = meaning, .min = min, .max = max, .switched_off_by = switched_off_by}, value);
    };
    of_adam("beta1", "decay of the first moment", 0, 0.999999, o.adam.beta1);
    of_adam("beta2", "decay of the second moment", 0, 0.9999999, o.adam.beta2);
    of_adam("eps", "added outside the root", kMinEps, 1, o.adam.eps);
  });
}

void check_consistent(const TrainOptions& o) {
  if (o.schedule.chosen().falls_to_end && o.update_limit() == TrainOptions::kUnlimited) {
    fail(
        "train.schedule.kind = \"{}\" falls to the last update, whose number train.epoch_updates = \"pass\" does not "
        "tell; set train.max_updates",
        o.schedule.chosen().name);
  }
  check_consistent(o.schedule, o.update_limit());
  const bool of_epochs = o.select.kind == SelectOptions::Kind::kLastEpochs;
  const bool passes_alike = !o.epoch_updates && !o.evaluate_updates;
  const bool divided =
      o.epoch_updates && o.evaluate_updates.value_or(0) > 0 && *o.epoch_updates % *o.evaluate_updates == 0;
  if (of_epochs && o.evaluate_updates != 0 && !passes_alike && !divided) {
    fail(
        "train.select.kind = \"last_epochs\" needs an evaluation at the end of each epoch, but train.evaluate_updates "
        "does not divide train.epoch_updates; set it to 0, or to a number that does");
  }
  int64_t at_most = o.evaluation_limit();
  if (of_epochs) at_most = o.epoch_updates ? o.update_limit() / *o.epoch_updates : o.max_epochs;
  if (o.select.count > at_most) {
    fail(
        "train.select.count = {}, but the training has at most {} {}; lower it, or raise train.max_epochs or "
        "train.max_updates",
        o.select.count, at_most, of_epochs ? "whole epochs" : "evaluations");
  }
}

void check_falls_to_end(const TrainOptions& o, int64_t pass_updates) {
  const int64_t last = o.update_limit(pass_updates);
  if (!o.schedule.chosen().falls_to_end || last == o.update_limit()) return;
  fail(
      "train.schedule.kind = \"{}\" falls to the last update, which is taken to be train.max_updates = {}, but with "
      "train.epoch_updates = \"pass\" and train.max_epochs = {} the training ends after {}; set train.max_updates = {}",
      o.schedule.chosen().name, o.max_updates, o.max_epochs, last, last);
}

void describe(SettingsVisitor& v, ObserveOptions& o) {
  v.integer({.key = "early_stop",
             .meaning = "with train.early_stop = 0: the metric `would_stop.<dev score>` says at which update this many "
                        "evaluations without a better dev score would have ended the training; 0: it says nothing",
             .min = 0,
             .max = 1e6,
             .identity = Identity::kLocal},
            o.early_stop);
  v.flag({.key = "groups",
          .meaning = "log for each group of parameters, at each report, the norm of the gradient before clipping, that "
                     "of the update, and the latter divided by that of the weights: `grad_norm.GROUP`, "
                     "`step_norm.GROUP`, `update_ratio.GROUP`",
          .identity = Identity::kLocal},
         o.groups);
  v.flag({.key = "window_means",
          .meaning = "log for each group of parameters, at each report, the mean of the gradient norms of all updates "
                     "since the last one, `grad_norm_window_mean.GROUP`, which are then computed at every update",
          .identity = Identity::kLocal},
         o.window_means);
  v.choice({.key = "group_by",
            .meaning = "the groups inside the layers: each `sublayer`, such as `encoder.1.ffn`; or each `layer`, "
                       "`encoder.1`. Outside of them they are the same",
            .identity = Identity::kLocal},
           o.group_by, kGroupBy);
  v.word({.key = "only",
          .meaning = "the groups that are logged, as \"encoder.1, decoder.6\"; empty: all",
          .identity = Identity::kLocal},
         o.only);
  v.flag({.key = "variances",
          .meaning = "log for each sublayer, at each report, the variance of the elements of x + F(x), the residual "
                     "sum, in training mode: `variance.SUBLAYER`",
          .identity = Identity::kLocal},
         o.variances);
}

void check_one_label_an_example(const TrainOptions& o) {
  if (o.smoothing().over_whole_vocabulary()) {
    fail("train.label_smoothing_form = \"{}\" is for task = \"translate\"; here leave it at \"twt\"",
         kSmoothingForms[static_cast<size_t>(o.label_smoothing_form)]);
  }
  if (o.loss_mean == TrainOptions::LossMean::kSentences) {
    fail("train.loss_mean = \"sentences\" is for task = \"translate\"; here leave it at \"tokens\"");
  }
}

void check_schedule_without_width(const TrainOptions& o, std::string_view task) {
  if (o.schedule.uses_width()) {
    fail(
        "train.schedule.kind: the learning rate of this schedule depends on the model width, which the network of "
        "{} does not have; set train.schedule.peak_lr, or use \"nowarmup\" with train.schedule.lr",
        task);
  }
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
  v.number({.key = "checkpoint_share",
            .meaning = "largest share of the time for the checkpoints that evaluations write; those below 64 MiB are "
                       "always written. What a later one needs of the selected model stays in memory till then. 0: a "
                       "checkpoint only where the run ends or is stopped; 1: after every evaluation",
            .min = 0,
            .max = 1,
            .identity = Identity::kLocal},
           o.checkpoint_share);
}

void check_consistent(const ExecutionOptions& o) {
  if (o.device == ExecutionOptions::Device::kCpu && o.precision == ExecutionOptions::Precision::kTf32) {
    fail("run.precision = \"tf32\" needs run.device = \"cuda\": on the CPU there are \"fp32\" and \"bf16\"");
  }
}

}  // namespace tearless::engine
