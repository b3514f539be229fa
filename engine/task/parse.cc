#include "engine/task/parse.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "base/score/measures.h"
#include "engine/data/shuffle.h"
#include "engine/task/made_up.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {
namespace {

constexpr auto kFeatureSets = std::to_array<std::string_view>({"all", "words_tags"});
constexpr int64_t kWords = 18, kChildren = 12;

// Batch sizes of evaluations. Not settings: the cut may change the last bits of a sum.
constexpr int64_t kEvaluationExamples = 4096;
constexpr size_t kParsedTogether = 512;  // sentences

Counts treebank_counts(const Treebank& data, int64_t batches) {
  int64_t words = 0;
  for (const EncodedTree& tree : data.train) words += tree.size();
  return {{"train.sentences", std::ssize(data.train)},
          {"train.left_out", data.left_out},
          {"dev.sentences", std::ssize(data.dev)},
          {"test.sentences", std::ssize(data.test)},
          {"train.words", words},
          {"train.examples", 2 * words},
          {"train.batches", batches},
          {"labels", std::ssize(data.labels)},
          {"vocabulary", data.vocabulary_size()}};
}

Transitions transitions_of(const Treebank& data) {
  return {.labels = static_cast<int32_t>(data.labels.size()), .root_label = data.root_label};
}

ParserSizes sizes_of(const Treebank& data, ParserFeatures features) {
  return {.types = data.vocabulary_size(),
          .features = feature_count(features),
          .transitions = transitions_of(data).count()};
}

std::vector<std::vector<bool>> legal_transitions(const Transitions& transitions) {
  std::vector<std::vector<bool>> all;
  for (int32_t legal = 0; legal < kLegals; ++legal) {
    all.emplace_back();
    for (int32_t t = 0; t < transitions.count(); ++t) {
      all.back().push_back(transitions.is_legal(static_cast<Legal>(legal), t));
    }
  }
  return all;
}

/// A label of every arc that the transition system can give it: the gold one, or where that is unknown, or not possible
/// from or to ROOT, another.
std::vector<int32_t> possible_labels(const EncodedTree& tree, const Transitions& transitions) {
  std::vector<int32_t> labels = tree.labels;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (tree.heads[i] == 0) {
      labels[i] = transitions.root_label;
    } else if (labels[i] < 0 || (labels[i] == transitions.root_label && transitions.labels > 1)) {
      labels[i] = transitions.root_label == 0 && transitions.labels > 1 ? 1 : 0;
    }
  }
  return labels;
}

NamedNumbers attachment_scores(const std::string& set, const SentenceStats& stats) {
  NamedNumbers scores;
  const std::vector<int64_t> sums = stats.sum();
  for (const char* score : {"uas", "uas_no_punct", "las"}) {
    scores[set + "." + score] = score_of_sums(score, stats.columns, set)(sums);
  }
  return scores;
}

