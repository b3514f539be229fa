// The kind decode: the model of a trained run translates a set once more, with another search or a test set of its own.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/corpus.h"
#include "engine/data/shuffle.h"
#include "engine/derived/derived_kind.h"
#include "engine/derived/overlay.h"
#include "engine/task/translate.h"

namespace tearless::engine {
namespace {

/// Of a set: file systems take 255 bytes, and files are named after it, also while they are written.
constexpr size_t kMaxName = 200;

class DecodeKind final : public DerivedKindOf<DecodeKind> {
 public:
  DecodeKind() {
    meaning =
        "translates a set with the run's model, and scores it as training does, pairs of the training set also by "
        "their perplexities; settings that are unset are as in the run's [decode]";
  }

  void describe(SettingsVisitor& v) override { describe(v, DecodeOptions()); }
  void describe_beside(SettingsVisitor& v, const TaskKind& task) override { describe(v, options_beside(task)); }

  void check_consistent(const TaskKind& task, const DerivedKind* of) override {
    const auto* const translate = options_of<TranslateOptions>(task);
    if (!translate) {
      fail("derived.kind = \"decode\" is for runs of task = \"translate\", not of \"{}\"", task.name);
    }
    if (of) fail("derived.kind = \"decode\" needs a trained run; it cannot derive from another derived run");
    if (!is_plain_name(set_)) fail("derived.set = \"{}\" must be letters, digits, \"_\" and \"-\"", set_);
    if (set_.size() > kMaxName) {
      fail("derived.set = \"{}…\" has {} letters, too many for the names of its files; use {} at most",
           set_.substr(0, 20), set_.size(), kMaxName);
    }
    if (is_of_corpus() && !(source_.empty() && reference_.empty())) {
      fail("derived.source and derived.reference are for a test set of its own; derived.set = \"{}\" is the corpus'",
           set_);
    }
    if (!is_of_corpus() && source_.empty() && reference_.empty() && set_sha256_.empty()) {
      fail(
          "derived.set = \"{}\" is none of dev, test and train, and no files are named for it: a grid names them in "
          "[test.{}]",
          set_, set_);
    }
    const DecodeOptions options = options_beside(task);
    if (options.n_best > options.beam) {
      fail("derived.n_best = {} is above the beam of {}: a search has no more outputs than hypotheses", options.n_best,
           options.beam);
    }
    if (options.stop == SearchStop::kBatch && !options.kind().ends_batches) {
      fail(
          "derived.search = \"{}\" ends each sentence by itself, but the stop is \"batch\"; set derived.stop = "
          "\"sentence\", or derived.search = \"t2t\"",
          options.search);
    }
    const bool batches_are_in_an_id =
        translate->decode.stop == SearchStop::kBatch || decode_.has("derived.batch_tokens");
    if (options.stop == SearchStop::kBatch && !batches_are_in_an_id) {
      fail(
          "derived.stop = \"batch\" needs derived.batch_tokens: outputs depend on it, and decode.batch_tokens is not "
          "part of the run's id");
    }
  }

  std::vector<std::string> score_names(const TaskKind& task) const override {
    std::vector<std::string> names = {set_ + "." + bleu_name(*options_of<TranslateOptions>(task))};
    if (set_ == kTrainingSample) std::ranges::copy(perplexity_names(set_), std::back_inserter(names));
    return names;
  }

  DataFiles data_files() override {
    DataFiles files{.what = named("test set", set_)};
    if (is_of_corpus()) return files;
    files.needs = "a test set needs both source and reference";
    files.sets = {own_set()};
    return files;
  }

  Reads reads() const override { return Reads::kModel; }

