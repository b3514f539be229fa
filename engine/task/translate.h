// The translation task: a prepared parallel corpus, an encoder-decoder Transformer, label-smoothed loss, and as scores
// BLEU and perplexities.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/score/bleu.h"
#include "base/score/sentence_stats.h"
#include "engine/data/batches.h"
#include "engine/data/prepared.h"
#include "engine/decode/search.h"
#include "engine/model/transformer.h"
#include "engine/score/tokenise.h"
#include "engine/task/task_kind.h"
#include "engine/task/task_of.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {

struct TranslateOptions {
  DataOptions data;
  TextOptions text;
  ModelOptions model;
  BatchOptions batch;  // [train.batch]
  DecodeOptions decode;
  /// BLEU of dev, of the selection, and of test.
  enum class Bleu {
    kAuto,  // of tokenised text multi-bleu, of raw text with sacreBLEU's tokeniser 13a
    kZh,    // with sacreBLEU's other tokenisers
    kChar
  };
  Bleu bleu = Bleu::kAuto;  // [text] bleu; no prepared corpus depends on it
};

/// The tokeniser of BLEU; none: multi-bleu, whose words are those of the text.
std::optional<Tokeniser> bleu_tokeniser(const TranslateOptions& options);
/// The score of translations: "bleu" of tokenised text, "bleu_13a" of raw text, "bleu_zh", "bleu_char".
std::string bleu_name(const TranslateOptions& options);

class Translate final : public TaskOf<TranslateOptions, ReadyBatch> {
 public:
  /// Borrows all options, which must outlive the task.
  Translate(const TranslateOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
            Prepared prepared);

  int64_t schedule_width() const override { return options_.model.d_model; }
  Selection selection() const override { return {.score = "dev." + bleu_name(options_)}; }
  std::string dev_loss() const override { return "dev.ppl_smoothed"; }  // e^loss
  NamedNumbers training_numbers(const LossSums& epoch) const override;
  NamedNumbers evaluate() override;
  FinalScores final_scores() override;

  /// The hypotheses for a set of the corpus as tokens, one per sentence.
  std::vector<std::vector<int32_t>> translations(const ParallelTokens& set) {
    return translator_.translate(set, throw_if_stopped);
  }
  /// The same as plain text.
  std::vector<std::string> hypotheses(const ParallelTokens& set);
  /// BLEU of the hypotheses for a set, "test.bleu", and the files of its hypotheses, statistics and, if decode.n_best
  /// is above 1, lists of outputs. Throws StopRequested as evaluate() does.
  FinalScores scored_translations(const std::string& set, const ParallelTokens& source,
                                  const std::vector<std::string>& references);
  /// Smoothed and true perplexity of a set, without dropout: `name`.ppl_smoothed and `name`.ppl (docs/spec/training.md
  /// §1.9). Throws StopRequested as evaluate() does.
  NamedNumbers perplexities(const std::string& name, const ParallelTokens& set) const;
  const Prepared& prepared() const { return prepared_; }
  const OutputVocabulary& output_vocabulary() const { return model_.output_vocabulary(); }

 private:
  std::vector<Examples> cut(int64_t pass) const override;
  ReadyBatch ready_examples(const Examples& examples, uint32_t update) const override;
  CrossEntropySums model_loss(const ForwardContext& context, const ReadyBatch& batch) const override {
    return model_.loss(context, batch, train_.smoothing());
  }
  SentenceStats sentence_stats(const std::vector<std::string>& hypotheses,
                               const std::vector<std::string>& references) const;
  double corpus_bleu(const SentenceStats& sentences) const;

  Prepared prepared_;
  Transformer model_;
  Translator translator_;
};

std::vector<std::string> perplexity_names(const std::string& set);
/// The perplexities of a set or of training, from sums over its labels.
NamedNumbers perplexity_numbers(const std::string& name, double loss, double nll, int64_t tokens);

/// exp(sum / tokens), limited to e^700 so that JSON can represent it; 0 without tokens.
double perplexity(double sum, int64_t tokens);

}  // namespace tearless::engine
