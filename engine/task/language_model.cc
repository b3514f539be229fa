#include "engine/task/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "base/score/measures.h"
#include "engine/data/shuffle.h"
#include "engine/task/made_up.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
namespace {

Counts text_counts(const CharacterText& text, int64_t batches) {
  return {{"train.symbols", std::ssize(text.train)},
          {"dev.symbols", std::ssize(text.dev)},
          {"test.symbols", std::ssize(text.test)},
          {"train.batches", batches},
          {"types", text.vocabulary_size()}};
}

}  // namespace

// --- settings and data -----------------------------------------------------------------------------------------------

void describe(SettingsVisitor& v, SegmentEvaluation& o) {
  v.integer({.key = "streams", .meaning = "streams that a text is cut into", .min = 1, .max = 1e6}, o.streams);
  v.integer({.key = "segment", .meaning = "symbols of a stream that are predicted at a time", .min = 1, .max = 1e6},
            o.segment);
  v.integer({.key = "memory", .meaning = "rows of earlier segments that each layer sees", .min = 0, .max = 1e6},
            o.memory);
  v.integer({.key = "clamp",
             .meaning = "distances above this count as this; 0: no such limit",
             .min = 0,
             .max = 1e6,
             .neutral = 0},
            o.clamp);
  v.integer({.key = "window",
             .meaning = "rows that each row sees at most, its own among them: those of the memory and of its segment "
                        "up to its own; Transformer-XL's `same_length` is the number of the memory's rows. 0: no such "
                        "limit",
             .min = 0,
             .max = 1e6,
             .neutral = 0},
            o.window);
}

std::shared_ptr<const CharacterText> text_for(const LanguageModelOptions& options, const SegmentEvaluation& e,
                                              const Say& say) {
  auto text = character_text(options.data, options.text, say);
  require_long_enough(std::ssize(text->train), options.data.train, {"train.batch.streams", options.streams},
                      {"train.batch.segment", options.segment}, {"model.memory", options.model.memory});
  for (const auto& [tokens, file] : {std::pair(&text->dev, &options.data.dev), {&text->test, &options.data.test}}) {
    require_long_enough(std::ssize(*tokens), *file, {"evaluate.streams", e.streams}, {"evaluate.segment", e.segment},
                        {"evaluate.memory", e.memory});
  }
  return text;
}

namespace {

class LanguageModelKind final : public TaskKindOf<LanguageModelOptions, LanguageModelKind> {
 public:
  LanguageModelKind() {
    meaning =
        "character language model by Transformer-XL, with a memory that is carried from update to update; checkpoints "
        "are selected by bits per character of dev";
  }
  void describe_own(SettingsVisitor& v) override {
    v.table("data", options.data);
    v.table("text", options.text);
    v.table("model", options.model);
    v.table("evaluate", options.evaluate);
    v.table_of("train", [&] {
      v.table_of("batch", [&] {
        v.integer({.key = "streams", .meaning = "streams that the training text is cut into", .min = 1, .max = 1e6},
                  options.streams);
        v.integer({.key = "segment", .meaning = "symbols of each stream in a batch", .min = 1, .max = 1e6},
                  options.segment);
      });
    });
  }
  void check_consistent(const TrainOptions& train) const override {
    check_one_label_an_example(train);
    if (train.accumulate > 1) {
      fail("train.accumulate = {}: the memory moves on with each update, so an update has one batch; use 1",
           train.accumulate);
    }
    engine::check_consistent(options.model);
  }
  void set_defaults(TrainOptions& train) const override {
    train.epoch_updates = 4000;
    train.max_epochs = 1000;
    train.max_updates = 400'000;
    train.early_stop = 0;
    train.min_lr = 0;
    train.label_smoothing = 0;
    train.clip_norm = 0.25;
    train.schedule.kind = "cosine";
    train.schedule.warmup_updates = 1;
    train.schedule.peak_lr = 2.5e-4;
  }
  DataFiles data_files() override { return engine::data_files(options.data); }
  DeclaredParameters model_parameters() const override { return declared_parameters(options.model); }
  TaskNumbers numbers() const override {
    return {.training = {"train.bpc"},
            .dev = bit_names("dev"),
            .final = bit_names("test"),
            .selection = {.score = "dev.bpc", .higher_is_better = false, .decimals = 4},
            .dev_loss = "dev.loss"};
  }
  std::optional<Size> size(const TrainOptions&) const override {
    const auto data = text_for(options, options.evaluate, [](const std::string&) {});
    const SegmentSizes evaluated = options.evaluate.sizes();
    return Size{.parameters = parameter_count(options.model, data->vocabulary_size()),
                .saved_numbers = saved_numbers(options.model, options.training_sizes()) +
                                 evaluated.streams * (evaluated.memory + evaluated.segment) * 2 *
                                     options.model.d_model * options.model.layers};
  }
  int64_t pass_batches(const TrainOptions&) const override {
    const auto data = text_for(options, options.evaluate, [](const std::string&) {});
    return Streams(data->train, options.streams).segments(options.segment);
  }
  std::string prepare_data(const TrainOptions&, const Say& say) const override {
    const auto data = text_for(options, options.evaluate, say);
    return fmt::format("{}: {} training, {} dev, {} test symbols of {} types; nothing needs a cache", options.data.name,
                       data->train.size(), data->dev.size(), data->test.size(), data->vocabulary_size());
  }
  Counts data_counts(const TrainOptions& train, const Say& say) const override {
    return text_counts(*text_for(options, options.evaluate, say), pass_batches(train));
  }
  std::vector<std::string> data_count_names() const override { return names_of(text_counts({}, 0)); }
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override {
    const auto data = text_for(options, options.evaluate, say);
    auto task = std::make_unique<LanguageModel>(options, train, execution, data);
    say(fmt::format("{} parameters, {} types, {} training symbols in {} streams", task->parameters().count(),
                    data->vocabulary_size(), data->train.size(), options.streams));
    return task;
  }
  /// The one example of a batch of `sizes` is the rows of a segment, equal in all of them. Symbols are as likely as one
  /// another.
  MadeUpTask made_up_task(const TrainOptions& train, const ExecutionOptions& execution, int64_t vocab_size,
                          const std::filesystem::path& sizes) const override {
    const std::vector<int64_t> segments = column(sizes_in(sizes, {{{static_cast<int32_t>(options.segment)}}}), 0, 0);
    if (std::ranges::any_of(segments, [&](int64_t rows) { return rows != options.segment; })) {
      fail("{}: a segment has other than the {} rows of train.batch.segment", sizes.string(), options.segment);
    }
    // Enough for the memory to be full in the last of them.
    const int64_t count = std::max(std::ssize(segments), options.model.memory / options.segment + 1);
    auto text = std::make_shared<CharacterText>();
    text->symbols.resize(static_cast<size_t>(vocab_size));
    const RandomStream stream(train.seed_for_order(), "bench.symbols");
    for (int64_t i = 0; i < options.streams * (count * options.segment + 1); ++i) {
      const uint32_t bits = stream.draw(static_cast<uint32_t>(i), 0, 0, 0);
      text->train.push_back(static_cast<int32_t>(bits % static_cast<uint32_t>(vocab_size)));
    }
    auto task = std::make_unique<LanguageModel>(options, train, execution, std::move(text));
    // The memory is full from the start: updates of a long pass are timed.
    const int64_t batches = task->train_on(
        std::vector<std::vector<int32_t>>(segments.size(), std::vector<int32_t>{static_cast<int32_t>(count - 1)}));
    return {.task = std::move(task), .batches = batches};
  }
};

}  // namespace

