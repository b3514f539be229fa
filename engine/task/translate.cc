#include "engine/task/translate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/corpus.h"

namespace tearless::engine {
namespace {

/// Batch size for perplexities. Not decode.batch_tokens: that setting is local, and the cut changes the last bits of a
/// sum.
constexpr int64_t kPerplexityTokens = 4096;

/// What one side of the training pairs comes to, to be compared with a paper's table (docs/spec/tables.md, Table 1).
/// EOS is not counted. Words are those before the text was cut into subwords.
std::string side_counts(Side side, const Prepared& corpus, const TokenLines& lines) {
  size_t words = 0, subwords = 0;
  std::set<int32_t> types;
  for (int64_t i = 0; i < lines.size(); ++i) {
    words += split_words(corpus.to_text(lines[i], side)).size();
    for (const int32_t token : lines[i]) {
      if (token == kEos) continue;
      ++subwords;
      types.insert(token);
    }
  }
  return fmt::format("{}: {} words, {} subwords, {} types", side == Side::kSource ? "source" : "target", words,
                     subwords, types.size());
}

std::string sizes_of(const Vocabulary& vocabulary) {
  const auto [source, target] = vocabulary.sizes();
  return vocabulary.source_pieces.empty() ? fmt::format("vocabulary {}", target)
                                          : fmt::format("vocabularies {} and {}", source, target);
}

OutputVocabulary output_vocabulary(const Prepared& corpus, const ModelOptions& model, const LabelSmoothing& smoothing) {
  return OutputVocabulary::from(corpus.vocabulary.in_target, model.mask_target_vocabulary,
                                smoothing.over_whole_vocabulary());
}

std::string labels_outside(const Prepared& corpus, const OutputVocabulary& vocabulary) {
  const auto count = [&](const ParallelTokens& set) { return vocabulary.outside(set.target.tokens); };
  return fmt::format("labels outside the target vocabulary, which count as UNK: {} training, {} dev, {} test",
                     count(corpus.train), count(corpus.dev), count(corpus.test));
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

void TranslateKind::check_consistent(const TrainOptions& train) const {
  engine::check_consistent(options.model);
  engine::check_consistent(options.decode);
  if (options.text.vocabulary == VocabularyKind::kPerSide && options.model.tied_embeddings == Tying::kAll) {
    fail(
        "text.vocabulary = \"per_side\" does not go with model.tied_embeddings = \"all\", one matrix for both sides; "
        "set tied_embeddings to \"target\" or \"none\"");
  }
  if (train.smoothing().over_whole_vocabulary() && options.model.mask_target_vocabulary) {
    fail(
        "train.label_smoothing_form spreads mass over the whole vocabulary, but model.mask_target_vocabulary = true "
        "leaves no probability to a part of it; set model.mask_target_vocabulary = false, or "
        "train.label_smoothing_form = \"twt\"");
  }
}

std::optional<TaskKind::Size> TranslateKind::size(const TrainOptions&) const {
  const auto vocabulary = prepared_vocabulary_sizes(preparation_key(options.data, options.text));
  if (!vocabulary) return std::nullopt;
  const int64_t parameters = parameter_count(options.model, vocabulary->target, vocabulary->source);
  return Size{.parameters = parameters,
              .saved_numbers = saved_numbers(options.model, vocabulary->target, options.batch.tokens)};
}

int64_t TranslateKind::pass_batches(const TrainOptions&) const {
  const std::string key = preparation_key(options.data, options.text);
  if (!is_prepared(key)) return 0;
  // `check` asks for each run of a grid, and they have few corpora and few kinds of batches.
  static std::map<std::string, int64_t> known;
  BatchOptions batch = options.batch;
  const std::string cut =
      key + "\n" + canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { v.table("batch", batch); });
  if (const auto found = known.find(cut); found != known.end()) return found->second;
  const Prepared corpus = prepare(options.data, options.text, [](const std::string&) {});
  return known[cut] = std::ssize(cut_batches(corpus.train, batch, /*seed=*/0, /*pass=*/0));
}

std::string TranslateKind::prepare_data(const TrainOptions& train, const Say& say) const {
  const Prepared corpus = prepare(options.data, options.text, say);
  check_fits(corpus.train, options.batch);
  const OutputVocabulary vocabulary = output_vocabulary(corpus, options.model, train.smoothing());
  say(side_counts(Side::kSource, corpus, corpus.train.source));
  say(side_counts(Side::kTarget, corpus, corpus.train.target));
  say(fmt::format("output vocabulary: {} types", vocabulary.tokens.size()));
  if (options.model.mask_target_vocabulary) say(labels_outside(corpus, vocabulary));
  say(fmt::format("batches of the first pass: {}",
                  cut_batches(corpus.train, options.batch, train.seed_for_order(), /*pass=*/0).size()));
  return fmt::format("{}: {} training, {} dev, {} test pairs; {}",
                     prepared_folder(preparation_key(options.data, options.text)).string(), corpus.train.size(),
                     corpus.dev.size(), corpus.test.size(), sizes_of(corpus.vocabulary));
}

std::unique_ptr<Task> TranslateKind::make(const TrainOptions& train, const ExecutionOptions& execution,
                                          const Say& say) const {
  Prepared prepared = prepare(options.data, options.text, say);
  check_fits(prepared.train, options.batch);
  auto task = std::make_unique<Translate>(options, train, execution, std::move(prepared));
  say(fmt::format("{} parameters, {}, {} training pairs", task->parameters().count(),
                  sizes_of(task->prepared().vocabulary), task->prepared().train.size()));
  if (options.model.mask_target_vocabulary) say(labels_outside(task->prepared(), task->output_vocabulary()));
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
      model_(parameters_, options.model, engine::output_vocabulary(prepared_, options.model, train.smoothing()),
             train.seed_for_dropout(), prepared_.vocabulary.sizes().source),
      translator_(model_, options.decode, ops_of(execution)) {
  parameters_.allocate();
}

std::vector<Translate::Examples> Translate::cut(int64_t pass) const {
  return cut_batches(prepared_.train, options_.batch, train_.seed_for_order(), pass);
}

ReadyBatch Translate::ready_examples(const Examples& examples, uint32_t update) const {
  ReadyBatch ready = model_.ready(pack(prepared_.train, examples), update);
  if (train_.loss_mean == TrainOptions::LossMean::kSentences) ready.weigh_by_sentence();
  return ready;
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
    sums += model_.loss(ForwardContext{tape}, pack(set, sentences), train_.smoothing());
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
  std::vector<std::string> lines;
  std::string text, lists;
  for (const std::vector<SearchOutput>& outputs : translator_.search(source, throw_if_stopped)) {
    for (const SearchOutput& output : outputs) {
      lists += fmt::format("{} ||| {} ||| {:.6f}\n", lines.size(), prepared_.to_text(output.tokens), output.score);
    }
    lines.push_back(prepared_.to_text(outputs.front().tokens));
    text += lines.back() + "\n";
  }
  const std::vector<BleuStats> sentences = sentence_stats(lines, references);
  FinalScores scores{.numbers = {{set + "." + bleu_name(), corpus_bleu(sentences)}},
                     .files = {{"outputs/" + set + ".hyp", std::move(text)},
                               {"outputs/" + set + ".stats", sentence_stats_text(sentences)}}};
  if (options_.decode.n_best > 1) scores.files.emplace("outputs/" + set + ".nbest", std::move(lists));
  return scores;
}

FinalScores Translate::final_scores() {
  FinalScores scores{.numbers = perplexities("test", prepared_.test), .files = {}};
  for (const auto& [name, set] : {std::pair("dev", &prepared_.dev), {"test", &prepared_.test}}) {
    const int64_t outside = output_vocabulary().outside(set->target.tokens);
    if (outside > 0) scores.numbers[fmt::format("{}.labels_outside", name)] = static_cast<double>(outside);
  }
  FinalScores dev = scored_translations("dev", prepared_.dev, prepared_.dev_reference);
  FinalScores test = scored_translations("test", prepared_.test, prepared_.test_reference);
  scores.numbers.merge(test.numbers);  // that of dev is known from the evaluation
  for (FinalScores* set : {&dev, &test}) scores.files.merge(set->files);
  return scores;
}

}  // namespace tearless::engine
