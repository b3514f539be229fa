// The kind score: a text metric (engine/score/metric.h) of hypotheses that a run has left. Decodes nothing.
#include "base/error.h"
#include "base/words.h"
#include "engine/data/corpus.h"
#include "engine/data/text_lines.h"
#include "engine/derived/derived_kind.h"
#include "engine/score/detokenise.h"
#include "engine/score/metric.h"
#include "engine/task/translate.h"

namespace tearless::engine {
namespace {

constexpr const char* kNotDetokenised = "none";

/// The choices of the setting.
std::vector<std::string_view> detokenised_languages() {
  std::vector<std::string_view> choices = {kNotDetokenised};
  choices.insert(choices.end(), kDetokenisedLanguages.begin(), kDetokenisedLanguages.end());
  return choices;
}

/// A file of one setting, derived.KEY, with its checksum in derived.KEY_sha256.
class OwnFile {
 public:
  OwnFile(const char* key, const char* sha256_key, const char* dotted_key)
      : key_(key), sha256_key_(sha256_key), dotted_key_(dotted_key) {}

  void describe(SettingsVisitor& v, const char* meaning) {
    v.word(path_field(key_, meaning), path);
    v.word(checksum_field(sha256_key_, "its checksum, filled in by check"), sha256_);
  }
  bool is_given() const { return !path.empty() || !sha256_.empty(); }
  DataSet set() { return {{{dotted_key_, &path}}, &sha256_}; }
  std::string read() { return read_files(set()).front(); }

  std::string path;

 private:
  const char *key_, *sha256_key_, *dotted_key_;
  std::string sha256_;
};

class ScoreKind final : public DerivedKindOf<ScoreKind> {
 public:
  ScoreKind() { meaning = "scores the hypotheses that the run has left, by a text metric; decodes nothing"; }

  void describe(SettingsVisitor& v) override {
    static const std::vector<std::string_view> choices = text_metrics().names();
    static const std::vector<std::string_view> languages = detokenised_languages();
    v.word({.key = "set", .meaning = "dev or test; of a decoding, the set that it has decoded"}, set_);
    reference_.describe(v, "file of the references of a decoding's own test set");
    v.word({.key = "detokenise",
            .meaning = "language by whose rules the words of hypotheses are joined to raw text before they are scored, "
                       "as Moses' detokeniser does; those of references too, unless raw_reference names raw ones; "
                       "`general`: the rules that all languages share; `none`: they are scored as they are",
            .choices = languages,
            .neutral = kNotDetokenised},
           detokenise_);
    raw_reference_.describe(v,
                            "file of the references as they were before any tokenisation, a line for each sentence of "
                            "the set, in place of its references");
    lines_.describe(v,
                    "file of line numbers, the first is 1, one a line and increasing: only these sentences of the set "
                    "are scored");
    v.word({.key = "metric", .meaning = "a text metric, as of tearless-engine score --metric", .choices = choices},
           metric_);
    metrics_.find(metric_)->describe(v);
  }

  void check_consistent(const TaskKind& task, const DerivedKind* of) override {
    if (!options_of<TranslateOptions>(task)) {
      fail("derived.kind = \"score\" is for runs of task = \"translate\", not of \"{}\"", task.name);
    }
    if (of && of->name != "decode") fail("derived.kind = \"score\" scores hypotheses, and a {} has none", of->name);
    if (set_.empty()) set_ = of ? of->set() : "test";
    if (of && set_ != of->set()) {
      fail("derived.set = \"{}\", but the decoding has hypotheses of {} alone", set_, of->set());
    }
    if (set_ == kTrainingSample) {
      fail("derived.set = \"{}\": pairs of the training set are scored by the decoding itself", set_);
    }
    if (!of && !is_of_corpus()) fail("derived.set = \"{}\", but a trained run has hypotheses of dev and test", set_);
    if (reference_.path.empty() && of) reference_.path = of->reference();
  }

