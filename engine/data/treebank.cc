#include "engine/data/treebank.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/by_count.h"
#include "engine/data/text_encoding.h"
#include "engine/ops/cache.h"

namespace tearless::engine {
namespace {

constexpr auto kTagColumns = std::to_array<std::string_view>({"fine", "coarse"});
constexpr auto kArcLabels = std::to_array<std::string_view>({"main", "full", "none"});
constexpr const char* kNoTag = "_";  // CoNLL-U: of a column that is not annotated

/// Numbers of the texts of one kind: `first` that of the first text.
struct Numbers {
  std::unordered_map<std::string, int32_t> of;
  int32_t unknown = 0;

  int32_t at(const std::string& text) const {
    const auto found = of.find(text);
    return found == of.end() ? unknown : found->second;
  }
};

std::string label_of(const std::string& label, ArcLabels labels) {
  if (labels == ArcLabels::kNone) return "arc";
  return labels == ArcLabels::kMain ? label.substr(0, label.find(':')) : label;
}

/// The label of the arcs from ROOT. The transition system tells them from others by it, unless all arcs have the same.
std::string root_label_of(const std::vector<DependencyTree>& trees, const std::string& file) {
  std::set<std::string> of_roots, of_others;
  for (const DependencyTree& tree : trees) {
    for (size_t i = 0; i < tree.heads.size(); ++i) (tree.heads[i] == 0 ? of_roots : of_others).insert(tree.labels[i]);
  }
  const std::string& label = *of_roots.begin();
  if (of_roots.size() > 1) {
    fail(
        "{}: the words below the root have several labels, such as \"{}\" and \"{}\"; give them one, or set "
        "data.labels = \"none\"",
        file, label, *std::next(of_roots.begin()));
  }
  if (of_others.contains(label) && of_others.size() > 1) {
    fail(
        "{}: \"{}\", the label of the words below the root, is also that of others; give those another, or set "
        "data.labels = \"none\"",
        file, label);
  }
  return label;
}

/// Throws UserError if these trees have no tags in the column, or tags by which their punctuation is not told: it would
/// count as words.
void require_tags(const std::vector<DependencyTree>& trees, const std::string& file, TagColumn column) {
  bool has_tag = false, tells_punctuation = false, has_punct = false;
  for (const DependencyTree& tree : trees) {
    has_punct |= tree.has_punct;
    for (const std::string& tag : tree.tags) {
      has_tag |= tag != kNoTag;
      tells_punctuation |= is_punctuation(tag);
    }
  }
  if (!has_tag) {
    fail("{}: every tag is \"{}\", so the column is not annotated; set data.tags = \"{}\"", file, kNoTag,
         kTagColumns[column == TagColumn::kFine]);
  }
  if (has_punct && !tells_punctuation) {
    fail(
        "{}: words are PUNCT in the fourth column, but the fifth has none of the tags that tell punctuation (`` '' , . "
        ": PUNCT), so that it would count as words; set data.tags = \"coarse\"",
        file);
  }
}

class Encoder {
 public:
  /// Numbers what `train` has.
  Encoder(const std::vector<DependencyTree>& train, const TreebankOptions& data, Treebank& out)
      : lower_case_(data.lower_case), out_(out) {
    std::map<std::string, int64_t> words, tags, labels;
    for (const DependencyTree& tree : train) {
      for (const std::string& form : tree.forms) ++words[word_of(form)];
      for (const std::string& tag : tree.tags) ++tags[tag];
      for (const std::string& label : tree.labels) ++labels[label];
    }
    words_ = add("word", by_count(words, data.min_count), out.no_word);
    if (words_.of.empty()) {
      fail("data.min_count = {} leaves no word: every word of the training set is rarer", data.min_count);
    }
    tags_ = add("tag", by_count(tags, 1), out.no_tag);
    out.labels = by_count(labels, 1);
    out.no_label = static_cast<int32_t>(out.tokens.size());
    out.tokens.emplace_back("<no label>");
    out.first_label = static_cast<int32_t>(out.tokens.size());
    out.tokens.insert(out.tokens.end(), out.labels.begin(), out.labels.end());
    for (size_t i = 0; i < out.labels.size(); ++i) labels_.of.emplace(out.labels[i], static_cast<int32_t>(i));
    labels_.unknown = -1;
    out.root_label = labels_.at(root_label_of(train, data.train));
  }

  EncodedTree encode(const DependencyTree& tree) const {
    EncodedTree encoded;
    encoded.words = {out_.no_word + 1};
    encoded.tags = {out_.no_tag + 1};
    encoded.heads = tree.heads;
    for (const std::string& form : tree.forms) encoded.words.push_back(words_.at(word_of(form)));
    for (const std::string& tag : tree.tags) {
      encoded.tags.push_back(tags_.at(tag));
      encoded.is_word.push_back(!is_punctuation(tag));
    }
    for (const std::string& label : tree.labels) encoded.labels.push_back(labels_.at(label));
    return encoded;
  }

 private:
  std::string word_of(const std::string& form) const { return lower_case_ ? lower_cased(form) : form; }