std::unique_ptr<TaskKind> language_model_kind() { return std::make_unique<LanguageModelKind>(); }

// --- training --------------------------------------------------------------------------------------------------------

LanguageModel::LanguageModel(const LanguageModelOptions& options, const TrainOptions& train,
                             const ExecutionOptions& execution, std::shared_ptr<const CharacterText> text)
    : TaskOf(options, train, execution),
      text_(std::move(text)),
      model_(parameters_, options.model, text_->vocabulary_size(), train.seed_for_dropout()),
      memory_(model_.make_memory(options.training_sizes())) {
  parameters_.allocate();
}

std::vector<LanguageModel::Examples> LanguageModel::cut(int64_t /*pass*/) const {
  const int64_t segments = Streams(text_->train, options_.streams).segments(options_.segment);
  return cut_in_order(in_order(segments), /*size=*/1);
}

ReadySegment LanguageModel::ready_examples(const Examples& examples, uint32_t /*update*/) const {
  const int64_t number = examples.front();
  StreamSegment segment = Streams(text_->train, options_.streams).at(number, options_.segment);
  return model_.ready(std::move(segment.rows), std::move(segment.labels), number, options_.training_sizes());
}

CrossEntropySums LanguageModel::model_loss(const ForwardContext& context, const ReadySegment& batch) const {
  return model_.loss(context, batch, memory_, train_.label_smoothing);
}

Selection LanguageModel::selection() const { return LanguageModelKind().numbers().selection; }

NamedNumbers LanguageModel::training_numbers(const LossSums& epoch) const {
  return {{"train.bpc", epoch.mean(1) / std::numbers::ln2}};
}

// --- evaluation ------------------------------------------------------------------------------------------------------

std::vector<std::string> bit_names(const std::string& set) { return {set + ".bpc", set + ".loss"}; }

FinalScores LanguageModel::evaluated(const std::string& set, const std::vector<int32_t>& tokens,
                                     const SegmentEvaluation& evaluation) const {
  constexpr double kMaxBits = 1000;  // of a symbol, also where the parameters are not finite
  const SegmentSizes sizes = evaluation.sizes();
  const Streams streams(tokens, sizes.streams);
  SegmentMemory memory = model_.make_memory(sizes, MemoryOf::kKeysAndValues);
  SentenceStats stats{.columns = {"microbits", "symbols"}};
  for (int64_t number = 0; number < streams.segments(sizes.segment); ++number) {
    throw_if_stopped();
    StreamSegment segment = streams.at(number, sizes.segment);
    Tape tape(Tape::Kind::kForward, ops_of(execution_));
    const ReadySegment& batch =
        tape.save(model_.ready(std::move(segment.rows), std::move(segment.labels), number, sizes));
    const CrossEntropySums sums = model_.loss({tape}, batch, memory, /*label_smoothing=*/0);
    const double most = kMaxBits * static_cast<double>(sums.tokens), bits = sums.nll / std::numbers::ln2;
    stats.rows.push_back({std::llround(1e6 * (bits < most ? bits : most)), sums.tokens});
  }
  const double bpc = score_of_sums("bpc", stats.columns, set)(stats.sum());
  return {.numbers = {{set + ".bpc", bpc}, {set + ".loss", bpc * std::numbers::ln2}},
          .files = {{"outputs/" + set + ".stats", stats_text(stats)}}};
}

FinalScores LanguageModel::final_scores() {
  FinalScores scores = evaluated("test", text_->test, options_.evaluate);
  scores.files.merge(evaluated("dev", text_->dev, options_.evaluate).files);
  return scores;
}

}  // namespace tearless::engine
