#include "engine/task/translate.h"

#include "base/files.h"
#include "engine/score/bleu.h"
#include "engine/score/sentence_stats.h"
#include "engine/train/execution.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
namespace {

/// Of the batches that perplexities are taken over. Not decode.batch_tokens, which is local: where a sum is cut shows
/// in its last bits.
constexpr int64_t kPerplexityTokens = 4096;

}  // namespace

Translate::Translate(const RunOptions& options, Prepared prepared)
    : options_(options),
      prepared_(std::move(prepared)),
      parameters_(transformer_specs(options.model, prepared_.vocabulary.size()), options.train.seed_for_init(),
                  device_of(options.run), compute_of(options.run)),
      model_(parameters_, options.model,
             KeptVocabulary::from(prepared_.vocabulary.target_kept, options.model.mask_target_vocabulary),
             options.train.seed_for_dropout()),
      translator_(model_, options.decode, ops_of(options.run)) {}

int64_t Translate::start_pass(int64_t pass) {
  batches_ = cut_batches(prepared_.train, options_.train.batch, options_.train.seed_for_order(), pass);
  return static_cast<int64_t>(batches_.size());
}

ReadyBatch Translate::ready(int64_t index, uint32_t update) {
  return model_.ready(pack(prepared_.train, batches_[static_cast<size_t>(index)]), update);
}

LossSums Translate::loss(const Step& step, const ReadyBatch& batch) {
  return model_.loss(step, batch, options_.train.label_smoothing);
}

NamedNumbers Translate::perplexities(const std::string& name, const ParallelTokens& set) const {
  LossSums sums;
  for (const BatchLines& lines : decoding_batches(set, kPerplexityTokens)) {
    give_up_if_stopped();
    Tape tape(Tape::Kind::kForward, ops_of(options_.run));
    sums += model_.loss(Step{tape}, pack(set, lines), options_.train.label_smoothing);
  }
  return {{name + ".ppl_smoothed", perplexity(sums.loss, sums.tokens)},
          {name + ".ppl", perplexity(sums.nll, sums.tokens)}};
}

std::vector<std::string> Translate::hypotheses(const ParallelTokens& set) {
  std::vector<std::string> lines;
  for (const auto& tokens : translator_.translate(set, give_up_if_stopped)) {
    lines.push_back(prepared_.to_text(tokens));
  }
  return lines;
}

double Translate::score(const std::string& name, const std::vector<std::string>& hypotheses,
                        const std::vector<std::string>& references, const RunDirectory* run) const {
  BleuStats sum;
  std::vector<BleuStats> sentences;
  std::string text;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    sentences.push_back(prepared_.raw_text ? bleu_stats(tokenise_13a(hypotheses[i]), tokenise_13a(references[i]))
                                           : bleu_stats(hypotheses[i], references[i]));
    sum += sentences.back();
    text += hypotheses[i] + "\n";
  }
  if (run) {
    make_folders(run->outputs());
    write_atomically(run->outputs() / (name + ".hyp"), text);
    write_atomically(run->outputs() / (name + ".stats"), sentence_stats_text(sentences));
  }
  return prepared_.raw_text ? bleu_exp_smoothed(sum) : bleu(sum);
}

Evaluation Translate::evaluate() {
  Evaluation evaluation;
  evaluation.numbers = perplexities("dev", prepared_.dev);
  const double bleu = score("dev", hypotheses(prepared_.dev), prepared_.dev_reference, nullptr);
  evaluation.numbers["dev." + bleu_name()] = bleu;
  evaluation.selection = round_bleu(bleu);
  return evaluation;
}

NamedNumbers Translate::final_scores(const RunDirectory& run) {
  NamedNumbers numbers = perplexities("test", prepared_.test);
  score("dev", hypotheses(prepared_.dev), prepared_.dev_reference, &run);
  numbers["test." + bleu_name()] = score("test", hypotheses(prepared_.test), prepared_.test_reference, &run);
  for (const auto& [name, length] : learned_lengths(parameters_)) numbers[name] = length;
  return numbers;
}

std::vector<std::string> Translate::output_files() const {
  return {"outputs/dev.hyp", "outputs/dev.stats", "outputs/test.hyp", "outputs/test.stats"};
}

}  // namespace tearless::engine
