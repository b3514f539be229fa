#include "engine/task/digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/task/made_up.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
namespace {

/// Batch size of evaluations. Not a setting: the cut may change the last bits of a sum.
constexpr int64_t kEvaluationImages = 200;

Counts image_counts(int64_t train, int64_t dev, int64_t test, int64_t batches) {
  return {{"train.images", train}, {"dev.images", dev}, {"test.images", test}, {"train.batches", batches}};
}

/// Throws DataError for files that are missing, or are not those that the run was planned with.
Digits read_planned(DigitsOptions data) {
  const DataFiles files = data_files(data);
  files.require();
  files.check();
  return read_digits(data);
}

// --- made-up batches -------------------------------------------------------------------------------------------------

Digits made_up_images(const TrainOptions& train, const std::vector<int64_t>& counts) {
  constexpr int64_t kSide = 28;
  constexpr uint32_t kDigits = 10;
  Digits digits{.height = kSide, .width = kSide, .train = {}, .dev = {}, .test = {}};
  const RandomStream stream(train.seed_for_order(), "bench.pixels");
  for (const int64_t images : counts) {
    for (int64_t i = 0; i < images; ++i) {
      const auto image = static_cast<uint32_t>(digits.train.labels.size());
      for (uint32_t p = 0; p < kSide * kSide; ++p) {
        digits.train.pixels.push_back(static_cast<uint8_t>(stream.draw(p, 0, image, 0)));
      }
      digits.train.labels.push_back(static_cast<int32_t>(image % kDigits));
    }
  }
  return digits;
}

// --- settings and data -----------------------------------------------------------------------------------------------

class DigitsKind final : public TaskKindOf<DigitsTaskOptions, DigitsKind> {
 public:
  DigitsKind() {
    meaning =
        "classification of images of digits (MNIST) by a convolutional network; checkpoints are selected by dev "
        "accuracy";
  }
  void describe_own(SettingsVisitor& v) override {
    v.table("data", options.data);
    v.table("model", options.model);
    v.table_of("train", [&] { v.table("batch", options.batch); });
  }
  void check_consistent(const TrainOptions& train) const override {
    check_one_label_an_example(train);
    engine::check_consistent(options.model);
    check_schedule_without_width(train, "digits");
  }
  DataFiles data_files() override { return engine::data_files(options.data); }
  TaskNumbers numbers() const override { return class_numbers(); }
  DeclaredParameters model_parameters() const override { return declared_parameters(options.model); }
  std::optional<Size> size(const TrainOptions&) const override {
    const DigitSizes images = read_digit_sizes(options.data);
    check_image_size(options.model, images.height, images.width);
    const int64_t parameters = parameter_count(options.model, images.height, images.width);
    const int64_t batch = std::min(options.batch.images, images.train);
    return Size{.parameters = parameters,
                .saved_numbers = saved_numbers(options.model, images.height, images.width, batch)};
  }
  int64_t pass_batches(const TrainOptions&) const override {
    return (read_digit_sizes(options.data).train + options.batch.images - 1) / options.batch.images;
  }
  std::string prepare_data(const TrainOptions&, const Say&) const override {
    const Digits digits = read_planned(options.data);
    return fmt::format("{}: {} training, {} dev, {} test images of {} × {} pixels; nothing needs a cache",
                       options.data.name, digits.train.size(), digits.dev.size(), digits.test.size(), digits.height,
                       digits.width);
  }
  Counts data_counts(const TrainOptions& train, const Say&) const override {
    const Digits digits = read_planned(options.data);
    return image_counts(digits.train.size(), digits.dev.size(), digits.test.size(), pass_batches(train));
  }
  std::vector<std::string> data_count_names() const override { return names_of(image_counts(0, 0, 0, 0)); }
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override {
    Digits digits = read_planned(options.data);
    check_image_size(options.model, digits.height, digits.width);
    const int64_t images = digits.train.size();
    auto task = std::make_unique<DigitsTask>(options, train, execution, std::move(digits));
    say(fmt::format("{} parameters, {} training images", task->parameters().count(), images));
    return task;
  }
  /// The one example of a batch of `sizes` is the number of its images.
  MadeUpTask made_up_task(const TrainOptions& train, const ExecutionOptions& execution, int64_t /*vocab_size*/,
                          const std::filesystem::path& sizes) const override {
    const std::vector<int64_t> counts = column(sizes_in(sizes, {{{static_cast<int32_t>(options.batch.images)}}}), 0, 0);
    auto task = std::make_unique<DigitsTask>(options, train, execution, made_up_images(train, counts));
    const int64_t batches = task->train_on(numbered(counts));
    return {.task = std::move(task), .batches = batches};
  }
};

}  // namespace

std::unique_ptr<TaskKind> digits_kind() { return std::make_unique<DigitsKind>(); }

// --- training --------------------------------------------------------------------------------------------------------

DigitsTask::DigitsTask(const DigitsTaskOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
                       Digits digits)
    : TaskOf(options, train, execution),
      digits_(std::move(digits)),
      model_(parameters_, options.model, digits_.height, digits_.width, train.seed_for_dropout()) {
  parameters_.allocate();
}

std::vector<DigitsTask::Examples> DigitsTask::cut(int64_t pass) const {
  return cut_image_batches(digits_.train.size(), options_.batch, train_.seed_for_order(), pass);
}

ReadyImages DigitsTask::ready_images(const DigitSet& set, const ImageIds& images) const {
  DigitBatch batch = digit_batch(digits_, set, images, options_.data);
  return model_.ready(std::move(batch.pixels), std::move(batch.labels), images);
}

ReadyImages DigitsTask::ready_examples(const Examples& examples, uint32_t /*update*/) const {
  ReadyImages ready = ready_images(digits_.train, examples);
  ready.full = most_examples();
  return ready;
}

// --- evaluation ------------------------------------------------------------------------------------------------------

ClassPredictions DigitsTask::predictions(const DigitSet& set) const {
  ClassPredictions predictions;
  for (const ImageIds& images : evaluation_image_batches(set.size(), kEvaluationImages)) {
    throw_if_stopped();
    Tape tape(Tape::Kind::kForward, ops_of(execution_));
    const ReadyImages& batch = tape.save(ready_images(set, images));
    predictions.add(model_.logits({tape}, batch).data(), batch.labels);
  }
  return predictions;
}

NamedNumbers DigitsTask::evaluate() { return predictions(digits_.dev).scores("dev"); }

FinalScores DigitsTask::final_scores() {
  const std::vector<std::string> names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  return final_class_scores(predictions(digits_.dev), predictions(digits_.test), names);
}

}  // namespace tearless::engine
