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
#include "engine/task/run_options.h"
#include "engine/train/task.h"

namespace tearless::engine {

class Translate final : public Task {
 public:
  /// `options` must outlive the task.
  Translate(const RunOptions& options, Prepared prepared);

  Parameters& parameters() override { return parameters_; }
  int64_t start_pass(int64_t pass) override;
  ReadyBatch ready(int64_t index, uint32_t update) override;
  LossSums loss(const ForwardContext& context, const ReadyBatch& batch) override;
  Evaluation evaluate() override;
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

  const RunOptions& options_;
  Prepared prepared_;
  Parameters parameters_;
  Transformer model_;
  Translator translator_;
  std::vector<SentenceIds> batches_;  // of the started pass
};

}  // namespace tearless::engine
