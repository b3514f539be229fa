#include "engine/data/labelled_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "engine/data/shuffle.h"
#include "engine/data/text_lines.h"

namespace tearless::engine {
namespace {

/// The label at the start of `line`, which loses it and the space after it.
int32_t take_label(std::string_view& line, const std::string& location, size_t classes) {
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  int64_t label = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), label);
  if (error == std::errc::invalid_argument || stop != word.data() + word.size()) {
    fail("{}: the label \"{}\" is not an integer; a line is a label, a space and the text", location, printable(word));
  }
  if (error != std::errc() || label < 0 || label >= static_cast<int64_t>(classes)) {
    fail("{}: the label {} is out of range; data.classes names {} classes, so labels are 0 to {}", location, word,
         classes, classes - 1);
  }
  return static_cast<int32_t>(label);
}

void require_words(std::string_view line, const std::string& location) {
  if (split_words(line).empty()) fail("{}: there is no text; remove the line, or write the sentence there", location);
}

/// Of dev and test, whose sentences are all used.
void refuse_overlong(std::string_view line, const std::string& location) {
  const size_t words = split_words(line).size();
  if (words > kMaxEvaluatedTokens) {
    fail("{} has {} words, and a sentence of dev or test may have {}; {}", location, words, kMaxEvaluatedTokens,
         kOverlongAdvice);
  }
}

/// The sentences of a file of labelled lines.
LabelledText labelled_lines(const std::string& bytes, const std::string& file, TextEncoding encoding, size_t classes,
                            bool in_training) {
  LabelledText set;
  for (const std::string_view raw : text_lines(bytes)) {
    const std::string location = fmt::format("{}:{}", file, set.text.size() + 1);
    const std::string line = to_utf8(raw, encoding, location);
    std::string_view rest = line;
    set.label.push_back(take_label(rest, location, classes));
    in_training ? require_words(rest, location) : refuse_overlong(rest, location);
    set.text.emplace_back(rest);
  }
  if (set.text.empty()) fail("{} is empty: put one sentence a line into it, after its label and a space", file);
  return set;
}

LabelledSets read_labelled_lines(const std::vector<DataSet>& sets, TextEncoding encoding,
                                 const std::vector<std::string>& classes) {
  const auto read = [&](const DataSet& set, bool in_training) {
    return labelled_lines(read_files(set).front(), set.files().front(), encoding, classes.size(), in_training);
  };
  return {.train = read(sets[0], true), .dev = read(sets[1], false), .test = read(sets[2], false)};
}

/// The sentences of all class files, and where each of them is.
struct ClassFiles {
  LabelledText sentences;
  std::vector<std::string> files;
  std::vector<size_t> first;  // the index of each file's first sentence

  std::string location(int32_t sentence) const {
    const auto file = static_cast<size_t>(sentences.label[static_cast<size_t>(sentence)]);
    return fmt::format("{}:{}", files[file], static_cast<size_t>(sentence) - first[file] + 1);
  }
};

ClassFiles read_class_files(const DataSet& set, TextEncoding encoding, const std::vector<std::string>& classes) {
  ClassFiles all{.sentences = {}, .files = set.files(), .first = {}};
  const std::vector<std::string> contents = read_files(set);
  for (size_t i = 0; i < contents.size(); ++i) {
    all.first.push_back(all.sentences.text.size());
    const std::vector<std::string_view> lines = text_lines(contents[i]);
    if (lines.empty()) fail("{} is empty: the class {} has no sentence", all.files[i], classes[i]);
    for (const std::string_view raw : lines) {
      const std::string location = fmt::format("{}:{}", all.files[i], all.sentences.text.size() - all.first.back() + 1);
      all.sentences.text.push_back(to_utf8(raw, encoding, location));
      all.sentences.label.push_back(static_cast<int32_t>(i));
      require_words(all.sentences.text.back(), location);
    }
  }
  return all;
}