  std::vector<std::string> score_names(const TaskKind&) const override { return {set_ + "." + metric_}; }

  DataFiles data_files() override {
    DataFiles files{.what = named("test set", set_), .needs = "the set is scored by this file"};
    if (raw_reference_.is_given()) {
      files.sets.push_back(raw_reference_.set());
    } else if (!is_of_corpus()) {
      files.sets.push_back(reference_.set());
    }
    if (lines_.is_given()) files.sets.push_back(lines_.set());
    return files;
  }

  Reads reads() const override { return Reads::kOutputs; }

  Derivation derive(const DerivationSource& from) override {
    const TranslateOptions& options = *options_of<TranslateOptions>(from.task);
    data_files().check();
    const std::string file = "outputs/" + set_ + ".hyp", text = read_result(from.of, file);
    std::vector<std::string> references = references_of(options, from.say);
    const std::string read_digest = lines_sha256(references);
    std::vector<std::string_view> hypotheses = split_lines(text);
    if (hypotheses.size() != references.size() || hypotheses.empty()) {
      fail("{} has {} lines, {} {}: both must hold the same sentences, one a line", (from.of.root() / file).string(),
           hypotheses.size(), raw_reference_.is_given() ? raw_reference_.path : "its references", references.size());
    }
    std::vector<std::string> raw;
    if (detokenise_ != kNotDetokenised) {
      raw = detokenised(hypotheses, detokenise_);
      hypotheses.assign(raw.begin(), raw.end());
      if (!raw_reference_.is_given()) references = detokenised(references, detokenise_);
    }
    if (lines_.is_given()) keep_lines(hypotheses, references);
    const TextMetric& metric = metrics_.at(metric_);
    const SentenceStats stats = sentence_stats(metric, hypotheses, {references.begin(), references.end()});
    const TextScore score = metric.score(stats.sum());
    from.say(score.line);
    const std::filesystem::path read = from.of.root().filename() / file;
    return {.results = {.numbers = {{score_names(from.task).front(), score.value}},
                        .files = {{"outputs/" + set_ + ".stats", stats_text(stats)}}},
            .inputs = {{read.string(), read_done(from.of)->files.at(file)}, {"references", read_digest}}};
  }

 private:
  /// What hypotheses are compared with, one line for each, before detokenisation.
  std::vector<std::string> references_of(const TranslateOptions& options, const Say& say) {
    if (raw_reference_.is_given()) return sentences_of(raw_reference_.read(), raw_reference_.path);
    if (!is_of_corpus()) {
      return reference_lines(sentences_of(reference_.read(), reference_.path), options.text.kind);
    }
    Prepared corpus = prepare(options.data, options.text, say);
    return std::move(set_ == "dev" ? corpus.dev_reference : corpus.test_reference);
  }

  void keep_lines(std::vector<std::string_view>& hypotheses, std::vector<std::string>& references) {
    std::vector<std::string_view> ours;
    std::vector<std::string> theirs;
    for (const size_t line : line_numbers(lines_.read(), lines_.path, hypotheses.size())) {
      ours.push_back(hypotheses[line]);
      theirs.push_back(std::move(references[line]));
    }
    hypotheses = std::move(ours);
    references = std::move(theirs);
  }

  bool is_of_corpus() const { return set_ == "dev" || set_ == "test"; }

  std::string set_, metric_ = "multi_bleu", detokenise_ = kNotDetokenised;
  OwnFile reference_{"reference", "reference_sha256", "derived.reference"};
  OwnFile raw_reference_{"raw_reference", "raw_reference_sha256", "derived.raw_reference"};
  OwnFile lines_{"lines", "lines_sha256", "derived.lines"};
  Kinds<TextMetric> metrics_ = text_metrics();
};

}  // namespace

std::unique_ptr<DerivedKind> score_derived() { return std::make_unique<ScoreKind>(); }

}  // namespace tearless::engine