  /// NULL, ROOT and UNKNOWN of a kind, then its texts.
  Numbers add(const std::string& kind, std::vector<std::string> texts, int32_t& none) {
    none = static_cast<int32_t>(out_.tokens.size());
    for (const char* special : {"no", "root", "unknown"}) out_.tokens.push_back(fmt::format("<{} {}>", special, kind));
    Numbers numbers{.of = {}, .unknown = none + 2};
    for (std::string& text : texts) {
      numbers.of.emplace(text, static_cast<int32_t>(out_.tokens.size()));
      out_.tokens.push_back(std::move(text));
    }
    return numbers;
  }

  bool lower_case_;
  Treebank& out_;
  Numbers words_, tags_, labels_;
};

std::vector<DependencyTree> read_set(const DataSet& set, const TreebankOptions& data) {
  std::vector<DependencyTree> trees = read_trees(read_files(set).front(), set.files().front(), data.tags);
  require_tags(trees, set.files().front(), data.tags);
  for (DependencyTree& tree : trees) {
    for (std::string& label : tree.labels) label = label_of(label, data.labels);
  }
  return trees;
}

Treebank encoded(const TreebankOptions& data, const DataFiles& files) {
  Treebank out;
  std::vector<DependencyTree> train = read_set(files.sets[0], data);
  out.left_out =
      static_cast<int64_t>(std::erase_if(train, [](const auto& tree) { return !is_projective(tree.heads); }));
  if (train.empty()) fail("{}: no tree can be trained on: none is projective", data.train);
  const Encoder encoder(train, data, out);
  for (const DependencyTree& tree : train) out.train.push_back(encoder.encode(tree));
  for (const auto& [set, to] : {std::pair(&files.sets[1], &out.dev), {&files.sets[2], &out.test}}) {
    for (DependencyTree& tree : read_set(*set, data)) {
      to->push_back(encoder.encode(tree));
      to->back().forms = std::move(tree.forms);
    }
  }
  return out;
}

}  // namespace

void describe(SettingsVisitor& v, TreebankOptions& o) {
  const bool has_checksums = !o.train_sha256.empty() && !o.dev_sha256.empty() && !o.test_sha256.empty();
  v.word(name_field("name of the treebank, for messages", has_checksums), o.name);
  v.word(path_field("how_to_get", "sentence shown when a file is missing"), o.how_to_get);
  v.word(path_field("train", "training trees: a file in CoNLL-X or CoNLL-U, relative to the file that names it"),
         o.train);
  v.word(path_field("dev", "development trees, likewise"), o.dev);
  v.word(path_field("test", "test trees, likewise"), o.test);
  v.choice({.key = "tags",
            .meaning =
                "parts of speech: of the fifth column (`fine`: POSTAG, XPOS) or the fourth (`coarse`: CPOSTAG, UPOS); "
                "punctuation is what has a Penn Treebank tag of quotation mark, comma, full stop or colon, or PUNCT"},
           o.tags, kTagColumns);
  v.choice(
      {.key = "labels",
       .meaning = "labels of arcs: up to a colon (`main`: \"nsubj:pass\" is \"nsubj\"), as they are (`full`), or one "
                  "for all (`none`), with three transitions"},
      o.labels, kArcLabels);
  v.flag({.key = "lower_case",
          .meaning = "replace the capital letters A–Z, À–Þ, Š, Œ, Ž and Ÿ of words by small ones",
          .neutral = false},
         o.lower_case);
  v.integer({.key = "min_count",
             .meaning = "words that occur less often than this in the training set are UNKNOWN; 1 keeps all",
             .min = 1,
             .max = 1e9,
             .neutral = 1},
            o.min_count);
  v.word(checksum_field("train_sha256", "checksum of the training file, filled in by check"), o.train_sha256);
  v.word(checksum_field("dev_sha256", "checksum of the development file, filled in by check"), o.dev_sha256);
  v.word(checksum_field("test_sha256", "checksum of the test file, filled in by check"), o.test_sha256);
}

DataFiles data_files(TreebankOptions& data) {
  return {.what = named("treebank", data.name),
          .how_to_get = data.how_to_get,
          .needs = "[data] needs train, dev and test, a file of trees each",
          .sets = {{{{"data.train", &data.train}}, &data.train_sha256},
                   {{{"data.dev", &data.dev}}, &data.dev_sha256},
                   {{{"data.test", &data.test}}, &data.test_sha256}},
          .expected = "a file of trees in CoNLL-X or CoNLL-U"};
}

std::shared_ptr<const Treebank> read_treebank(TreebankOptions data, const Say& say) {
  const DataFiles files = data_files(data);
  files.check();
  const std::string key = canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { v.table("data", data); });
  static Cache<std::string, std::shared_ptr<const Treebank>> known(/*entries=*/4);  // tens of MB each
  return known.get(key, [&] {
    files.require();
    auto treebank = std::make_shared<const Treebank>(encoded(data, files));
    say(fmt::format("read {}: {} of {} training trees (projective ones), {} dev, {} test; {} tokens, {} labels",
                    data.name.empty() ? "the treebank" : data.name, treebank->train.size(),
                    std::ssize(treebank->train) + treebank->left_out, treebank->dev.size(), treebank->test.size(),
                    treebank->tokens.size(), treebank->labels.size()));
    return treebank;
  });
}

bool is_punctuation(std::string_view tag) {
  return tag == "``" || tag == "''" || tag == "." || tag == "," || tag == ":" || tag == "PUNCT";
}

}  // namespace tearless::engine
