// The kind decode: the model of a trained run translates a set once more, with another search or a test
// set of its own.
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "engine/data/corpus.h"
#include "engine/derived/derived_kind.h"
#include "engine/task/translate.h"
#include "engine/train/model_file.h"

namespace tearless::engine {
namespace {

class DecodeKind final : public DerivedKindOf<DecodeKind> {
 public:
  DecodeKind() { meaning = "translates a set with the run's model, and scores it as training does"; }

  void describe(SettingsVisitor& v) override {
    v.word({.key = "set", .meaning = "dev, test, or the name of a test set of its own"}, set_);
    v.word(path_field("source", "file of that test set's source sentences"), source_);
    v.word(path_field("reference", "file of its references, encoded as the corpus is"), reference_);
    v.word(checksum_field("set_sha256", "checksum of both files, filled in by check"), set_sha256_);
    v.optional_integer({.key = "beam", .meaning = "beam size; unset: decode.beam", .min = 1, .max = 64}, beam_);
    v.optional_number(
        {.key = "alpha", .meaning = "length penalty; unset: decode.alpha", .min = 0, .max = 10, .applies = beam_ != 1},
        alpha_);
    v.optional_integer({.key = "max_extra",
                        .meaning = "most tokens beyond the source's; unset: decode.max_extra",
                        .min = 1,
                        .max = 10000},
                       max_extra_);
  }

  void check_consistent(const TaskKind& task, const DerivedKind* of) override {
    if (!dynamic_cast<const TranslateKind*>(&task)) {
      fail("derived.kind = \"decode\" is for runs of task = \"translate\", not of \"{}\"", task.name);
    }
    if (of) fail("derived.kind = \"decode\" needs a trained run; it cannot derive from another derived run");
    if (!is_plain_name(set_)) fail("derived.set = \"{}\" must be letters, digits, \"_\" and \"-\"", set_);
    if (is_of_corpus() && !(source_.empty() && reference_.empty())) {
      fail("derived.source and derived.reference are for a test set of its own; derived.set = \"{}\" is the corpus'",
           set_);
    }
    if (!is_of_corpus() && source_.empty() && reference_.empty() && set_sha256_.empty()) {
      fail(
          "derived.set = \"{}\" is neither dev nor test, and no files are named for it: a grid names them in [test.{}]",
          set_, set_);
    }
  }

  DataFiles data_files() override {
    DataFiles files{.what = named("test set", set_)};
    if (is_of_corpus()) return files;
    files.needs = "a test set needs both source and reference";
    files.sets = {own_set()};
    return files;
  }

  bool needs_model() const override { return true; }

  Derivation derive(const DerivationSource& from) override {
    TranslateOptions options = dynamic_cast<TranslateKind&>(from.task).options;
    options.decode.beam = beam_.value_or(options.decode.beam);
    options.decode.alpha = alpha_.value_or(options.decode.alpha);
    options.decode.max_extra = max_extra_.value_or(options.decode.max_extra);
    data_files().check();
    Translate task(options, from.train, from.execution, prepare(options.data, options.text, from.say));
    const std::filesystem::path model = read_finished_model(from.of, from.train, task);

    Derivation derived;
    std::vector<std::string> references;
    if (is_of_corpus()) {
      const Prepared& corpus = task.prepared();
      references = set_ == "dev" ? corpus.dev_reference : corpus.test_reference;
      derived.results = task.scored_translations(set_, set_ == "dev" ? corpus.dev : corpus.test, references);
    } else {
      ParallelText text = read_parallel(own_set());
      references = reference_lines(std::move(text.target), options.text.kind);
      derived.results = task.scored_translations(set_, task.prepared().encode_source(text.source), references);
    }
    derived.inputs = {{model.lexically_relative(from.of.root().parent_path()).string(), sha256_of_file(model)},
                      {"references", lines_sha256(references)}};
    return derived;
  }

  const std::string& set() const override { return set_; }
  const std::string& reference() const override { return reference_; }

 private:
  bool is_of_corpus() const { return set_ == "dev" || set_ == "test"; }
  DataSet own_set() { return {{{"derived.source", &source_}, {"derived.reference", &reference_}}, &set_sha256_}; }

  std::string set_ = "test", source_, reference_, set_sha256_;
  std::optional<int64_t> beam_, max_extra_;
  std::optional<double> alpha_;
};

}  // namespace

std::unique_ptr<DerivedKind> decode_derived() { return std::make_unique<DecodeKind>(); }

}  // namespace tearless::engine