/// In CoNLL-U, of the columns ID, FORM, HEAD and DEPREL.
std::string conllu(const std::vector<EncodedTree>& sentences, const std::vector<Configuration>& parsed,
                   const std::vector<std::string>& labels) {
  std::string text;
  for (size_t s = 0; s < sentences.size(); ++s) {
    for (int32_t word = 1; word <= sentences[s].size(); ++word) {
      text += fmt::format("{}\t{}\t_\t_\t_\t_\t{}\t{}\t_\t_\n", word, sentences[s].forms[static_cast<size_t>(word - 1)],
                          parsed[s].head(word), labels[static_cast<size_t>(parsed[s].label(word))]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

// --- features --------------------------------------------------------------------------------------------------------

int64_t feature_count(ParserFeatures features) {
  return features == ParserFeatures::kAll ? 2 * kWords + kChildren : 2 * kWords;
}

void add_features(ParserFeatures features, const Configuration& c, const EncodedTree& tree, const Treebank& treebank,
                  std::vector<int32_t>& tokens) {
  std::array<int32_t, kWords> words = {c.stack(3), c.stack(2), c.stack(1), c.buffer(1), c.buffer(2), c.buffer(3)};
  auto child = words.begin() + (kWords - kChildren);
  for (const int32_t parent : {c.stack(1), c.stack(2)}) {
    const int32_t left = c.left_child(parent, 1), right = c.right_child(parent, 1);
    for (const int32_t word : {left, right, c.left_child(parent, 2), c.right_child(parent, 2), c.left_child(left, 1),
                               c.right_child(right, 1)}) {
      *child++ = word;
    }
  }
  const auto add = [&](const std::vector<int32_t>& of_words, int32_t none) {
    for (const int32_t word : words) {
      tokens.push_back(word == Configuration::kNone ? none : of_words[static_cast<size_t>(word)]);
    }
  };
  add(tree.words, treebank.no_word);
  add(tree.tags, treebank.no_tag);
  if (features == ParserFeatures::kWordsAndTags) return;
  for (auto word = words.end() - kChildren; word != words.end(); ++word) {
    tokens.push_back(*word == Configuration::kNone ? treebank.no_label : treebank.first_label + c.label(*word));
  }
}

namespace {

// --- made-up batches -------------------------------------------------------------------------------------------------

constexpr int32_t kMadeUpWords = 16;  // of a sentence, about the mean of English treebanks
constexpr int32_t kMadeUpTags = 50, kMadeUpLabels = 40;

/// Ranks from 0 on, of which rank r is drawn with a probability in proportion to 1 / (r + 1), as words of a text are
/// (Zipf). The more often a word comes in a batch, the less work is its part of the first layer.
class Ranks {
 public:
  explicit Ranks(int64_t count) {
    for (int64_t r = 0; r < count; ++r) sums_.push_back((r > 0 ? sums_.back() : 0) + 1 / static_cast<double>(r + 1));
  }
  int32_t at(uint32_t bits) const {
    return static_cast<int32_t>(std::ranges::lower_bound(sums_, uniform_open(bits) * sums_.back()) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

/// The tree that transitions drawn at random make.
void draw_arcs(const Transitions& transitions, const RandomStream& stream, uint32_t number, EncodedTree& tree) {
  Configuration configuration(kMadeUpWords);
  for (uint32_t step = 0; !configuration.is_final(); ++step) {
    const uint32_t bits = stream.draw(step, 0, number, 0);
    const auto label = static_cast<int32_t>(1 + (bits >> 2) % (kMadeUpLabels - 1));  // not that of the root
    const bool shifts =
        configuration.legal() == Legal::kArcsOrShift ? (bits & 1) != 0 : configuration.legal() == Legal::kShift;
    const int32_t arc = configuration.legal() == Legal::kRootArc ? transitions.right(transitions.root_label)
                        : (bits & 2) != 0                        ? transitions.left(label)
                                                                 : transitions.right(label);
    configuration.apply(transitions, shifts ? transitions.shift() : arc);
  }
  for (int32_t word = 1; word <= kMadeUpWords; ++word) {
    tree.heads.push_back(configuration.head(word));
    tree.labels.push_back(configuration.label(word));
  }
}

std::shared_ptr<const Treebank> made_up_treebank(const TrainOptions& train, int64_t words, int64_t trees) {
  constexpr int32_t kSpecial = 3;  // NULL, ROOT and UNKNOWN
  auto data = std::make_shared<Treebank>();
  data->no_tag = kSpecial + static_cast<int32_t>(words);
  data->no_label = data->no_tag + kSpecial + kMadeUpTags;
  data->first_label = data->no_label + 1;
  data->labels.resize(kMadeUpLabels);
  data->tokens.resize(static_cast<size_t>(data->first_label + kMadeUpLabels));
  const Ranks ranks(words);
  const Transitions transitions = transitions_of(*data);
  const RandomStream of_words(train.seed_for_order(), "bench.words"), of_arcs(train.seed_for_order(), "bench.arcs");
  for (uint32_t number = 0; number < static_cast<uint32_t>(trees); ++number) {
    EncodedTree tree{.forms = {},
                     .words = {data->no_word + 1},
                     .tags = {data->no_tag + 1},
                     .heads = {},
                     .labels = {},
                     .is_word = std::vector<uint8_t>(kMadeUpWords, 1)};
    for (uint32_t i = 0; i < kMadeUpWords; ++i) {
      const int32_t rank = ranks.at(of_words.draw(i, 0, number, 0));
      tree.words.push_back(kSpecial + rank);
      tree.tags.push_back(data->no_tag + kSpecial + rank % kMadeUpTags);  // a word has one tag, as most words do
    }
    draw_arcs(transitions, of_arcs, number, tree);
    data->train.push_back(std::move(tree));
  }
  return data;
}

// --- settings and data -----------------------------------------------------------------------------------------------

int64_t example_count(const Treebank& data) { return treebank_counts(data, 0).at("train.examples"); }

class ParseKind final : public TaskKindOf<ParseOptions, ParseKind> {
 public:
  ParseKind() {
    meaning =
        "dependency parsing by an arc-standard transition system and a feed-forward network (Chen and Manning 2014); "
        "checkpoints are selected by the unlabelled attachment score of dev without punctuation";
  }
  void describe_own(SettingsVisitor& v) override {
    v.table("data", options.data);
    v.table("model", options.model);
    v.table_of("model", [&] {
      v.choice({.key = "features",
                .meaning = "what the network reads of a configuration: `all` 48, of 18 words their forms, tags and, of "
                           "the 12 that are children, arc labels; `words_tags` the 36 forms and tags"},
               options.features, kFeatureSets);
    });
    v.table_of("train", [&] {
      v.table_of("batch", [&] {
        v.integer({.key = "examples",
                   .meaning = "transitions in a batch; the last of a pass may have fewer",
                   .min = 1,
                   .max = 1e7},
                  options.batch_examples);
      });
    });
  }
  void set_defaults(TrainOptions& train) const override {
    train.epoch_updates.reset();
    train.max_epochs = 20;
    train.early_stop = 0;
    train.label_smoothing = 0;
    train.clip_norm = 0;
    train.schedule.kind = "nowarmup";
    train.schedule.lr = 1e-3;
    train.schedule.decay_factor = 1;
  }
  void check_consistent(const TrainOptions& train) const override {
    check_one_label_an_example(train);
    if (train.label_smoothing > 0 && options.model.softmax == ParserNetworkOptions::Softmax::kLegal) {
      fail(
          "train.label_smoothing = {} gives mass to illegal transitions, which model.softmax = \"legal\" excludes; set "
          "it to 0, or model.softmax = \"all\"",
          train.label_smoothing);
    }
    check_schedule_without_width(train, "parse");
  }
  DataFiles data_files() override { return engine::data_files(options.data); }
  DeclaredParameters model_parameters() const override { return declared_parameters(options.model); }
  TaskNumbers numbers() const override {
    const auto names = [](const std::string& set) {
      return std::vector<std::string>{set + ".uas", set + ".uas_no_punct", set + ".las", set + ".loss"};
    };
    return {.training = {},
            .dev = names("dev"),
            .final = names("test"),
            .selection = {.score = "dev.uas_no_punct"},
            .dev_loss = "dev.loss"};
  }
  std::optional<Size> size(const TrainOptions&) const override {
    const auto data = read_treebank(options.data, [](const std::string&) {});
    const ParserSizes sizes = sizes_of(*data, options.features);
    const int64_t examples = example_count(*data);
    return Size{.parameters = parameter_count(options.model, sizes),
                .saved_numbers = saved_numbers(options.model, sizes, std::min(options.batch_examples, examples)) +
                                 examples * (sizes.features + 2)};
  }
  int64_t pass_batches(const TrainOptions&) const override {
    const int64_t examples = example_count(*read_treebank(options.data, [](const std::string&) {}));
    return (examples + options.batch_examples - 1) / options.batch_examples;
  }
  std::string prepare_data(const TrainOptions&, const Say& say) const override {
    const auto data = read_treebank(options.data, say);
    return fmt::format(
        "{}: {} training trees, {} others that are not projective, {} dev, {} test trees; {} labels, vocabulary {}; "
        "nothing needs a cache",
        options.data.name, data->train.size(), data->left_out, data->dev.size(), data->test.size(), data->labels.size(),
        data->vocabulary_size());
  }
  Counts data_counts(const TrainOptions& train, const Say& say) const override {
    return treebank_counts(*read_treebank(options.data, say), pass_batches(train));
  }
  std::vector<std::string> data_count_names() const override { return names_of(treebank_counts({}, 0)); }
  std::unique_ptr<Task> make(const TrainOptions& train, const ExecutionOptions& execution,
                             const Say& say) const override {
    const auto data = read_treebank(options.data, say);
    auto task = std::make_unique<Parse>(options, train, execution, data);
    say(fmt::format("{} parameters, vocabulary {}, {} training examples of {} trees", task->parameters().count(),
                    data->vocabulary_size(), example_count(*data), data->train.size()));
    return task;
  }
  /// The one example of a batch of `sizes` is the number of its configurations. Each is of a sentence of its own, as
  /// most are in a batch of a shuffled treebank. `vocab_size`: the different words.
  MadeUpTask made_up_task(const TrainOptions& train, const ExecutionOptions& execution, int64_t vocab_size,
                          const std::filesystem::path& sizes) const override {
    const std::vector<int64_t> counts =
        column(sizes_in(sizes, {{{static_cast<int32_t>(options.batch_examples)}}}), 0, 0);
    const int64_t trees = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    auto task = std::make_unique<Parse>(options, train, execution, made_up_treebank(train, vocab_size, trees));
    std::vector<std::vector<int32_t>> batches = numbered(counts);
    const RandomStream places(train.seed_for_order(), "bench.places");
    for (int32_t& example : std::views::join(batches)) {
      constexpr int32_t kEach = 2 * kMadeUpWords;
      example = example * kEach + static_cast<int32_t>(places.draw(0, 0, static_cast<uint32_t>(example), 0) % kEach);
    }
    const int64_t count = task->train_on(std::move(batches));
    return {.task = std::move(task), .batches = count};
  }
};

}  // namespace

std::unique_ptr<TaskKind> parse_kind() { return std::make_unique<ParseKind>(); }

// --- training --------------------------------------------------------------------------------------------------------

Parse::Parse(const ParseOptions& options, const TrainOptions& train, const ExecutionOptions& execution,
             std::shared_ptr<const Treebank> treebank)
    : TaskOf(options, train, execution),
      treebank_(std::move(treebank)),
      transitions_(transitions_of(*treebank_)),
      model_(parameters_, options.model, sizes_of(*treebank_, options.features), legal_transitions(transitions_),
             train.seed_for_dropout()),
      training_(examples_of(treebank_->train)),
      dev_(examples_of(treebank_->dev)) {
  parameters_.allocate();
}

Parse::Examples Parse::examples_of(const std::vector<EncodedTree>& trees) const {
  Examples examples;
  for (const EncodedTree& tree : trees) {
    if (!is_projective(tree.heads)) continue;
    const std::vector<int32_t> labels = possible_labels(tree, transitions_);
    Configuration configuration(tree.size());
    while (!configuration.is_final()) {
      const int32_t transition = oracle(configuration, transitions_, tree.heads, labels);
      add_features(options_.features, configuration, tree, *treebank_, examples.tokens);
      examples.legal.push_back(static_cast<int32_t>(configuration.legal()));
      int32_t attached = Configuration::kNone;
      if (transition < transitions_.shift()) {
        attached = configuration.stack(transition < transitions_.labels ? 2 : 1);
      }
      const bool is_known = attached == Configuration::kNone ||
                            tree.labels[static_cast<size_t>(attached - 1)] == labels[static_cast<size_t>(attached - 1)];
      examples.transitions.push_back(is_known ? transition : -1);
      configuration.apply(transitions_, transition);
    }
  }
  return examples;
}

std::vector<std::vector<int32_t>> Parse::cut(int64_t pass) const {
  std::vector<int32_t> order = in_order(training_.size());
  shuffle(order, RandomStream(train_.seed_for_order(), "order"), static_cast<uint32_t>(pass), /*which=*/0);
  return cut_in_order(order, options_.batch_examples);
}

ReadyConfigurations Parse::ready(const Examples& examples, const std::vector<int32_t>& which) const {
  const auto features = feature_count(options_.features);
  std::vector<int32_t> tokens, legal, transitions;
  tokens.reserve(which.size() * static_cast<size_t>(features));
  for (const int32_t example : which) {
    const auto first = examples.tokens.begin() + example * features;
    tokens.insert(tokens.end(), first, first + features);
    legal.push_back(examples.legal[static_cast<size_t>(example)]);
    transitions.push_back(examples.transitions[static_cast<size_t>(example)]);
  }
  return model_.ready(std::move(tokens), std::move(legal), std::move(transitions), which);
}

ReadyConfigurations Parse::ready_examples(const std::vector<int32_t>& examples, uint32_t /*update*/) const {
  ReadyConfigurations batch = ready(training_, examples);
  batch.full = most_examples();
  return batch;
}

// --- evaluation ------------------------------------------------------------------------------------------------------

Selection Parse::selection() const { return ParseKind().numbers().selection; }

double Parse::loss_of(const Examples& examples) const {
  constexpr double kMaxLoss = 700;  // also where the parameters are not finite: JSON has finite numbers alone
  CrossEntropySums sums;
  for (const std::vector<int32_t>& batch : cut_in_order(in_order(examples.size()), kEvaluationExamples)) {
    throw_if_stopped();
    Tape tape(Tape::Kind::kForward, ops_of(execution_));
    sums += model_.loss({tape}, tape.save(ready(examples, batch)), /*label_smoothing=*/0);
  }
  const double mean = sums.nll / static_cast<double>(std::max<int64_t>(sums.tokens, 1));
  return mean < kMaxLoss ? mean : kMaxLoss;
}

std::vector<Configuration> Parse::parsed(const std::vector<EncodedTree>& sentences) const {
  std::vector<Configuration> all;
  for (const EncodedTree& sentence : sentences) all.emplace_back(sentence.size());
  const auto count = static_cast<size_t>(transitions_.count());
  for (size_t begin = 0; begin < all.size(); begin += kParsedTogether) {
    std::vector<size_t> open(std::min(kParsedTogether, all.size() - begin));
    std::iota(open.begin(), open.end(), begin);
    while (!open.empty()) {
      throw_if_stopped();
      std::vector<int32_t> tokens, legal;
      for (const size_t s : open) {
        add_features(options_.features, all[s], sentences[s], *treebank_, tokens);
        legal.push_back(static_cast<int32_t>(all[s].legal()));
      }
      const std::vector<int32_t> unknown(open.size(), -1);
      Tape tape(Tape::Kind::kForward, ops_of(execution_));
      const ReadyConfigurations& batch = tape.save(model_.ready(std::move(tokens), std::move(legal), unknown, unknown));
      const at::Tensor logits = model_.logits({tape}, batch).data().to(at::kFloat).cpu();
      const float* row = logits.const_data_ptr<float>();
      for (const size_t s : open) {
        int32_t best = -1;
        for (int32_t t = 0; t < transitions_.count(); ++t) {
          if (transitions_.is_legal(all[s].legal(), t) && (best < 0 || row[t] > row[best])) best = t;
        }
        all[s].apply(transitions_, best);
        row += count;
      }
      std::erase_if(open, [&](size_t s) { return all[s].is_final(); });
    }
  }
  return all;
}

SentenceStats attachment_stats(const std::vector<EncodedTree>& gold, const std::vector<Configuration>& parsed) {
  SentenceStats stats{
      .columns = {"correct_heads", "tokens", "correct_heads_no_punct", "tokens_no_punct", "correct_arcs"}};
  for (size_t s = 0; s < gold.size(); ++s) {
    std::vector<int64_t> row(stats.columns.size());
    for (size_t i = 0; i < gold[s].heads.size(); ++i) {
      const auto word = static_cast<int32_t>(i + 1);
      const bool right = parsed[s].head(word) == gold[s].heads[i];
      row[0] += right;
      row[1] += 1;
      row[2] += right && gold[s].is_word[i];
      row[3] += gold[s].is_word[i];
      row[4] += right && parsed[s].label(word) == gold[s].labels[i];
    }
    stats.rows.push_back(std::move(row));
  }
  return stats;
}

NamedNumbers Parse::evaluate() {
  NamedNumbers scores = attachment_scores("dev", attachment_stats(treebank_->dev, parsed(treebank_->dev)));
  scores["dev.loss"] = loss_of(dev_);
  return scores;
}

FinalScores Parse::final_scores() {
  FinalScores final;
  const auto add = [&](const std::string& set, const std::vector<EncodedTree>& sentences) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Configuration> trees = parsed(sentences);
    final.time = {.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                  .sentences = std::ssize(sentences)};
    const SentenceStats stats = attachment_stats(sentences, trees);
    final.files["outputs/" + set + ".conllu"] = conllu(sentences, trees, treebank_->labels);
    final.files["outputs/" + set + ".stats"] = stats_text(stats);
    return attachment_scores(set, stats);
  };
  add("dev", treebank_->dev);  // the scores of dev are known from the evaluation
  final.numbers = add("test", treebank_->test);
  final.numbers["test.loss"] = loss_of(examples_of(treebank_->test));
  return final;
}

}  // namespace tearless::engine
