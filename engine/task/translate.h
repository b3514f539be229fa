// The translation task: a prepared parallel corpus, an encoder-decoder Transformer, label-smoothed loss, and as scores
// BLEU and perplexities.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/data/batches.h"
#include "engine/data/prepared.h"
#include "engine/decode/search.h"
#include "engine/model/transformer.h"
#include "engine/score/bleu.h"
#include "engine/task/task_kind.h"

namespace tearless::engine {

struct TranslateOptions {
  DataOptions data;
  TextOptions text;
  ModelOptions model;
  BatchOptions batch;  // [train.batch]
  DecodeOptions decode;
};

class TranslateKind final : public TaskKindOf<TranslateKind> {
 public:
  TranslateKind();

  void describe_own(SettingsVisitor& visitor) override;
  void check_consistent(const TrainOptions& train) const override;
  std::vector<std::pair<const char*, std::string*>> paths() override;
  std::string missing_data() const override;
  void fingerprint() override;
  std::vector<Files> data_files() const override;
  std::optional<Size> size() const override;
  std::string prepare_data(const Say& say) const override;
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override;

  TranslateOptions options;
};

class Translate final : public Task {
 public:
  /// Borrows all options, which must outlive the task.
  Translate(const TranslateOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
            Prepared prepared);

  Parameters& parameters() override { return parameters_; }
  std::vector<std::string> loss_names() const override { return {"loss", "nll"}; }
  int64_t schedule_width() const override { return options_.model.d_model; }
  Selection selection() const override { return {.score = "dev." + bleu_name()}; }
  int64_t start_pass(int64_t pass) override;
  std::unique_ptr<Batch> ready(int64_t index, uint32_t update) override;
  LossSums loss(const ForwardContext& context, const Batch& batch) override;
  NamedNumbers training_numbers(const LossSums& epoch) const override;
  NamedNumbers evaluate() override;
  FinalScores final_scores() override;

  /// The hypotheses for a set of the corpus, as plain text, one per sentence.
  std::vector<std::string> hypotheses(const ParallelTokens& set);
  const Prepared& prepared() const { return prepared_; }

  /// The score that selects checkpoints: bleu for tokenised text, bleu_13a for raw text.
  std::string bleu_name() const { return prepared_.raw_text ? "bleu_13a" : "bleu"; }

 private:
  /// Smoothed and true perplexity of a set, without dropout: `name`.ppl_smoothed and `name`.ppl (docs/spec/training.md
  /// §1.9).
  NamedNumbers perplexities(const std::string& name, const ParallelTokens& set) const;
  std::vector<BleuStats> sentence_stats(const std::vector<std::string>& hypotheses,
                                        const std::vector<std::string>& references) const;
  double corpus_bleu(const std::vector<BleuStats>& sentences) const;

  const TranslateOptions& options_;
  const TrainOptions& train_;
  const ExecutionOptions& execution_;
  Prepared prepared_;
  Parameters parameters_;
  Transformer model_;
  Translator translator_;
  std::vector<SentenceIds> batches_;  // of the started pass
};

/// exp(sum / tokens), limited to e^700 so that JSON can represent it; 0 without tokens.
double perplexity(double sum, int64_t tokens);

}  // namespace tearless::engine