  Derivation derive(const DerivationSource& from) override {
    TranslateOptions options = *options_of<TranslateOptions>(from.task);
    decode_.apply(options.decode);
    data_files().check();
    Translate task(options, from.train, from.execution, prepare(options.data, options.text, from.say));
    const std::pair<std::string, std::string> model = read_model_of(from, task);

    Derivation derived;
    std::vector<std::string> references;
    if (set_ == kTrainingSample) {
      auto [tokens, lines] = drawn_pairs(options, task.prepared().train);
      references = reference_lines(std::move(lines), options.text.kind);
      derived.results = task.scored_translations(set_, tokens, references);
      derived.results.numbers.merge(task.perplexities(set_, tokens));
    } else if (is_of_corpus()) {
      const Prepared& corpus = task.prepared();
      references = set_ == "dev" ? corpus.dev_reference : corpus.test_reference;
      derived.results = task.scored_translations(set_, set_ == "dev" ? corpus.dev : corpus.test, references);
    } else {
      ParallelText text = read_parallel(own_set());
      refuse_subword_marks(options.text.kind, text.target, reference_);
      references = reference_lines(std::move(text.target), options.text.kind);
      derived.results = task.scored_translations(
          set_, encode_file(task.prepared(), options.text.kind, text.source, source_), references);
    }
    derived.inputs = {model, {"references", lines_sha256(references)}};
    return derived;
  }

  std::string set() const override { return set_; }
  std::string reference() const override { return reference_; }

 private:
  void describe(SettingsVisitor& v, DecodeOptions search) {
    v.word({.key = "set", .meaning = "dev, test, train, or the name of a test set of its own"}, set_);
    const std::string_view unless_drawn = set_ == kTrainingSample ? "" : "derived.set";
    v.integer({.key = "sample",
               .meaning = "of train: at most so many pairs, drawn without replacement; 0: all",
               .min = 0,
               .neutral = 0,
               .switched_off_by = unless_drawn},
              sample_);
    v.integer({.key = "sample_seed",
               .meaning = "seed of this draw, which does not depend on the run's",
               .min = 0,
               .max = std::numeric_limits<uint32_t>::max(),
               .neutral = 1,
               .switched_off_by = sample_ == 0 ? "derived.sample" : unless_drawn},
              sample_seed_);
    v.word(path_field("source", "file of that test set's source sentences"), source_);
    v.word(path_field("reference", "file of its references, encoded as the corpus is"), reference_);
    v.word(checksum_field("set_sha256", "checksum of both files, filled in by check"), set_sha256_);
    decode_.describe(v, std::move(search));
  }
  /// The search of a trained run with these settings in place of its own.
  DecodeOptions options_beside(const TaskKind& task) {
    DecodeOptions options = options_of<TranslateOptions>(task)->decode;
    decode_.apply(options);
    return options;
  }

  /// Pairs of the training set in the order of its file: their tokens, and the lines of their target side.
  std::pair<ParallelTokens, std::vector<std::string>> drawn_pairs(TranslateOptions& options,
                                                                  const ParallelTokens& train) const {
    SentenceIds pairs = in_order(train.size());
    if (sample_ > 0 && sample_ < std::ssize(pairs)) {
      shuffle(pairs, RandomStream(static_cast<uint32_t>(sample_seed_), "training sample"), /*pass=*/0, /*which=*/0);
      pairs.resize(static_cast<size_t>(sample_));
      std::ranges::sort(pairs);
    }
    const DataFiles files = engine::data_files(options.data);
    files.require();
    const ParallelText text = training_pairs(read_parallel(files.sets[0]), options.text.max_words, options.data);
    std::vector<std::string> lines;
    for (const int32_t pair : pairs) lines.push_back(text.target.at(static_cast<size_t>(pair)));
    return {train.chosen(pairs), std::move(lines)};
  }

  bool is_of_corpus() const { return set_ == "dev" || set_ == "test" || set_ == kTrainingSample; }
  DataSet own_set() { return {{{"derived.source", &source_}, {"derived.reference", &reference_}}, &set_sha256_}; }

  std::string set_ = "test", source_, reference_, set_sha256_;
  int64_t sample_ = 0, sample_seed_ = 1;
  Overlay<DecodeOptions> decode_;
};

}  // namespace

std::unique_ptr<DerivedKind> decode_derived() { return std::make_unique<DecodeKind>(); }

}  // namespace tearless::engine