/// Draws the three sets, as read_labelled() says.
LabelledSets split(const ClassFiles& all, const LabelledTextOptions& data, const Say& say) {
  const auto count = static_cast<int64_t>(all.sentences.text.size());
  const int64_t evaluated = data.test_count + data.dev_count;
  if (evaluated >= count) {
    fail("data.test_count = {} and data.dev_count = {} leave no training sentence: {} have {}", data.test_count,
         data.dev_count, fmt::join(all.files, " and "), counted(count, "sentence"));
  }
  if (evaluated + data.train_count > count) {
    fail("data.train_count = {} is too many: {} have {}, of which data.test_count and data.dev_count take {}",
         data.train_count, fmt::join(all.files, " and "), counted(count, "sentence"), evaluated);
  }
  std::vector<int32_t> order = in_order(count);
  shuffle(order, RandomStream(static_cast<uint32_t>(data.split_seed.value()), "split"), /*pass=*/0, /*which=*/0);

  auto next = order.begin();
  const auto take = [&](int64_t sentences, bool evaluated_whole) {
    const auto begin = std::exchange(next, next + sentences);
    std::sort(begin, next);
    LabelledText set;
    for (auto it = begin; it != next; ++it) {
      if (evaluated_whole) refuse_overlong(all.sentences.text[static_cast<size_t>(*it)], all.location(*it));
      set.text.push_back(all.sentences.text[static_cast<size_t>(*it)]);
      set.label.push_back(all.sentences.label[static_cast<size_t>(*it)]);
    }
    return set;
  };
  LabelledSets sets;
  sets.test = take(data.test_count, true);
  sets.dev = take(data.dev_count, true);
  sets.train = take(data.train_count == 0 ? order.end() - next : data.train_count, false);
  if (const auto left = order.end() - next; left == 1) {
    say(fmt::format("{}: 1 of {} sentences is in no set: {}", named("corpus", data.name), count, all.location(*next)));
  } else if (left > 1) {
    say(fmt::format("{}: {} of {} sentences are in no set", named("corpus", data.name), left, count));
  }
  return sets;
}

}  // namespace

void describe(SettingsVisitor& v, LabelledTextOptions& o) {
  const bool drawn = o.form == LabelledForm::kClassFiles;
  const bool has_checksums = !o.train_sha256.empty() && (drawn || (!o.dev_sha256.empty() && !o.test_sha256.empty()));
  const char* const files_off_by = drawn ? "data.form" : "";
  const auto of_the_split = [&](const char* key, const char* meaning, double max) {
    return Field{.key = key, .meaning = meaning, .min = 0, .max = max, .switched_off_by = drawn ? "" : "data.form"};
  };
  v.word(name_field("name of the data, for messages", has_checksums), o.name);
  v.word(path_field("how_to_get", "sentence shown when a file is missing"), o.how_to_get);
  v.choice(
      {.key = "form",
       .meaning = "labelled_lines (train, dev and test are files whose lines are a label, a space and the text) or "
                  "class_files (one file a class, from which train, dev and test are drawn)"},
      o.form, kLabelledFormNames);
  v.word({.key = "classes",
          .meaning = "names of the classes in the order of their labels 0, 1, …, separated by spaces; for class_files "
                     "also the suffixes of the files"},
         o.classes);
  v.choice({.key = "encoding", .meaning = "encoding of the raw files"}, o.encoding, kTextEncodingNames);
  v.word(path_field("train",
                    "training sentences: a file, or for class_files the path up to the suffix, relative to the file "
                    "that names it"),
         o.train);
  v.word(path_field("dev", "file of the development sentences", files_off_by), o.dev);
  v.word(path_field("test", "file of the test sentences", files_off_by), o.test);
  Field train_count = of_the_split("train_count", "sentences drawn for training; 0: all that dev and test leave", 1e9);
  train_count.neutral = 0;
  v.integer(train_count, o.train_count);
  v.integer(of_the_split("dev_count", "sentences drawn for development", 1e9), o.dev_count);
  v.integer(of_the_split("test_count", "sentences drawn for the test", 1e9), o.test_count);
  Field split_seed = of_the_split(
      "split_seed", "seed of the draw; \"train.seed\" draws another split for each seed of a run", 4294967295.0);
  split_seed.unset_word = "train.seed";
  v.optional_integer(split_seed, o.split_seed);
  v.word(checksum_field("train_sha256", "checksum of the raw training files, filled in by check"), o.train_sha256);
  v.word(checksum_field("dev_sha256", "checksum of the raw development file, filled in by check", files_off_by),
         o.dev_sha256);
  v.word(checksum_field("test_sha256", "checksum of the raw test file, filled in by check", files_off_by),
         o.test_sha256);
}

