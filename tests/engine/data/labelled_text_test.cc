// Labelled sentences: what is read from both forms, how class files are split, and the message for each fault.
#include "engine/data/labelled_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::engine::labelled_text_test {
namespace {

using tearless::test::error_of;
using Lines = std::vector<std::string>;
using Labels = std::vector<int32_t>;

class LabelledFiles : public testing::Test {
 protected:
  void write(const std::string& name, std::string_view text) { test::write_text(folder_ / name, text); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  LabelledSets read() {
    said_.clear();
    return read_labelled(data_, [this](const std::string& message) { said_.push_back(message); });
  }
  std::string read_error() {
    return error_of([this] { read(); });
  }
  std::string canonical(Identity identity = Identity::kResult) {
    return canonical_settings(identity, [this](SettingsVisitor& v) { v.table("data", data_); });
  }

  test::TempFolder folder_;
  LabelledTextOptions data_;
  Lines said_;
};

/// Three files of lines with a label.
class LabelledLinesTest : public LabelledFiles {
 protected:
  LabelledLinesTest() {
    data_ = {.name = "toy", .classes = "bad  good", .train = path("train"), .dev = path("dev"), .test = path("test")};
    write("train", "0 dull\n1 fine film\n");
    write("dev", "1 fine\n");
    write("test", "0 bore\n");
  }
};

/// Ten sentences in two class files: n0 … n5, p6 … p9.
class ClassFilesTest : public LabelledFiles {
 protected:
  ClassFilesTest() {
    data_ = {.name = "toy", .form = LabelledForm::kClassFiles, .classes = "neg pos", .train = path("toy")};
    data_.train_count = 4;
    data_.dev_count = 3;
    data_.test_count = 2;
    write("toy.neg", "n0\nn1\nn2\nn3\nn4\nn5\n");
    write("toy.pos", "p6\np7\np8\np9\n");
  }
};

TEST_F(LabelledLinesTest, AreALabelASpaceAndTheText) {
  write("train", "1 a b \n00 c\r\n1\td\n0  e\n1 0");
  const LabelledSets sets = read();
  EXPECT_EQ(sets.train.text, (Lines{"a b ", "c\r", "d", " e", "0"}));
  EXPECT_EQ(sets.train.label, (Labels{1, 0, 1, 0, 1}));
  EXPECT_EQ(sets.dev.text, (Lines{"fine"}));
  EXPECT_EQ(sets.dev.label, (Labels{1}));
  EXPECT_EQ(sets.test.text, (Lines{"bore"}));
  EXPECT_EQ(sets.test.label, (Labels{0}));
  EXPECT_EQ(said_, Lines{});
}

TEST_F(LabelledLinesTest, EndAtNewlinesAlone) {
  write("train",
        "0 a\rb\n1 c\u2028d\xC2\x85"
        "e\n");
  EXPECT_EQ(read().train.text, (Lines{"a\rb",
                                      "c\u2028d\xC2\x85"
                                      "e"}));
}

TEST_F(LabelledLinesTest, WithABadLabelAreRefusedByFileAndLine) {
  const auto error_with = [this](const char* line) {
    write("dev", std::string("0 a\n") + line + "\n");
    return read_error();
  };
  for (const char* label : {"good", "1.0", "+1", "1x", "", "0x1", "-"}) {
    EXPECT_EQ(
        error_with((label + std::string(" b")).c_str()),
        path("dev") + ":2: the label \"" + label + "\" is not an integer; a line is a label, a space and the text");
  }
  EXPECT_EQ(error_with("\x1b"),
            path("dev") + ":2: the label \"\\x1b\" is not an integer; a line is a label, a space and the text");
  for (const char* label : {"2", "-1", "99999999999999999999", "4294967296"}) {
    EXPECT_EQ(error_with((label + std::string(" b")).c_str()),
              path("dev") + ":2: the label " + label +
                  " is out of range; data.classes names 2 classes, so labels are 0 to 1");
  }
}

TEST_F(LabelledLinesTest, WithoutAWordAreRefusedInTrainingAndKeptForEvaluation) {
  for (const char* line : {"1", "1 ", "1  \t\r"}) {
    write("train", std::string("0 a\n1 b\n") + line + "\n");
    EXPECT_EQ(read_error(), path("train") + ":3: there is no text; remove the line, or write the sentence there");
  }
  write("train", "0 a\n1 b\n");
  write("dev", "1\n");
  write("test", "0 \n1  \n");
  EXPECT_EQ(read().dev.text, (Lines{""}));
  EXPECT_EQ(read().test.text, (Lines{"", " "}));
}

TEST_F(LabelledLinesTest, OfAnEmptyFileAreRefused) {
  for (const char* file : {"train", "dev", "test"}) {
    write(file, "");
    EXPECT_EQ(read_error(), path(file) + " is empty: put one sentence a line into it, after its label and a space");
    write(file, "0 a\n1 b\n");
  }
}

TEST_F(LabelledLinesTest, NeedATrainingSentenceOfEveryClass) {
  data_.classes = "bad so-so good";
  write("train", "0 a\n2 b\n");
  EXPECT_EQ(read_error(),
            path("train") + " has no sentence of the class so-so (label 1); every class needs one to be learned");
  write("train", "0 a\n2 b\n1 c\n");
  EXPECT_EQ(read_error(), "");  // dev and test need not have every class
}

TEST_F(LabelledLinesTest, AreDecodedFromTheEncodingThatIsSet) {
  write("train", "0 caf\xE9\n1 \x97\n");
  EXPECT_EQ(read_error(),
            path("train") +
                ":1: byte 6 of the line, 0xe9, is not utf-8; set data.encoding or convert the file, for example with "
                "iconv");
  data_.encoding = TextEncoding::kWindows1252;
  EXPECT_EQ(read().train.text, (Lines{"café", "—"}));
  write("train", "0 a\n1 \x81\n");
  EXPECT_EQ(read_error(),
            path("train") +
                ":2: byte 3 of the line, 0x81, is not windows-1252; set data.encoding or convert the file, for example "
                "with iconv");
}

TEST_F(LabelledLinesTest, NeedTwoClassesWithDifferentNames) {
  const auto error_with = [this](const char* classes) {
    data_.classes = classes;
    return read_error();
  };
  EXPECT_EQ(error_with(" "), "data.classes = \" \" names no class; name two classes or more, separated by spaces");
  EXPECT_EQ(error_with("a"), "data.classes = \"a\" names one class; name two classes or more, separated by spaces");
  EXPECT_EQ(error_with("a b a"), "data.classes names the class a twice");
}

TEST_F(LabelledLinesTest, AreMissedByFileAndWhatToDo) {
  EXPECT_EQ(data_files(data_).missing(), "");
  std::filesystem::remove(path("test"));
  EXPECT_EQ(data_files(data_).missing(), "the corpus toy lacks the file " + path("test"));
  data_.how_to_get = "run tools/get_toy.py";
  data_.name = "";
  EXPECT_EQ(data_files(data_).missing(), "the corpus lacks the file " + path("test") + ": run tools/get_toy.py");
  const std::string needs = " is not set: the form labelled_lines needs train, dev, test and classes";
  for (auto [key, value] :
       {std::pair("train", &data_.train), {"dev", &data_.dev}, {"test", &data_.test}, {"classes", &data_.classes}}) {
    const std::string saved = std::exchange(*value, "");
    EXPECT_EQ(error_of([this] { data_files(data_).missing(); }), std::string("data.") + key + needs);
    *value = saved;
  }
}

TEST_F(LabelledLinesTest, AreIdentifiedByTheSumOfEachFile) {
  const std::string settings = "data.classes = \"bad  good\"\n";
  EXPECT_EQ(canonical(), settings + "data.encoding = \"utf-8\"\ndata.form = \"labelled_lines\"\ndata.name = \"toy\"\n");
  EXPECT_FALSE(data_files(data_).has_checksums());
  data_files(data_).fingerprint();
  EXPECT_TRUE(data_files(data_).has_checksums());
  EXPECT_EQ(canonical(), settings + "data.dev_sha256 = \"" + sha256("1 fine\n") +
                             "\"\ndata.encoding = \"utf-8\"\ndata.form = \"labelled_lines\"\ndata.test_sha256 = \"" +
                             sha256("0 bore\n") + "\"\ndata.train_sha256 = \"" + sha256("0 dull\n1 fine film\n") +
                             "\"\n");
  EXPECT_EQ(canonical(Identity::kLocal), "data.dev = \"" + data_.dev +
                                             "\"\ndata.how_to_get = \"\"\ndata.name = \"toy\"\ndata.test = \"" +
                                             data_.test + "\"\ndata.train = \"" + data_.train + "\"\n");
  for (std::string* sum : {&data_.train_sha256, &data_.dev_sha256, &data_.test_sha256}) {
    const std::string saved = std::exchange(*sum, "");
    EXPECT_FALSE(data_files(data_).has_checksums());
    EXPECT_THAT(canonical(), testing::HasSubstr("data.name = \"toy\"\n"));
    *sum = saved;
  }
}

TEST_F(LabelledLinesTest, ThatChangedSinceThePlanAreNoticed) {
  data_files(data_).fingerprint();
  EXPECT_EQ(error_of([this] { data_files(data_).verify(); }), "");
  for (const char* file : {"train", "dev", "test"}) {
    const std::string saved = test::read_text(path(file));
    write(file, "0 other text\n1 b\n");
    EXPECT_EQ(error_of([this] { data_files(data_).verify(); }),
              path(file) + " is not the file that this run was planned with; restore it, or plan a new run");
    EXPECT_EQ(read_error(), path(file) + " changed while it was read; run again when no program writes to it");
    std::filesystem::remove(path(file));  // a missing file is not a changed one
    EXPECT_EQ(error_of([this] { data_files(data_).verify(); }), "");
    write(file, saved);
  }
  std::filesystem::remove(path("dev"));
  std::filesystem::create_directory(path("dev"));
  EXPECT_EQ(error_of([this] { data_files(data_).fingerprint(); }),
            path("dev") + " is not a regular file; replace it by a text file with one sentence a line");
}

TEST_F(ClassFilesTest, AreDrawnByTheSeedAsAnIndependentShuffleDraws) {
  // Philox and Fisher–Yates in Python. Another draw would make every run on RT another run.
  LabelledSets sets = read();
  EXPECT_EQ(sets.train.text, (Lines{"n3", "n4", "n5", "p6"}));
  EXPECT_EQ(sets.train.label, (Labels{0, 0, 0, 1}));
  EXPECT_EQ(sets.dev.text, (Lines{"n2", "p7", "p8"}));
  EXPECT_EQ(sets.dev.label, (Labels{0, 1, 1}));
  EXPECT_EQ(sets.test.text, (Lines{"n0", "n1"}));
  EXPECT_EQ(sets.test.label, (Labels{0, 0}));
  EXPECT_EQ(said_, (Lines{"the corpus toy: 1 of 10 sentences is in no set: " + path("toy.pos") + ":4"}));

  data_.split_seed = 2;
  sets = read();
  EXPECT_EQ(sets.train.text, (Lines{"n0", "n2", "p6", "p7"}));
  EXPECT_EQ(sets.dev.text, (Lines{"n1", "n3", "p8"}));
  EXPECT_EQ(sets.test.text, (Lines{"n4", "p9"}));
  EXPECT_EQ(said_, (Lines{"the corpus toy: 1 of 10 sentences is in no set: " + path("toy.neg") + ":6"}));
}

TEST_F(ClassFilesTest, KeepDevAndTestWhateverIsDrawnForTraining) {
  const LabelledSets four = read();
  data_.train_count = 3;
  const LabelledSets three = read();
  EXPECT_EQ(three.dev.text, four.dev.text);
  EXPECT_EQ(three.test.text, four.test.text);
  EXPECT_EQ(three.train.text.size(), 3u);
  EXPECT_EQ(said_, (Lines{"the corpus toy: 2 of 10 sentences are in no set"}));
  data_.train_count = 0;
  const LabelledSets all = read();
  EXPECT_EQ(all.train.text, (Lines{"n3", "n4", "n5", "p6", "p9"}));
  EXPECT_EQ(said_, Lines{});
  data_.train_count = 5;
  EXPECT_EQ(read().train.text, all.train.text);
}

TEST_F(ClassFilesTest, ThatHaveTooFewSentencesAreRefused) {
  const std::string files = path("toy.neg") + " and " + path("toy.pos") + " have 10 sentences";
  data_.train_count = 6;
  EXPECT_EQ(read_error(),
            "data.train_count = 6 is too many: " + files + ", of which data.test_count and data.dev_count take 5");
  data_.test_count = 7;
  for (const int64_t train_count : {0, 1}) {
    data_.train_count = train_count;
    EXPECT_EQ(read_error(), "data.test_count = 7 and data.dev_count = 3 leave no training sentence: " + files);
  }
  data_.test_count = 6;
  EXPECT_EQ(read_error(),
            "the split left no training sentence of the class neg (label 0); every class needs one to be learned");
}

TEST_F(ClassFilesTest, WithAFaultAreRefusedByFileAndLine) {
  write("toy.pos", "p6\n \np8\n");
  EXPECT_EQ(read_error(), path("toy.pos") + ":2: there is no text; remove the line, or write the sentence there");
  write("toy.pos", "p6\np7\n\xC3");
  EXPECT_EQ(read_error(), path("toy.pos") +
                              ":3: byte 1 of the line, 0xc3, is not utf-8; set data.encoding or convert "
                              "the file, for example with iconv");
  write("toy.pos", "");
  EXPECT_EQ(read_error(), path("toy.pos") + " is empty: the class pos has no sentence");
}

TEST_F(ClassFilesTest, AreLabelledInTheOrderOfTheClasses) {
  data_.classes = "pos neg";
  data_.train_count = 0;
  const LabelledSets sets = read();
  for (const LabelledText& set : {sets.train, sets.dev, sets.test}) {
    for (size_t i = 0; i < set.text.size(); ++i) EXPECT_EQ(set.label[i], set.text[i][0] == 'n' ? 1 : 0);
  }
}

TEST_F(ClassFilesTest, AreMissedByFileAndWhatToDo) {
  EXPECT_EQ(data_files(data_).missing(), "");
  std::filesystem::remove(path("toy.pos"));
  EXPECT_EQ(data_files(data_).missing(), "the corpus toy lacks the file " + path("toy.pos"));
  const std::string needs = " is not set: the form class_files needs train, classes, dev_count and test_count";
  data_.test_count = 0;
  EXPECT_EQ(error_of([this] { data_files(data_).missing(); }), "data.test_count" + needs);
  data_.dev_count = 0;
  EXPECT_EQ(error_of([this] { data_files(data_).missing(); }), "data.dev_count" + needs);
  data_.classes = "";
  EXPECT_EQ(error_of([this] { data_files(data_).missing(); }), "data.classes" + needs);
  data_.train = "";
  EXPECT_EQ(error_of([this] { data_files(data_).missing(); }), "data.train" + needs);
}

TEST_F(ClassFilesTest, AreIdentifiedByTheirSumsAndTheSplit) {
  const std::string split = "data.dev_count = 3\ndata.encoding = \"utf-8\"\ndata.form = \"class_files\"\n";
  EXPECT_EQ(canonical(), "data.classes = \"neg pos\"\n" + split +
                             "data.name = \"toy\"\ndata.split_seed = 1\ndata.test_count = 2\ndata.train_count = 4\n");
  data_.train_count = 0;  // the sum of the files says how many are left
  data_files(data_).fingerprint();
  EXPECT_TRUE(data_files(data_).has_checksums());
  EXPECT_EQ(data_.train_sha256, sha256(sha256("n0\nn1\nn2\nn3\nn4\nn5\n") + " " + sha256("p6\np7\np8\np9\n")));
  EXPECT_EQ(canonical(), "data.classes = \"neg pos\"\n" + split +
                             "data.split_seed = 1\ndata.test_count = 2\ndata.train_sha256 = \"" + data_.train_sha256 +
                             "\"\n");
  EXPECT_EQ(data_.dev_sha256, "");
  EXPECT_EQ(data_.test_sha256, "");
}

TEST_F(ClassFilesTest, ThatChangedSinceThePlanAreNoticed) {
  data_files(data_).fingerprint();
  EXPECT_EQ(error_of([this] { data_files(data_).verify(); }), "");
  write("toy.pos", "p6\np7\np8\nchanged\n");
  EXPECT_EQ(error_of([this] { data_files(data_).verify(); }),
            path("toy.neg") + " and " + path("toy.pos") +
                " are not the files that this run was planned with; restore those, or plan a new run");
  EXPECT_EQ(read_error(), path("toy.neg") + " or " + path("toy.pos") +
                              " changed while it was read; run again when no program writes to them");
}

TEST(LabelledTextSettings, OfTheOtherFormAreNoPartOfTheId) {
  LabelledTextOptions lines{.name = "x", .classes = "a b", .train = "t", .dev = "d", .test = "e"};
  const auto canonical = [](LabelledTextOptions options, Identity identity) {
    return canonical_settings(identity, [&](SettingsVisitor& v) { describe(v, options); });
  };
  LabelledTextOptions counts = lines;
  counts.train_count = 1, counts.dev_count = 2, counts.test_count = 3, counts.split_seed = 4;
  EXPECT_EQ(canonical(counts, Identity::kResult), canonical(lines, Identity::kResult));
  LabelledTextOptions drawn = counts;
  drawn.form = LabelledForm::kClassFiles;
  LabelledTextOptions sums = drawn;
  sums.dev_sha256 = sums.test_sha256 = "00";
  EXPECT_EQ(canonical(sums, Identity::kResult), canonical(drawn, Identity::kResult));
  for (int64_t LabelledTextOptions::*field : {&LabelledTextOptions::train_count, &LabelledTextOptions::dev_count,
                                              &LabelledTextOptions::test_count, &LabelledTextOptions::split_seed}) {
    LabelledTextOptions other = drawn;
    other.*field += 10;
    EXPECT_NE(canonical(other, Identity::kResult), canonical(drawn, Identity::kResult));
  }
  EXPECT_EQ(canonical(lines, Identity::kLocal), "dev = \"d\"\nhow_to_get = \"\"\ntest = \"e\"\ntrain = \"t\"\n");
}

TEST(LabelledTextSettings, OfWordsThatHaveNoEffectAreNoPartOfTheId) {
  WordOptions options;
  const auto canonical = [&] {
    return canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { describe(v, options); });
  };
  EXPECT_EQ(canonical(), "lower_case = true\nmin_count = 2\n");
  options = {.min_count = 1, .lower_case = false, .max_words = 0};
  EXPECT_EQ(canonical(), "");
  options.max_words = 30;
  EXPECT_EQ(canonical(), "max_words = 30\n");
}

TEST(LabelledTextSettings, AreReadWithTheirLimits) {
  LabelledTextOptions data;
  WordOptions text;
  const auto error_with = [&](std::string_view settings) {
    return error_of([&] {
      read_settings(parse_toml_settings(settings, "a.toml"), [&](SettingsVisitor& v) {
        v.table("data", data);
        v.table("text", text);
      });
    });
  };
  EXPECT_EQ(error_with("data.form = \"class_files\"\ndata.encoding = \"windows-1252\"\ndata.split_seed = 4294967295\n"
                       "text.min_count = 3\ntext.lower_case = false\ntext.max_words = 7\n"),
            "");
  EXPECT_EQ(data.form, LabelledForm::kClassFiles);
  EXPECT_EQ(data.encoding, TextEncoding::kWindows1252);
  EXPECT_EQ(data.split_seed, 4294967295);
  EXPECT_EQ(text.min_count, 3);
  EXPECT_FALSE(text.lower_case);
  EXPECT_EQ(text.max_words, 7);
  EXPECT_EQ(error_with("text.min_count = 0"),
            "a.toml:1: text.min_count = 0 is out of range; it must be between 1 and 1000000000");
  EXPECT_NE(error_with("text.max_words = -1"), "");
  EXPECT_NE(error_with("data.split_seed = 4294967296"), "");
  EXPECT_NE(error_with("data.split_seed = -1"), "");
  EXPECT_NE(error_with("data.dev_count = -1"), "");
}

/// Unpacks a data set with its script; ends the test where that fails.
void get(const std::string& tool, const std::string& data, const std::filesystem::path& out) {
  const test::Finished finished =
      test::run({.arguments = {"/usr/bin/env", "python3", "-B", (test::source_root() / "tools" / tool).string(),
                               (test::shared_folder() / "data" / data).string(), out.string()}});
  ASSERT_EQ(finished.code, 0) << finished.errors;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text.append(text.empty() ? "" : "\n").append(line);
  return text;
}

TEST_F(LabelledFiles, RtIsSplitAsAnIndependentProgramSplitsIt) {
  TEARLESS_NEEDS_SHARED("data/rt-polarity/rt-polarity.neg.xz");
  get("get_rt.py", "rt-polarity", folder_.path());
  data_ = {.name = "rt",
           .form = LabelledForm::kClassFiles,
           .classes = "neg pos",
           .encoding = TextEncoding::kWindows1252,
           .train = path("rt-polarity"),
           .train_count = 8608,
           .dev_count = 964,
           .test_count = 1089};
  const LabelledSets sets = read();
  EXPECT_EQ(said_, (Lines{"the corpus rt: 1 of 10662 sentences is in no set: " + path("rt-polarity.neg") + ":2416"}));
  EXPECT_EQ(sets.train.text.size(), 8608u);
  EXPECT_EQ(sets.dev.text.size(), 964u);
  EXPECT_EQ(sets.test.text.size(), 1089u);
  const auto positive = [](const LabelledText& set) { return std::accumulate(set.label.begin(), set.label.end(), 0); };
  EXPECT_EQ(positive(sets.train), 4287);
  EXPECT_EQ(positive(sets.dev), 471);
  EXPECT_EQ(positive(sets.test), 573);  // 5,331 in all
  EXPECT_EQ(sha256(joined(sets.train.text)), "fbebe889dc38a67207b164084844fce84cdef257acbcdcba00156387447f27ed");
  EXPECT_EQ(sha256(joined(sets.dev.text)), "12dc724152f1d16c6a7150126a5cd9a5338c94679ea954b0afda68ff3545cc58");
  EXPECT_EQ(sha256(joined(sets.test.text)), "57383f3514020a7133761e7570ba8a4d5ab9d133bd09d4ec1791ecd91ac3225a");

  data_.train_count = 0;
  data_.dev_count = data_.test_count = 1;
  const LabelledSets whole = read();
  EXPECT_EQ(whole.train.text.size(), 10660u);
  EXPECT_EQ(positive(whole.train) + positive(whole.dev) + positive(whole.test), 5331);
  EXPECT_EQ(said_, Lines{});
}

TEST_F(LabelledFiles, Sst5HasTheSentencesOfEachClass) {
  TEARLESS_NEEDS_SHARED("data/sst5/stsa.fine.train.xz");
  get("get_sst5.py", "sst5", folder_.path());
  data_ = {.name = "sst5",
           .classes = "very_negative negative neutral positive very_positive",
           .train = path("stsa.fine.train"),
           .dev = path("stsa.fine.dev"),
           .test = path("stsa.fine.test")};
  const LabelledSets sets = read();
  const auto counts = [](const LabelledText& set) {
    Labels counts(5);
    for (const int32_t label : set.label) ++counts[static_cast<size_t>(label)];
    return counts;
  };
  EXPECT_EQ(counts(sets.train), (Labels{1092, 2218, 1624, 2322, 1288}));
  EXPECT_EQ(counts(sets.dev), (Labels{139, 289, 229, 279, 165}));
  EXPECT_EQ(counts(sets.test), (Labels{279, 633, 389, 510, 399}));
}

}  // namespace
}  // namespace tearless::engine::labelled_text_test
