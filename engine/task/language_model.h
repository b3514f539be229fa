// The task language_model: the next byte or character of a text, by Transformer-XL, and as score bits per character
// (docs/spec/tasks.md §1).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/character_text.h"
#include "engine/data/streams.h"
#include "engine/model/transformer_xl.h"
#include "engine/task/task_kind.h"
#include "engine/task/task_of.h"

namespace tearless::engine {

/// [evaluate]: how dev and test are read. The defaults are those of the published training on enwik8.
struct SegmentEvaluation {
  int64_t streams = 10;
  int64_t segment = 128;
  int64_t memory = 896;
  int64_t clamp = 0;
  int64_t window = 0;

  SegmentSizes sizes() const { return {streams, segment, memory, clamp, window}; }
};
void describe(SettingsVisitor& visitor, SegmentEvaluation& options);

struct LanguageModelOptions {
  CharacterTextOptions data;
  SymbolOptions text;
  TransformerXlOptions model;
  SegmentEvaluation evaluate;
  int64_t streams = 22, segment = 512;  // [train.batch]

  /// How training reads its text.
  SegmentSizes training_sizes() const { return {.streams = streams, .segment = segment, .memory = model.memory}; }
};

/// The texts. Throws UserError if one is shorter than the segments and memories that are to be read of it.
std::shared_ptr<const CharacterText> text_for(const LanguageModelOptions& options, const SegmentEvaluation& evaluation,
                                              const Say& say);

class LanguageModel final : public TaskOf<LanguageModelOptions, ReadySegment> {
 public:
  /// Borrows all options, which must outlive the task.
  LanguageModel(const LanguageModelOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
                std::shared_ptr<const CharacterText> text);

  int64_t schedule_width() const override { return options_.model.d_model; }
  Selection selection() const override;
  std::string dev_loss() const override { return "dev.loss"; }
  NamedNumbers training_numbers(const LossSums& epoch) const override;
  std::vector<at::Tensor> carried() override { return memory_.tensors(); }
  NamedNumbers evaluate() override { return evaluated("dev", text_->dev, options_.evaluate).numbers; }
  FinalScores final_scores() override;

  /// The scores of a text, and the statistics of its segments, in a memory of its own.
  FinalScores evaluated(const std::string& set, const std::vector<int32_t>& tokens,
                        const SegmentEvaluation& evaluation) const;

 private:
  std::vector<Examples> cut(int64_t pass) const override;
  ReadySegment ready_examples(const Examples& examples, uint32_t update) const override;
  CrossEntropySums model_loss(const ForwardContext& context, const ReadySegment& batch) const override;

  std::shared_ptr<const CharacterText> text_;
  TransformerXl model_;
  mutable SegmentMemory memory_;  // of training: a loss moves it on
};

/// The scores of evaluated().
std::vector<std::string> bit_names(const std::string& set);

}  // namespace tearless::engine
