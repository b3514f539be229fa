// Labelled sentences: what is read from both forms, how class files are split, and the message for each fault.
#include "engine/data/labelled_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

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
  std::string canonical() {
    return canonical_settings(Identity::kResult, [this](SettingsVisitor& v) { v.table("data", data_); });
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

TEST_F(LabelledLinesTest, LeavesOutCarriageReturnsAtTheEndsOfLinesAndAByteOrderMark) {
  write("train",
        "\xEF\xBB\xBF"
        "0 dull\r\n1 fine film\r\n");
  const LabelledSets sets = read();
  EXPECT_EQ(sets.train.text, (Lines{"dull", "fine film"}));
  EXPECT_EQ(sets.train.label, (Labels{0, 1}));
}

TEST_F(LabelledLinesTest, RefuseASentenceOfDevOrTestThatIsTooLongToBeEvaluated) {
  std::string words;
  for (int i = 0; i < 10'001; ++i) words += " x";
  write("test", "0 bore\n1" + words + "\n");
  EXPECT_THAT(read_error(),
              testing::StartsWith(path("test") + ":2 has 10001 words, and a sentence of dev or test may"));
  write("test", "0 bore\n");
  write("train", "0 dull\n1" + words + "\n");
  EXPECT_EQ(read_error(), "") << "text.max_words leaves it out of training";
}

TEST_F(ClassFilesTest, LeaveOutCarriageReturnsAndAByteOrderMark) {
  const LabelledSets plain = read();
  write("toy.neg",
        "\xEF\xBB\xBF"
        "n0\r\nn1\r\nn2\r\nn3\r\nn4\r\nn5\r\n");
  EXPECT_EQ(read().train.text, plain.train.text);
  EXPECT_EQ(read().test.text, plain.test.text);
}

TEST_F(ClassFilesTest, RefuseASentenceThatIsDrawnForDevOrTestAndTooLongToBeEvaluated) {
  std::string words = "x";
  for (int i = 0; i < 10'000; ++i) words += " x";
  write("toy.neg", "n0\nn1\n" + words + "\nn3\nn4\nn5\n");
  data_.train_count = 0;
  data_.test_count = 8;
  data_.dev_count = 1;
  EXPECT_THAT(read_error(), testing::StartsWith(path("toy.neg") + ":3 has 10001 words"));
}

TEST_F(LabelledLinesTest, AreALabelASpaceAndTheText) {
  write("train", "1 a b \n00 c\r\n1\td\n0  e\n1 0");
  const LabelledSets sets = read();
  EXPECT_EQ(sets.train.text, (Lines{"a b ", "c", "d", " e", "0"}));
  EXPECT_EQ(sets.train.label, (Labels{1, 0, 1, 0, 1}));
  EXPECT_EQ(sets.dev.text, (Lines{"fine"}));
  EXPECT_EQ(sets.dev.label, (Labels{1}));
  EXPECT_EQ(sets.test.text, (Lines{"bore"}));
  EXPECT_EQ(sets.test.label, (Labels{0}));
  EXPECT_EQ(said_, Lines{});
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

TEST_F(ClassFilesTest, AreNotKnownWithoutTheirClassesAndCounts) {
  const std::string needs = " is not set: the form class_files needs train, classes, dev_count and test_count";
  const auto without = [&](auto field) {
    LabelledTextOptions data = data_;
    data.*field = {};
    return error_of([&] { data_files(data).missing(); });
  };
  EXPECT_EQ(without(&LabelledTextOptions::classes), "data.classes" + needs);
  EXPECT_EQ(without(&LabelledTextOptions::dev_count), "data.dev_count" + needs);
  EXPECT_EQ(without(&LabelledTextOptions::test_count), "data.test_count" + needs);
}

// The sum of the files says how many are left.
TEST_F(ClassFilesTest, AreIdentifiedByTheSplitAndByTheCountThatIsSet) {
  EXPECT_EQ(canonical(),
            "data.classes = \"neg pos\"\ndata.dev_count = 3\ndata.encoding = \"utf-8\"\n"
            "data.form = \"class_files\"\ndata.name = \"toy\"\ndata.split_seed = 1\n"
            "data.test_count = 2\ndata.train_count = 4\n");
  data_.train_count = 0;
  EXPECT_THAT(canonical(), testing::Not(testing::HasSubstr("train_count")));
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
  for (int64_t LabelledTextOptions::*field :
       {&LabelledTextOptions::train_count, &LabelledTextOptions::dev_count, &LabelledTextOptions::test_count}) {
    LabelledTextOptions other = drawn;
    other.*field += 10;
    EXPECT_NE(canonical(other, Identity::kResult), canonical(drawn, Identity::kResult));
  }
  for (const std::optional<int64_t> seed : {std::optional<int64_t>(14), std::optional<int64_t>()}) {
    LabelledTextOptions other = drawn;
    other.split_seed = seed;
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

}  // namespace
}  // namespace tearless::engine::labelled_text_test