void describe(SettingsVisitor& v, WordOptions& o) {
  v.integer({.key = "min_count",
             .meaning = "words that occur less often than this in the training set are UNK",
             .min = 1,
             .max = 1e9,
             .neutral = 1},
            o.min_count);
  v.flag({.key = "lower_case",
          .meaning = "replace the capital letters A–Z, À–Þ, Š, Œ, Ž and Ÿ by small ones",
          .neutral = false},
         o.lower_case);
  v.integer({.key = "max_words",
             .meaning = "training sentences with more words than this are left out; 0 keeps all",
             .min = 0,
             .max = 1e6,
             .neutral = 0},
            o.max_words);
}

std::vector<std::string> class_names(const LabelledTextOptions& data) {
  const auto words = split_words(data.classes);
  if (words.size() < 2) {
    fail("data.classes = \"{}\" names {}; name two classes or more, separated by spaces", printable(data.classes),
         words.empty() ? "no class" : "one class");
  }
  std::set<std::string_view> seen;
  for (const std::string_view name : words) {
    if (!seen.insert(name).second) fail("data.classes names the class {} twice", name);
  }
  return {words.begin(), words.end()};
}

DataFiles data_files(LabelledTextOptions& data) {
  DataFiles files{.what = named("corpus", data.name), .how_to_get = data.how_to_get};
  std::vector<std::string> endings;
  if (!data.classes.empty()) endings = class_names(data);
  if (data.form == LabelledForm::kClassFiles) {
    for (std::string& ending : endings) ending.insert(0, ".");
    files.required = {{"train", !data.train.empty()},
                      {"classes", !data.classes.empty()},
                      {"dev_count", data.dev_count > 0},
                      {"test_count", data.test_count > 0}};
    files.needs = "the form class_files needs train, classes, dev_count and test_count";
    files.sets = {{{{"data.train", &data.train, endings}, {"data.dev", &data.dev, {}}, {"data.test", &data.test, {}}},
                   &data.train_sha256}};
  } else {
    files.required = {{"classes", !data.classes.empty()}};
    files.needs = "the form labelled_lines needs train, dev, test and classes";
    files.sets = {{{{"data.train", &data.train}}, &data.train_sha256},
                  {{{"data.dev", &data.dev}}, &data.dev_sha256},
                  {{{"data.test", &data.test}}, &data.test_sha256}};
  }
  return files;
}

void check_consistent(const LabelledTextOptions& data) {
  if (!data.split_seed && data.form == LabelledForm::kLabelledLines) {
    fail(
        "data.split_seed = \"train.seed\" needs data.form = \"class_files\": labelled_lines bring their own split, the "
        "files train, dev and test, which no seed changes; remove it");
  }
}

LabelledSets read_labelled(LabelledTextOptions data, const Say& say) {
  const std::vector<std::string> classes = class_names(data);
  const std::vector<DataSet> files = data_files(data).sets;
  const bool drawn = data.form == LabelledForm::kClassFiles;
  LabelledSets sets = drawn ? split(read_class_files(files.front(), data.encoding, classes), data, say)
                            : read_labelled_lines(files, data.encoding, classes);
  require_every_class(sets.train.label, classes,
                      drawn ? "the split left no training sentence of" : data.train + " has no sentence of");
  return sets;
}

void require_every_class(const std::vector<int32_t>& labels, const std::vector<std::string>& classes,
                         std::string_view sentence) {
  std::vector<bool> seen(classes.size(), false);
  for (const int32_t label : labels) seen[static_cast<size_t>(label)] = true;
  const auto unseen = std::find(seen.begin(), seen.end(), false) - seen.begin();
  if (unseen == static_cast<std::ptrdiff_t>(classes.size())) return;
  fail("{} the class {} (label {}); every class needs one to be learned", sentence,
       classes[static_cast<size_t>(unseen)], unseen);
}

}  // namespace tearless::engine
