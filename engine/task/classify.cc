#include "engine/task/classify.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "engine/data/text_lines.h"
#include "engine/task/made_up.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
namespace {

/// Batch size of evaluations. Not a setting: the cut may change the last bits of a sum.
constexpr int64_t kEvaluationTokens = 4096;

Counts sentence_counts(const LabelledTokens& data, int64_t batches) {
  return {{"train.sentences", data.train.size()},
          {"dev.sentences", data.dev.size()},
          {"test.sentences", data.test.size()},
          {"train.words", std::ssize(data.train.lines.tokens)},
          {"train.batches", batches},
          {"types", data.vocabulary_size() - kFirstPiece},
          {"vocabulary", data.vocabulary_size()}};
}

// --- made-up batches -------------------------------------------------------------------------------------------------

std::shared_ptr<const LabelledTokens> made_up_sentences(const TrainOptions& train, int64_t vocab_size,
                                                        const MadeUpSizes& sizes) {
  constexpr int32_t kClasses = 2;
  auto data = std::make_shared<LabelledTokens>();
  data->vocabulary.resize(static_cast<size_t>(vocab_size));
  data->classes.resize(kClasses);
  data->train.lines =
      random_lines(column(sizes, 0, 0), false, vocab_size, RandomStream(train.seed_for_order(), "bench.source"));
  for (int32_t i = 0; i < data->train.lines.size(); ++i) data->train.labels.push_back(i % kClasses);
  return data;
}

// --- settings and data -----------------------------------------------------------------------------------------------

class ClassifyKind final : public TaskKindOf<ClassifyOptions, ClassifyKind> {
 public:
  ClassifyKind() {
    meaning = "classification of sentences by a Transformer encoder; checkpoints are selected by dev accuracy";
  }
  void describe_own(SettingsVisitor& v) override {
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
  void check_consistent(const TrainOptions& train) const override {
    check_one_label_an_example(train);
    engine::check_consistent(options.data);
    engine::check_consistent(options.model);
  }
  bool data_follow_seed() const override { return !options.data.split_seed; }
  DataFiles data_files() override { return engine::data_files(options.data); }
  TaskNumbers numbers() const override { return class_numbers(); }
  DeclaredParameters model_parameters() const override { return declared_parameters(options.model); }
  std::optional<Size> size(const TrainOptions& train) const override {
    const auto data = data_of(train, [](const std::string&) {});
    const int64_t parameters = parameter_count(options.model, data->vocabulary_size(), data->class_count());
    return Size{.parameters = parameters, .saved_numbers = saved_numbers(options.model, options.batch.tokens)};
  }
  int64_t pass_batches(const TrainOptions& train) const override {
    const auto data = data_of(train, [](const std::string&) {});
    return std::ssize(cut_labelled_batches(data->train.lines, options.batch.tokens, /*seed=*/0, /*pass=*/0));
  }
  std::string prepare_data(const TrainOptions& train, const Say& say) const override {
    LabelledTextOptions described = options.data;
    say_left_out(engine::data_files(described), say);
    const auto data = data_of(train, say);
    return fmt::format("{}: {} training, {} dev, {} test sentences of {} classes; vocabulary {}; nothing needs a cache",
                       options.data.name, data->train.size(), data->dev.size(), data->test.size(), data->class_count(),
                       data->vocabulary_size());
  }
  Counts data_counts(const TrainOptions& train, const Say& say) const override {
    return sentence_counts(*data_of(train, say), pass_batches(train));
  }
  std::vector<std::string> data_count_names() const override { return names_of(sentence_counts({}, 0)); }
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override {
    auto task = std::make_unique<Classify>(options, train, execution, data_of(train, say));
    say(fmt::format("{} parameters, vocabulary {}, {} training sentences of {} classes", task->parameters().count(),
                    task->data().vocabulary_size(), task->data().train.size(), task->data().class_count()));
    return task;
  }
  MadeUpTask made_up_task(const TrainOptions& train, const ExecutionOptions& execution, int64_t vocab_size,
                          const std::filesystem::path& sizes) const override {
    const MadeUpSizes rows = sizes_in(sizes, equal_examples(options.batch.tokens, 1));
    auto task = std::make_unique<Classify>(options, train, execution, made_up_sentences(train, vocab_size, rows));
    const int64_t batches = task->train_on(numbered(rows));
    return {.task = std::move(task), .batches = batches};
  }

 private:
  std::shared_ptr<const LabelledTokens> data_of(const TrainOptions& train, const Say& say) const {
    LabelledTextOptions data = options.data;
    if (!data.split_seed) data.split_seed = train.seed;
    return labelled_tokens(std::move(data), options.text, say);
  }
};

}  // namespace

std::unique_ptr<TaskKind> classify_kind() { return std::make_unique<ClassifyKind>(); }

// --- training --------------------------------------------------------------------------------------------------------

Classify::Classify(const ClassifyOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
                   std::shared_ptr<const LabelledTokens> data)
    : TaskOf(options, train, execution),
      data_(std::move(data)),
      model_(parameters_, options.model, data_->vocabulary_size(), data_->class_count(), train.seed_for_dropout()) {
  parameters_.allocate();
}

std::vector<Classify::Examples> Classify::cut(int64_t pass) const {
  return cut_labelled_batches(data_->train.lines, options_.batch.tokens, train_.seed_for_order(), pass);
}

ReadySentences Classify::ready_examples(const Examples& examples, uint32_t update) const {
  LabelledBatch packed = pack(data_->train, examples);
  return model_.ready(packed.rows, std::move(packed.labels), update);
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
  return final_class_scores(predictions(data_->dev), predictions(data_->test), data_->classes);
}

}  // namespace tearless::engine
