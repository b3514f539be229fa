// Sentences with a class each, for the task classify: the settings of the data ([data]) and of its words ([text]), and
// the reader of the raw files. Knows nothing about token numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "engine/data/raw_files.h"
#include "engine/data/text_encoding.h"

namespace tearless::engine {

enum class LabelledForm {
  kLabelledLines,  // three files; a line is a label, a space and the text
  kClassFiles      // one file a class, a sentence a line; train, dev and test are drawn from them
};
inline constexpr std::array<std::string_view, 2> kLabelledFormNames = {"labelled_lines", "class_files"};

/// [data] of classify. Its paths are not part of a run's identity; its checksums are.
struct LabelledTextOptions {
  std::string name = "";        // for messages; part of the identity only while checksums are missing
  std::string how_to_get = "";  // sentence shown when a file is missing
  LabelledForm form = LabelledForm::kLabelledLines;
  // The names of the classes in the order of their labels 0, 1, …, separated by spaces. kClassFiles: also the suffixes
  // of the files.
  std::string classes = "";
  TextEncoding encoding = TextEncoding::kUtf8;
  // kLabelledLines: paths of the files. kClassFiles: the files are <train>.<class>; dev and test are not used.
  std::string train = "", dev = "", test = "";
  // kClassFiles: how many sentences are drawn for each set. train_count 0: all that are left.
  int64_t train_count = 0, dev_count = 0, test_count = 0;
  std::optional<int64_t> split_seed = 1;  // unset: train.seed, so that every seed has a split of its own
  // SHA-256 of the file (kLabelledLines), or of the SHA-256s of the class files with a space between two (kClassFiles,
  // train_sha256 alone); filled in by DataFiles::fingerprint(), "" until then.
  std::string train_sha256 = "", dev_sha256 = "", test_sha256 = "";
};

/// [text] of classify: how sentences become words of the vocabulary. Words are separated by ASCII white space.
struct WordOptions {
  int64_t min_count = 2;   // words that occur less often in the training set are UNK
  bool lower_case = true;  // lower_cased()
  int64_t max_words = 0;   // training sentences with more words are left out; 0: all are kept whole
};

void describe(SettingsVisitor& visitor, LabelledTextOptions& options);
void describe(SettingsVisitor& visitor, WordOptions& options);

/// Sentence i has the class label[i].
struct LabelledText {
  std::vector<std::string> text;  // UTF-8
  std::vector<int32_t> label;     // from 0
};

struct LabelledSets {
  LabelledText train, dev, test;
};

/// The names in `data.classes`. Throws UserError if they are fewer than two or one occurs twice.
std::vector<std::string> class_names(const LabelledTextOptions& data);

/// The files of the sets; of kClassFiles one set, from which all three are drawn. Borrows `data`. Throws UserError as
/// class_names() does, unless `data.classes` is not set.
DataFiles data_files(LabelledTextOptions& data);

/// Throws UserError if the splits are to follow train.seed, but the data bring their own.
void check_consistent(const LabelledTextOptions& data);

/// Reads train, dev and test. REQUIRES: data.split_seed is set. Only '\n' ends a line; a trailing space or CR is text.
///
/// kClassFiles: the sentences of all classes are shuffled by a pure function of (split_seed, their number); the first
/// test_count of them are the test set, the next dev_count the dev set, the next train_count (0: all others) the
/// training set. The draw is not stratified. Within a set the sentences keep the order of the files. `say` receives how
/// many are in no set, if any. So another train_count leaves dev and test as they are.
///
/// Throws UserError for an empty file, a byte that is not of the encoding, a label that is no integer or out of range,
/// a sentence without a word (a dev or test line of kLabelledLines may have none), counts that exceed the data, a class
/// without a training sentence, and bytes that do not match the checksum in `data`. It names file and line.
LabelledSets read_labelled(LabelledTextOptions data, const Say& say);

/// Throws UserError with `sentence` and the name of the first class without a label among `labels`; returns if each
/// class has a label.
void require_every_class(const std::vector<int32_t>& labels, const std::vector<std::string>& classes,
                         std::string_view sentence);

}  // namespace tearless::engine
