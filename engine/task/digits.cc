#include "engine/task/digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/data/raw_files.h"
#include "engine/train/execution.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
namespace {

/// Batch size of evaluations. Not a setting: the cut may change the last bits of a sum.
constexpr int64_t kEvaluationImages = 200;

class ImageBatch final : public Batch {
 public:
  /// `full`: the number of images of every batch of a pass but the last.
  ImageBatch(ReadyImages batch, int64_t full) : batch_(std::move(batch)), images_(batch_.image_count()), full_(full) {}

  int64_t rows() const override { return images_; }
  int64_t predictions() const override { return images_; }
  // Only the last batch of a pass has padding.
  std::vector<int64_t> bucket() const override { return {full_}; }
  void pad() override { batch_ = padded(std::move(batch_), full_); }
  std::vector<Part> parts() const override {
    std::vector<Part> parts;
    const auto add = [&](const auto& part) { parts.push_back({part.data(), part.size() * sizeof part[0]}); };
    add(batch_.pixels);
    for (const PackedRows* rows : {&batch_.conv1, &batch_.conv2, &batch_.fc1}) {
      add(rows->positions);
      add(rows->sentence_ids);
    }
    add(batch_.labels);
    return parts;
  }

  const ReadyImages& ready() const { return batch_; }

 private:
  ReadyImages batch_;
  int64_t images_;  // without padding
  int64_t full_;
};

/// Throws DataError for files that are missing, or are not those that the run was planned with.
void require_files(const DigitsOptions& data) {
  require_data(missing_digits(data));
  if (!data.train_sha256.empty() && !data.test_sha256.empty()) verify_fingerprint(data);
}

}  // namespace

std::unique_ptr<TaskKind> digits_kind() { return std::make_unique<DigitsKind>(); }

// --- settings and data -----------------------------------------------------------------------------------------------

DigitsKind::DigitsKind() {
  meaning =
      "classification of images of digits (MNIST) by a convolutional network; checkpoints are selected by dev "
      "accuracy";
}

void DigitsKind::describe_own(SettingsVisitor& v) {
  v.table("data", options.data);
  v.table("model", options.model);
  v.table_of("train", [&] { v.table("batch", options.batch); });
}

void DigitsKind::check_consistent(const TrainOptions& train) const {
  engine::check_consistent(options.model);
  if (train.schedule.uses_width()) {
    fail(
        "train.schedule.kind: the learning rate of this schedule depends on the model width, which the network of "
        "digits does not have; set train.schedule.peak_lr, or use \"nowarmup\" with train.schedule.lr");
  }
}

std::vector<std::pair<const char*, std::string*>> DigitsKind::paths() {
  return {{"data.train_images", &options.data.train_images},
          {"data.train_labels", &options.data.train_labels},
          {"data.test_images", &options.data.test_images},
          {"data.test_labels", &options.data.test_labels}};
}

std::string DigitsKind::missing_data() const { return missing_digits(options.data); }

void DigitsKind::fingerprint() { engine::fingerprint(options.data); }

std::vector<TaskKind::Files> DigitsKind::data_files() const {
  return {{"data.train_images", options.data.train_images, {""}},
          {"data.train_labels", options.data.train_labels, {""}},
          {"data.test_images", options.data.test_images, {""}},
          {"data.test_labels", options.data.test_labels, {""}}};
}

std::optional<TaskKind::Size> DigitsKind::size() const {
  const DigitSizes images = read_digit_sizes(options.data);
  check_image_size(options.model, images.height, images.width);
  const int64_t parameters = parameter_count(options.model, images.height, images.width);
  const int64_t batch = std::min(options.batch.images, images.train);
  return Size{.parameters = parameters,
              .saved_numbers = saved_numbers(options.model, images.height, images.width, batch)};
}

std::string DigitsKind::prepare_data(const Say&) const {
  require_files(options.data);
  const Digits digits = read_digits(options.data);
  return fmt::format("{}: {} training, {} dev, {} test images of {} × {} pixels; nothing needs a cache",
                     options.data.name, digits.train.size(), digits.dev.size(), digits.test.size(), digits.height,
                     digits.width);
}

std::unique_ptr<Task> DigitsKind::make(const TrainOptions& train, const ExecutionOptions& execution,
                                       const Say& say) const {
  require_files(options.data);
  Digits digits = read_digits(options.data);
  check_image_size(options.model, digits.height, digits.width);
  const int64_t images = digits.train.size();
  auto task = std::make_unique<DigitsTask>(options, train, execution, std::move(digits));
  say(fmt::format("{} parameters, {} training images", task->parameters().count(), images));
  return task;
}

// --- training --------------------------------------------------------------------------------------------------------

DigitsTask::DigitsTask(const DigitsTaskOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
                       Digits digits)
    : options_(options),
      train_(train),
      execution_(execution),
      digits_(std::move(digits)),
      parameters_(train.seed_for_init(), device_of(execution), row_precision(execution)),
      model_(parameters_, options.model, digits_.height, digits_.width, train.seed_for_dropout()) {
  parameters_.allocate();
}

int64_t DigitsTask::start_pass(int64_t pass) {
  batches_ = cut_image_batches(digits_.train.size(), options_.batch, train_.seed_for_order(), pass);
  return static_cast<int64_t>(batches_.size());
}

ReadyImages DigitsTask::ready_images(const DigitSet& set, const ImageIds& images) const {
  DigitBatch batch = digit_batch(digits_, set, images, options_.data);
  return model_.ready(std::move(batch.pixels), std::move(batch.labels), images);
}

std::unique_ptr<Batch> DigitsTask::ready(int64_t index, uint32_t /*update*/) {
  return ready_batch(batches_[static_cast<size_t>(index)]);
}

std::unique_ptr<Batch> DigitsTask::ready_batch(const ImageIds& images) const {
  const int64_t full = std::min(options_.batch.images, digits_.train.size());
  return std::make_unique<ImageBatch>(ready_images(digits_.train, images), full);
}

LossSums DigitsTask::loss(const ForwardContext& context, const Batch& batch) {
  const ReadyImages& ready = static_cast<const ImageBatch&>(batch).ready();
  return loss_sums(model_.loss(context, ready, train_.label_smoothing));
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
  const ClassPredictions dev = predictions(digits_.dev), test = predictions(digits_.test);
  FinalScores scores{.numbers = test.scores("test"),  // those of dev are known from the evaluation
                     .files = {{"outputs/dev.classes", dev.lines(names)}, {"outputs/test.classes", test.lines(names)}}};
  for (const auto& [name, length] : learned_lengths(parameters_)) scores.numbers[name] = length;
  return scores;
}

}  // namespace tearless::engine
