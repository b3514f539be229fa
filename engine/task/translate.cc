#include "engine/task/translate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/words.h"
#include "engine/data/corpus.h"

namespace tearless::engine {
namespace {

/// Batch size for perplexities. Not decode.batch_tokens: that setting is local, and the cut changes the last bits of a
/// sum.
constexpr int64_t kPerplexityTokens = 4096;

/// What one side of the training pairs comes to, to be compared with a paper's table (docs/spec/tables.md, Table 1).
/// EOS is not counted. Words are those before the text was cut into subwords.
std::string side_counts(const char* side, const Prepared& corpus, const TokenLines& lines) {
  size_t words = 0, subwords = 0;
  std::set<int32_t> types;
  for (int64_t i = 0; i < lines.size(); ++i) {
    words += split_words(corpus.to_text(lines[i])).size();
    for (const int32_t token : lines[i]) {
      if (token == kEos) continue;
      ++subwords;
      types.insert(token);
    }
  }
  return fmt::format("{}: {} words, {} subwords, {} types", side, words, subwords, types.size());
}

}  // namespace

std::unique_ptr<TaskKind> translate_kind() { return std::make_unique<TranslateKind>(); }

// --- settings and data -----------------------------------------------------------------------------------------------

TranslateKind::TranslateKind() {
  meaning = "translation of sentences by an encoder-decoder Transformer; checkpoints are selected by dev BLEU";
}

void TranslateKind::describe_own(SettingsVisitor& v) {
  v.table("data", options.data);
  v.table("text", options.text);
  v.table("model", options.model);
  v.table_of("train", [&] { v.table("batch", options.batch); });
  v.table("decode", options.decode);
}

void TranslateKind::check_consistent(const TrainOptions&) const { engine::check_consistent(options.model); }

std::optional<TaskKind::Size> TranslateKind::size(const TrainOptions&) const {
  const auto vocabulary = prepared_vocabulary_size(preparation_key(options.data, options.text));
  if (!vocabulary) return std::nullopt;
  const int64_t parameters = parameter_count(options.model, *vocabulary);
  return Size{.parameters = parameters,
              .saved_numbers = saved_numbers(options.model, *vocabulary, options.batch.tokens)};
}

std::string TranslateKind::prepare_data(const TrainOptions& train, const Say& say) const {
  const Prepared corpus = prepare(options.data, options.text, say);
  say(side_counts("source", corpus, corpus.train.source));
  say(side_counts("target", corpus, corpus.train.target));
  say(fmt::format(
      "output vocabulary: {} types",
      OutputVocabulary::from(corpus.vocabulary.in_target, options.model.mask_target_vocabulary).tokens.size()));
  say(fmt::format("batches of the first pass: {}",
                  cut_batches(corpus.train, options.batch, train.seed_for_order(), /*pass=*/0).size()));
  return fmt::format("{}: {} training, {} dev, {} test pairs; vocabulary {}",
                     prepared_folder(preparation_key(options.data, options.text)).string(), corpus.train.size(),
                     corpus.dev.size(), corpus.test.size(), corpus.vocabulary.size());
}

std::unique_ptr<Task> TranslateKind::make(const TrainOptions& train, const ExecutionOptions& execution,
                                          const Say& say) const {
  auto task = std::make_unique<Translate>(options, train, execution, prepare(options.data, options.text, say));
  say(fmt::format("{} parameters, vocabulary {}, {} training pairs", task->parameters().count(),
                  task->prepared().vocabulary.size(), task->prepared().train.size()));
  return task;
}

// --- training --------------------------------------------------------------------------------------------------------

double perplexity(double sum, int64_t tokens) {
  return tokens == 0 ? 0 : std::exp(std::min(700.0, sum / static_cast<double>(tokens)));
}

Translate::Translate(const TranslateOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
                     Prepared prepared)
    : TaskOf(options, train, execution),
      prepared_(std::move(prepared)),
      model_(parameters_, options.model,
             OutputVocabulary::from(prepared_.vocabulary.in_target, options.model.mask_target_vocabulary),
             train.seed_for_dropout()),
      translator_(model_, options.decode, ops_of(execution)) {
  parameters_.allocate();
}

std::vector<Translate::Examples> Translate::cut(int64_t pass) const {
  return cut_batches(prepared_.train, options_.batch, train_.seed_for_order(), pass);
}

ReadyBatch Translate::ready_examples(const Examples& examples, uint32_t update) const {
  return model_.ready(pack(prepared_.train, examples), update);
}

NamedNumbers Translate::training_numbers(const LossSums& epoch) const {
  return {{"train.ppl_smoothed", perplexity(epoch.values[0], epoch.predictions)},
          {"train.ppl", perplexity(epoch.values[1], epoch.predictions)}};
}

NamedNumbers Translate::perplexities(const std::string& name, const ParallelTokens& set) const {
  CrossEntropySums sums;
  for (const SentenceIds& sentences : decoding_batches(set, kPerplexityTokens)) {
    throw_if_stopped();
    Tape tape(Tape::Kind::kForward, ops_of(execution_));
    sums += model_.loss(ForwardContext{tape}, pack(set, sentences), train_.label_smoothing);
  }
  return {{name + ".ppl_smoothed", perplexity(sums.loss, sums.tokens)},
          {name + ".ppl", perplexity(sums.nll, sums.tokens)}};
}

std::vector<std::string> Translate::hypotheses(const ParallelTokens& set) {
  std::vector<std::string> lines;
  for (const auto& tokens : translations(set)) {
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

NamedNumbers Translate::evaluate() {
  NamedNumbers numbers = perplexities("dev", prepared_.dev);
  numbers["dev." + bleu_name()] = corpus_bleu(sentence_stats(hypotheses(prepared_.dev), prepared_.dev_reference));
  return numbers;
}

FinalScores Translate::scored_translations(const std::string& set, const ParallelTokens& source,
                                           const std::vector<std::string>& references) {
  const std::vector<std::string> lines = hypotheses(source);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const std::vector<BleuStats> sentences = sentence_stats(lines, references);
  return {.numbers = {{set + "." + bleu_name(), corpus_bleu(sentences)}},
          .files = {{"outputs/" + set + ".hyp", std::move(text)},
                    {"outputs/" + set + ".stats", sentence_stats_text(sentences)}}};
}

FinalScores Translate::final_scores() {
  FinalScores scores{.numbers = perplexities("test", prepared_.test), .files = {}};
  FinalScores dev = scored_translations("dev", prepared_.dev, prepared_.dev_reference);
  FinalScores test = scored_translations("test", prepared_.test, prepared_.test_reference);
  scores.numbers.merge(test.numbers);  // that of dev is known from the evaluation
  for (FinalScores* set : {&dev, &test}) scores.files.merge(set->files);
  return scores;
}

}  // namespace tearless::engine
