// The kind score: a text metric (engine/score/metric.h) of hypotheses that a run has left. Decodes nothing.
#include "base/error.h"
#include "base/words.h"
#include "engine/data/corpus.h"
#include "engine/derived/derived_kind.h"
#include "engine/score/metric.h"
#include "engine/task/translate.h"

namespace tearless::engine {
namespace {

class ScoreKind final : public DerivedKindOf<ScoreKind> {
 public:
  ScoreKind() { meaning = "scores the hypotheses that the run has left, by a text metric; decodes nothing"; }

  void describe(SettingsVisitor& v) override {
    static const std::vector<std::string_view> choices = text_metrics().names();
    v.word({.key = "set", .meaning = "dev or test; of a decoding, the set that it has decoded"}, set_);
    v.word(path_field("reference", "file of the references of a decoding's own test set"), reference_);
    v.word(checksum_field("reference_sha256", "its checksum, filled in by check"), reference_sha256_);
    v.word({.key = "metric", .meaning = "a text metric, as of tearless-engine score --metric", .choices = choices},
           metric_);
    metrics_.find(metric_)->describe(v);
  }

  void check_consistent(const TaskKind& task, const DerivedKind* of) override {
    if (!dynamic_cast<const TranslateKind*>(&task)) {
      fail("derived.kind = \"score\" is for runs of task = \"translate\", not of \"{}\"", task.name);
    }
    if (of && of->name != "decode") fail("derived.kind = \"score\" scores hypotheses, and a {} has none", of->name);
    if (set_.empty()) set_ = of ? of->set() : "test";
    if (of && set_ != of->set()) {
      fail("derived.set = \"{}\", but the decoding has hypotheses of {} alone", set_, of->set());
    }
    if (!of && !is_of_corpus()) fail("derived.set = \"{}\", but a trained run has hypotheses of dev and test", set_);
    if (reference_.empty() && of) reference_ = of->reference();
  }

  std::vector<std::string> score_names(const TaskKind&) const override { return {set_ + "." + metric_}; }

  DataFiles data_files() override {
    DataFiles files{.what = named("test set", set_)};
    if (is_of_corpus()) return files;
    files.needs = "it is scored against this file";
    files.sets = {own_reference()};
    return files;
  }

  Reads reads() const override { return Reads::kOutputs; }

  Derivation derive(const DerivationSource& from) override {
    const TranslateOptions& options = dynamic_cast<TranslateKind&>(from.task).options;
    data_files().check();
    const std::string file = "outputs/" + set_ + ".hyp", text = read_result(from.of, file);
    std::vector<std::string> references;
    if (is_of_corpus()) {
      Prepared corpus = prepare(options.data, options.text, from.say);
      references = std::move(set_ == "dev" ? corpus.dev_reference : corpus.test_reference);
    } else {
      references = reference_lines(sentences_of(read_files(own_reference()).front(), reference_), options.text.kind);
    }
    const std::vector<std::string_view> hypotheses = split_lines(text);
    if (hypotheses.size() != references.size() || hypotheses.empty()) {
      fail("{} has {} lines, its references {}: both must hold the same sentences, one a line",
           (from.of.root() / file).string(), hypotheses.size(), references.size());
    }
    const TextMetric& metric = metrics_.at(metric_);
    const SentenceStats stats = sentence_stats(metric, hypotheses, {references.begin(), references.end()});
    const TextScore score = metric.score(stats.sum());
    from.say(score.line);
    const std::filesystem::path read = from.of.root().filename() / file;
    return {.results = {.numbers = {{score_names(from.task).front(), score.value}},
                        .files = {{"outputs/" + set_ + ".stats", stats_text(stats)}}},
            .inputs = {{read.string(), read_done(from.of)->files.at(file)}, {"references", lines_sha256(references)}}};
  }

 private:
  bool is_of_corpus() const { return set_ == "dev" || set_ == "test"; }
  DataSet own_reference() { return {{{"derived.reference", &reference_}}, &reference_sha256_}; }

  std::string set_, reference_, reference_sha256_, metric_ = "multi_bleu";
  Kinds<TextMetric> metrics_ = text_metrics();
};

}  // namespace

std::unique_ptr<DerivedKind> score_derived() { return std::make_unique<ScoreKind>(); }

}  // namespace tearless::engine
