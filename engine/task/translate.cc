#include "engine/task/translate.h"

#include "engine/score/sentence_stats.h"
#include "engine/train/execution.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
namespace {

/// Batch size for perplexities. Not decode.batch_tokens: that setting is local, and the cut changes the last bits of a
/// sum.
constexpr int64_t kPerplexityTokens = 4096;

}  // namespace

Translate::Translate(const RunOptions& options, Prepared prepared)
    : options_(options),
      prepared_(std::move(prepared)),
      parameters_(options.train.seed_for_init(), device_of(options.run), row_precision(options.run)),
      model_(parameters_, options.model,
             OutputVocabulary::from(prepared_.vocabulary.in_target, options.model.mask_target_vocabulary),
             options.train.seed_for_dropout()),
      translator_(model_, options.decode, ops_of(options.run)) {
  parameters_.allocate();
}

int64_t Translate::start_pass(int64_t pass) {
  batches_ = cut_batches(prepared_.train, options_.train.batch, options_.train.seed_for_order(), pass);
  return static_cast<int64_t>(batches_.size());
}

ReadyBatch Translate::ready(int64_t index, uint32_t update) {
  return model_.ready(pack(prepared_.train, batches_[static_cast<size_t>(index)]), update);
}

LossSums Translate::loss(const ForwardContext& context, const ReadyBatch& batch) {
  return model_.loss(context, batch, options_.train.label_smoothing);
}

NamedNumbers Translate::perplexities(const std::string& name, const ParallelTokens& set) const {
  LossSums sums;
  for (const SentenceIds& sentences : decoding_batches(set, kPerplexityTokens)) {
    throw_if_stopped();
    Tape tape(Tape::Kind::kForward, ops_of(options_.run));
    sums += model_.loss(ForwardContext{tape}, pack(set, sentences), options_.train.label_smoothing);
  }
  return {{name + ".ppl_smoothed", perplexity(sums.loss, sums.tokens)},
          {name + ".ppl", perplexity(sums.nll, sums.tokens)}};
}

std::vector<std::string> Translate::hypotheses(const ParallelTokens& set) {
  std::vector<std::string> lines;
  for (const auto& tokens : translator_.translate(set, throw_if_stopped)) {
    lines.push_back(prepared_.to_text(tokens));
  }
  return lines;
}

std::vector<BleuStats> Translate::sentence_stats(const std::vector<std::string>& hypotheses,
                                                 const std::vector<std::string>& references) const {
  std::vector<BleuStats> sentences;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    sentences.push_back(prepared_.raw_text ? bleu_stats(tokenise_13a(hypotheses[i]), tokenise_13a(references[i]))
                                           : bleu_stats(hypotheses[i], references[i]));
  }
  return sentences;
}

double Translate::corpus_bleu(const std::vector<BleuStats>& sentences) const {
  BleuStats sum;
  for (const BleuStats& sentence : sentences) sum += sentence;
  return prepared_.raw_text ? bleu_exp_smoothed(sum) : bleu(sum);
}

Evaluation Translate::evaluate() {
  Evaluation evaluation;
  evaluation.numbers = perplexities("dev", prepared_.dev);
  const double bleu = corpus_bleu(sentence_stats(hypotheses(prepared_.dev), prepared_.dev_reference));
  evaluation.numbers["dev." + bleu_name()] = bleu;
  evaluation.selection = round_bleu(bleu);
  return evaluation;
}

FinalScores Translate::final_scores() {
  FinalScores scores;
  const auto translate = [&](const std::string& name, const ParallelTokens& set,
                             const std::vector<std::string>& references) {
    const std::vector<std::string> lines = hypotheses(set);
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    const std::vector<BleuStats> sentences = sentence_stats(lines, references);
    scores.files["outputs/" + name + ".hyp"] = std::move(text);
    scores.files["outputs/" + name + ".stats"] = sentence_stats_text(sentences);
    return corpus_bleu(sentences);
  };
  scores.numbers = perplexities("test", prepared_.test);
  translate("dev", prepared_.dev, prepared_.dev_reference);  // for its files; its score is known from the evaluation
  scores.numbers["test." + bleu_name()] = translate("test", prepared_.test, prepared_.test_reference);
  for (const auto& [name, length] : learned_lengths(parameters_)) scores.numbers[name] = length;
  return scores;
}

}  // namespace tearless::engine
