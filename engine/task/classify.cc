#include "engine/task/classify.h"

#include <fmt/format.h>

#include <utility>

#include "engine/task/sentence_batch.h"
#include "engine/train/execution.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
namespace {

/// Batch size of evaluations. Not a setting: the cut may change the last bits of a sum.
constexpr int64_t kEvaluationTokens = 4096;

}  // namespace

std::unique_ptr<TaskKind> classify_kind() { return std::make_unique<ClassifyKind>(); }

// --- settings and data -----------------------------------------------------------------------------------------------

ClassifyKind::ClassifyKind() {
  meaning = "classification of sentences by a Transformer encoder; checkpoints are selected by dev accuracy";
}

void ClassifyKind::describe_own(SettingsVisitor& v) {
  v.table("data", options.data);
  v.table("text", options.text);
  v.table("model", options.model);
  v.table_of("train", [&] {
    v.table_of("batch", [&] {
      v.integer({.key = "tokens",
                 .meaning = "most tokens in a batch, padding counted: sentences × longest sentence",
                 .min = 1,
                 .max = 1e9},
                options.batch.tokens);
    });
  });
}

void ClassifyKind::check_consistent(const TrainOptions&) const { engine::check_consistent(options.model); }

std::vector<std::pair<const char*, std::string*>> ClassifyKind::paths() {
  return {{"data.train", &options.data.train}, {"data.dev", &options.data.dev}, {"data.test", &options.data.test}};
}

std::string ClassifyKind::missing_data() const { return missing_corpus(options.data); }

void ClassifyKind::fingerprint() { engine::fingerprint(options.data); }

std::vector<TaskKind::Files> ClassifyKind::data_files() const {
  if (options.data.form == LabelledForm::kClassFiles) {
    return {{"data.train", options.data.train, class_endings(options.data)}};
  }
  return {{"data.train", options.data.train, {""}},
          {"data.dev", options.data.dev, {""}},
          {"data.test", options.data.test, {""}}};
}

std::optional<TaskKind::Size> ClassifyKind::size() const {
  const auto data = labelled_tokens(options.data, options.text, [](const std::string&) {});
  const int64_t parameters = parameter_count(options.model, data->vocabulary_size(), data->class_count());
  return Size{.parameters = parameters, .saved_numbers = saved_numbers(options.model, options.batch.tokens)};
}

std::string ClassifyKind::prepare_data(const Say& say) const {
  const auto data = labelled_tokens(options.data, options.text, say);
  return fmt::format("{}: {} training, {} dev, {} test sentences of {} classes; vocabulary {}; nothing needs a cache",
                     options.data.name, data->train.size(), data->dev.size(), data->test.size(), data->class_count(),
                     data->vocabulary_size());
}

std::unique_ptr<Task> ClassifyKind::make(const TrainOptions& train, const ExecutionOptions& execution,
                                         const Say& say) const {
  auto task = std::make_unique<Classify>(options, train, execution, labelled_tokens(options.data, options.text, say));
  say(fmt::format("{} parameters, vocabulary {}, {} training sentences of {} classes", task->parameters().count(),
                  task->data().vocabulary_size(), task->data().train.size(), task->data().class_count()));
  return task;
}

// --- training --------------------------------------------------------------------------------------------------------

Classify::Classify(const ClassifyOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
                   std::shared_ptr<const LabelledTokens> data)
    : options_(options),
      train_(train),
      execution_(execution),
      data_(std::move(data)),
      parameters_(train.seed_for_init(), device_of(execution), row_precision(execution)),
      model_(parameters_, options.model, data_->vocabulary_size(), data_->class_count(), train.seed_for_dropout()) {
  parameters_.allocate();
}

int64_t Classify::start_pass(int64_t pass) {
  batches_ = cut_labelled_batches(data_->train.lines, options_.batch.tokens, train_.seed_for_order(), pass);
  return static_cast<int64_t>(batches_.size());
}

std::unique_ptr<Batch> Classify::ready(int64_t index, uint32_t update) {
  return ready_sentences(batches_[static_cast<size_t>(index)], update);
}

std::unique_ptr<Batch> Classify::ready_sentences(const SentenceIds& sentences, uint32_t update) const {
  LabelledBatch packed = pack(data_->train, sentences);
  return std::make_unique<SentenceBatch>(model_.ready(packed.rows, std::move(packed.labels), update));
}

LossSums Classify::loss(const ForwardContext& context, const Batch& batch) {
  return loss_sums(model_.loss(context, SentenceBatch::in(batch), train_.label_smoothing));
}

ClassPredictions Classify::predictions(const LabelledLines& set) const {
  ClassPredictions predictions;
  for (const SentenceIds& sentences : evaluation_batches(set.lines, kEvaluationTokens)) {
    throw_if_stopped();
    LabelledBatch packed = pack(set, sentences);
    Tape tape(Tape::Kind::kForward, ops_of(execution_));
    const ReadySentences& batch = tape.save(model_.ready(packed.rows, packed.labels, std::nullopt));
    predictions.add(model_.logits({tape}, batch).data(), packed.labels);
  }
  return predictions;
}

NamedNumbers Classify::evaluate() { return predictions(data_->dev).scores("dev"); }

FinalScores Classify::final_scores() {
  const ClassPredictions dev = predictions(data_->dev), test = predictions(data_->test);
  FinalScores scores{.numbers = test.scores("test"),  // those of dev are known from the evaluation
                     .files = {{"outputs/dev.classes", dev.lines(data_->classes)},
                               {"outputs/test.classes", test.lines(data_->classes)}}};
  for (const auto& [name, length] : learned_lengths(parameters_)) scores.numbers[name] = length;
  return scores;
}

}  // namespace tearless::engine
