#include "engine/task/translate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/corpus.h"
#include "engine/data/text_lines.h"
#include "engine/task/made_up.h"

namespace tearless::engine {
namespace {

/// Batch size for perplexities. Not decode.batch_tokens: that setting is local, and the cut changes the last bits of a
/// sum.
constexpr int64_t kPerplexityTokens = 4096;

constexpr auto kBleuNames = std::to_array<std::string_view>({"auto", "zh", "char"});

int64_t words_of(const std::vector<std::string>& lines) {
  int64_t words = 0;
  for (const std::string& line : lines) words += std::ssize(split_words(line));
  return words;
}

/// Without PAD, BOS, EOS and UNK.
int64_t different_pieces(const TokenLines& lines) {
  return std::ranges::count_if(std::set(lines.tokens.begin(), lines.tokens.end()),
                               [](int32_t token) { return token >= kFirstPiece; });
}

/// To be compared with a paper's table (docs/spec/tables.md, Table 1). EOS is not counted among the subwords.
Counts pair_counts(const Prepared& corpus, int64_t source_words, int64_t target_words, int64_t batches) {
  const TokenLines &source = corpus.train.source, &target = corpus.train.target;
  const int64_t source_subwords = std::ssize(source.tokens) - source.size(),
                target_subwords = std::ssize(target.tokens);
  const auto [source_vocabulary, target_vocabulary] = corpus.vocabulary.sizes();
  return {{"train.sentences", corpus.train.size()},
          {"dev.sentences", corpus.dev.size()},
          {"test.sentences", corpus.test.size()},
          {"train.source_words", source_words},
          {"train.target_words", target_words},
          {"train.words", source_words + target_words},
          {"train.source_subwords", source_subwords},
          {"train.target_subwords", target_subwords},
          {"train.subwords", source_subwords + target_subwords},
          {"train.batches", batches},
          {"source_types", different_pieces(source)},
          {"target_types", different_pieces(target)},
          {"source_vocabulary", source_vocabulary},
          {"target_vocabulary", target_vocabulary}};
}

/// Words are those of the files, not of the tokens: UNK does not tell whether a word goes on after it. Those of
/// segmented text are what its subwords were cut from.
Counts pair_counts(const Prepared& corpus, const TranslateOptions& options, const TrainOptions& train) {
  DataOptions data = options.data;
  const DataFiles files = engine::data_files(data);
  files.require();
  ParallelText text = training_pairs(read_parallel(files.sets[0]), options.text.max_words, data);
  const auto words = [&](std::vector<std::string>& side) {
    return words_of(reference_lines(std::move(side), options.text.kind));
  };
  const auto batches = cut_batches(corpus.train, options.batch, train.seed_for_order(), /*pass=*/0);
  return pair_counts(corpus, words(text.source), words(text.target), std::ssize(batches));
}

std::string sizes_of(const Vocabulary& vocabulary) {
  const auto [source, target] = vocabulary.sizes();
  return vocabulary.source_pieces.empty() ? fmt::format("vocabulary {}", target)
                                          : fmt::format("vocabularies {} and {}", source, target);
}

OutputVocabulary output_vocabulary(const Prepared& corpus, const ModelOptions& model, const LabelSmoothing& smoothing) {
  return OutputVocabulary::from(corpus.vocabulary.in_target, model.mask_target_vocabulary,
                                smoothing.over_whole_vocabulary(), model.special_outputs);
}

std::string labels_outside_name(const std::string& set) { return set + ".labels_outside"; }

/// Says how many lines of each file look as if they were cut into subwords of another kind.
void say_looks_cut(DataOptions data, TextKind kind, const Say& say) {
  for (const DataSet& set : engine::data_files(data).sets) {
    const ParallelText text = read_parallel(set);
    for (const auto& [file, lines] : {std::pair(set.files()[0], &text.source), {set.files()[1], &text.target}}) {
      const auto cut = std::ranges::count_if(*lines, [&](const std::string& line) { return looks_cut(kind, line); });
      if (cut == 0) continue;
      say(fmt::format(
          "warning: {} of {} have subwords' marks ({}); if the text is cut already, BLEU is of subwords: {}",
          counted(cut, "line"), file, kind == TextKind::kSentencepiece ? "@@" : "\u2581",
          kind == TextKind::kSentencepiece ? "set text.kind = \"segmented\""
                                           : "join it with spm_decode, and set text.kind = \"sentencepiece\""));
    }
  }
}

/// Says what of the text makes its scores doubtful.
void say_doubts(const Prepared& corpus, const TranslateOptions& options, const Say& say) {
  const std::optional<Tokeniser> tokeniser = bleu_tokeniser(options);
  if (tokeniser == Tokeniser::kZh || tokeniser == Tokeniser::kChar) return;
  for (const auto& [set, lines] : {std::pair("dev", &corpus.dev_reference), {"test", &corpus.test_reference}}) {
    if (!has_hardly_a_space({lines->begin(), lines->end()})) continue;
    say(fmt::format(
        "warning: the references of {} have hardly a space, and {} counts what spaces separate as words: set "
        "text.bleu = \"zh\" for Chinese, \"char\" for other text without spaces",
        set, bleu_name(options)));
  }
}

std::string labels_outside(const Prepared& corpus, const OutputVocabulary& vocabulary) {
  const auto count = [&](const ParallelTokens& set) { return vocabulary.outside(set.target.tokens); };
  return fmt::format("labels outside the target vocabulary, which count as UNK: {} training, {} dev, {} test",
                     count(corpus.train), count(corpus.dev), count(corpus.test));
}

std::string cut_sides(const Prepared& corpus, int64_t truncate) {
  const auto [source, target] = sides_without_eos(corpus.train, truncate);
  return fmt::format("training sides cut to {} tokens, which lose their EOS: {} source, {} target", truncate, source,
                     target);
}

std::string pairs_left_out(const Prepared& corpus, const BatchOptions& options) {
  int64_t pairs = corpus.train.size();
  for (const SentenceIds& batch : cut_batches(corpus.train, options, /*seed=*/0, /*pass=*/0))
    pairs -= std::ssize(batch);
  return fmt::format("training pairs left out at the end of each pass, because their batch is too small: {}", pairs);
}

}  // namespace

std::optional<Tokeniser> bleu_tokeniser(const TranslateOptions& options) {
  using Bleu = TranslateOptions::Bleu;
  if (options.bleu == Bleu::kZh) return Tokeniser::kZh;
  if (options.bleu == Bleu::kChar) return Tokeniser::kChar;
  return options.text.kind == TextKind::kSentencepiece ? std::optional(Tokeniser::k13a) : std::nullopt;
}

std::string bleu_name(const TranslateOptions& options) {
  const std::optional<Tokeniser> tokeniser = bleu_tokeniser(options);
  return tokeniser ? fmt::format("bleu_{}", kTokeniserNames[static_cast<size_t>(*tokeniser)]) : "bleu";
}

namespace {

// --- made-up batches -------------------------------------------------------------------------------------------------

Prepared made_up_pairs(const TrainOptions& train, int64_t vocab_size, const MadeUpSizes& sizes) {
  Prepared pairs;
  pairs.vocabulary.in_target.assign(static_cast<size_t>(vocab_size), 1);
  pairs.vocabulary.pieces.resize(static_cast<size_t>(vocab_size));
  pairs.train = {
      random_lines(column(sizes, 0, 1), true, vocab_size, RandomStream(train.seed_for_order(), "bench.source")),
      random_lines(column(sizes, 1, 1), false, vocab_size, RandomStream(train.seed_for_order(), "bench.target"))};
  return pairs;
}

// --- settings and data -----------------------------------------------------------------------------------------------

class TranslateKind final : public TaskKindOf<TranslateOptions, TranslateKind> {
 public:
  TranslateKind() {
    meaning = "translation of sentences by an encoder-decoder Transformer; checkpoints are selected by dev BLEU";
  }
  void describe_own(SettingsVisitor& v) override {
    v.table("data", options.data);
    v.table("text", options.text);
    v.table_of("text", [&] {
      describe_tokeniser(v,
                         {.key = "bleu",
                          .meaning = "BLEU of dev, which selects checkpoints, and of test: `auto`, of tokenised text "
                                     "`bleu` (multi-bleu), of raw text `bleu_13a`; or with another tokeniser of "
                                     "sacreBLEU: `zh` for Chinese, each character a word (`bleu_zh`); `char` for other "
                                     "text without spaces (`bleu_char`)",
                          .neutral = "auto"},
                         options.bleu, kBleuNames);
    });
    v.table("model", options.model);
    v.table_of("train", [&] { v.table("batch", options.batch); });
    v.table("decode", options.decode);
  }
  void check_consistent(const TrainOptions& train) const override {
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
  DataFiles data_files() override { return engine::data_files(options.data); }
  DeclaredParameters model_parameters() const override { return declared_parameters(options.model); }
  TaskNumbers numbers() const override {
    TaskNumbers numbers{.training = perplexity_names("train"),
                        .dev = perplexity_names("dev"),
                        .final = perplexity_names("test"),
                        .selection = {.score = "dev." + bleu_name(options)},
                        .dev_loss = "dev.ppl_smoothed"};  // e^loss
    numbers.dev.push_back(numbers.selection.score);
    numbers.final.push_back("test." + bleu_name(options));
    // A vocabulary of the target side alone has no other tokens.
    if (options.model.mask_target_vocabulary && options.text.vocabulary == VocabularyKind::kJoint) {
      for (const char* set : {"dev", "test"}) numbers.final.push_back(labels_outside_name(set));
    }
    return numbers;
  }
  std::optional<Size> size(const TrainOptions&) const override {
    const auto vocabulary = prepared_vocabulary_sizes(preparation_key(options.data, options.text));
    if (!vocabulary) return std::nullopt;
    const int64_t parameters = parameter_count(options.model, vocabulary->target, vocabulary->source);
    return Size{.parameters = parameters,
                .saved_numbers = saved_numbers(options.model, vocabulary->target, options.batch.tokens)};
  }
  int64_t pass_batches(const TrainOptions&) const override {
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
  std::string prepare_data(const TrainOptions& train, const Say& say) const override {
    const Prepared corpus = prepare(options.data, options.text, say);
    check_fits(corpus.train, options.batch);
    DataOptions data = options.data;
    const OutputVocabulary vocabulary = output_vocabulary(corpus, options.model, train.smoothing());
    say_left_out(engine::data_files(data), say);
    say_looks_cut(data, options.text.kind, say);
    say_doubts(corpus, options, say);
    const Counts counts = pair_counts(corpus, options, train);
    for (const std::string side : {"source", "target"}) {
      say(fmt::format("{}: {} words, {} subwords, {} types", side, counts.at("train." + side + "_words"),
                      counts.at("train." + side + "_subwords"), counts.at(side + "_types")));
    }
    say(fmt::format("output vocabulary: {} types", vocabulary.tokens.size()));
    if (options.model.mask_target_vocabulary) say(labels_outside(corpus, vocabulary));
    if (options.batch.truncate > 0) say(cut_sides(corpus, options.batch.truncate));
    say(fmt::format("batches of the first pass: {}", counts.at("train.batches")));
    if (options.batch.regenerate == Regenerate::kBuffers) say(pairs_left_out(corpus, options.batch));
    return fmt::format("{}: {} training, {} dev, {} test pairs; {}",
                       prepared_folder(preparation_key(options.data, options.text)).string(), corpus.train.size(),
                       corpus.dev.size(), corpus.test.size(), sizes_of(corpus.vocabulary));
  }
  Counts data_counts(const TrainOptions& train, const Say& say) const override {
    return pair_counts(prepare(options.data, options.text, say), options, train);
  }
  std::vector<std::string> data_count_names() const override { return names_of(pair_counts({}, 0, 0, 0)); }
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override {
    Prepared prepared = prepare(options.data, options.text, say);
    check_fits(prepared.train, options.batch);
    say_doubts(prepared, options, say);
    auto task = std::make_unique<Translate>(options, train, execution, std::move(prepared));
    say(fmt::format("{} parameters, {}, {} training pairs", task->parameters().count(),
                    sizes_of(task->prepared().vocabulary), task->prepared().train.size()));
    if (options.model.mask_target_vocabulary) say(labels_outside(task->prepared(), task->output_vocabulary()));
    return task;
  }
  MadeUpTask made_up_task(const TrainOptions& train, const ExecutionOptions& execution, int64_t vocab_size,
                          const std::filesystem::path& sizes) const override {
    const MadeUpSizes rows = sizes_in(sizes, equal_examples(options.batch.tokens, 2));  // with EOS, and with BOS
    auto task = std::make_unique<Translate>(options, train, execution, made_up_pairs(train, vocab_size, rows));
    Translate& made = *task;
    return {.task = std::move(task), .batches = made.train_on(numbered(rows)), .decode = [&made] {
              MadeUpTask::Decoded decoded;
              for (const auto& output : made.translations(made.prepared().train)) {
                ++decoded.sentences;
                decoded.tokens += std::ssize(output);
              }
              return decoded;
            }};
  }
};

}  // namespace

std::unique_ptr<TaskKind> translate_kind() { return std::make_unique<TranslateKind>(); }

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
  ReadyBatch ready = model_.ready(pack(prepared_.train, examples, options_.batch.truncate), update);
  if (train_.loss_mean == TrainOptions::LossMean::kSentences) ready.weigh_by_sentence();
  return ready;
}

std::vector<std::string> perplexity_names(const std::string& set) { return {set + ".ppl_smoothed", set + ".ppl"}; }

NamedNumbers perplexity_numbers(const std::string& name, double loss, double nll, int64_t tokens) {
  const std::vector<std::string> names = perplexity_names(name);
  return {{names[0], perplexity(loss, tokens)}, {names[1], perplexity(nll, tokens)}};
}

NamedNumbers Translate::training_numbers(const LossSums& epoch) const {
  return perplexity_numbers("train", epoch.values[0], epoch.values[1], epoch.predictions);
}

NamedNumbers Translate::perplexities(const std::string& name, const ParallelTokens& set) const {
  CrossEntropySums sums;
  for (const SentenceIds& sentences : decoding_batches(set, kPerplexityTokens)) {
    throw_if_stopped();
    Tape tape(Tape::Kind::kForward, ops_of(execution_));
    sums += model_.loss(ForwardContext{tape}, pack(set, sentences), train_.smoothing());
  }
  return perplexity_numbers(name, sums.loss, sums.nll, sums.tokens);
}

std::vector<std::string> Translate::hypotheses(const ParallelTokens& set) {
  std::vector<std::string> lines;
  for (const auto& tokens : translations(set)) {
    lines.push_back(prepared_.to_text(tokens));
  }
  return lines;
}

SentenceStats Translate::sentence_stats(const std::vector<std::string>& hypotheses,
                                        const std::vector<std::string>& references) const {
  const std::optional<Tokeniser> tokeniser = bleu_tokeniser(options_);
  SentenceStats sentences{.columns = BleuStats::columns()};
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const BleuStats stats = tokeniser
                                ? bleu_stats(tokenise(*tokeniser, hypotheses[i]), tokenise(*tokeniser, references[i]))
                                : bleu_stats(hypotheses[i], references[i]);
    sentences.rows.push_back(stats.numbers());
  }
  return sentences;
}

double Translate::corpus_bleu(const SentenceStats& sentences) const {
  const BleuStats sum = BleuStats::of_numbers(sentences.sum());
  return bleu_tokeniser(options_) ? bleu_exp_smoothed(sum) : bleu(sum);
}

NamedNumbers Translate::evaluate() {
  NamedNumbers numbers = perplexities("dev", prepared_.dev);
  numbers[selection().score] = corpus_bleu(sentence_stats(hypotheses(prepared_.dev), prepared_.dev_reference));
  return numbers;
}

FinalScores Translate::scored_translations(const std::string& set, const ParallelTokens& source,
                                           const std::vector<std::string>& references) {
  std::vector<std::string> lines;
  std::string text, lists;
  const auto start = std::chrono::steady_clock::now();
  const auto found = translator_.search(source, throw_if_stopped);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (const std::vector<SearchOutput>& outputs : found) {
    for (const SearchOutput& output : outputs) {
      lists += fmt::format("{} ||| {} ||| {:.6f}\n", lines.size(), prepared_.to_text(output.tokens), output.score);
    }
    lines.push_back(prepared_.to_text(outputs.front().tokens));
    text += lines.back() + "\n";
  }
  const SentenceStats sentences = sentence_stats(lines, references);
  FinalScores scores{
      .numbers = {{set + "." + bleu_name(options_), corpus_bleu(sentences)}},
      .files = {{"outputs/" + set + ".hyp", std::move(text)}, {"outputs/" + set + ".stats", stats_text(sentences)}},
      .time = {.seconds = seconds.count(), .sentences = std::ssize(lines)}};
  if (options_.decode.n_best > 1) scores.files.emplace("outputs/" + set + ".nbest", std::move(lists));
  return scores;
}

FinalScores Translate::final_scores() {
  FinalScores scores{.numbers = perplexities("test", prepared_.test), .files = {}};
  for (const auto& [name, set] : {std::pair("dev", &prepared_.dev), {"test", &prepared_.test}}) {
    const int64_t outside = output_vocabulary().outside(set->target.tokens);
    if (outside > 0) scores.numbers[labels_outside_name(name)] = static_cast<double>(outside);
  }
  FinalScores dev = scored_translations("dev", prepared_.dev, prepared_.dev_reference);
  FinalScores test = scored_translations("test", prepared_.test, prepared_.test_reference);
  scores.numbers.merge(test.numbers);  // that of dev is known from the evaluation
  for (FinalScores* set : {&dev, &test}) scores.files.merge(set->files);
  scores.time = test.time;
  return scores;
}

}  // namespace tearless::engine
