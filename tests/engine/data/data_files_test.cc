// What every kind of data says of its files: which one is missing and how to get it, which setting is not set, their
// checksums as part of a run's identity, and that they have changed since the run was planned or while they were read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "base/hash.h"
#include "engine/data/character_text.h"
#include "engine/data/corpus.h"
#include "engine/data/digits.h"
#include "engine/data/labelled_text.h"
#include "engine/data/treebank.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::engine::data_files_test {
namespace {

namespace fs = std::filesystem;
using tearless::test::error_of;
using tearless::test::read_text;
using tearless::test::write_text;
using testing::HasSubstr;
using testing::Not;

/// One kind of data in a folder. `Options` are those of [data]; they are filled in, and their files are there.
struct Kind {
  std::string what;      // before the name of the data
  std::string needs;     // of a sentence about a path that is not set
  std::string expected;  // what a file should be
  std::string other;     // bytes that the last file of any set may have instead of its own

  std::string *name = nullptr, *how_to_get = nullptr;
  std::function<DataFiles()> files = {};
  std::function<void(size_t set)> read = {};  // that set at least
  std::function<std::string()> canonical = {};
};

template <class Options>
Kind kind_of(Options options, Kind kind, std::function<void(Options&, size_t)> read) {
  const auto own = std::make_shared<Options>(std::move(options));
  own->name = "toy";
  kind.name = &own->name;
  kind.how_to_get = &own->how_to_get;
  kind.files = [own] { return data_files(*own); };
  kind.read = [own, read](size_t set) { read(*own, set); };
  kind.canonical = [own] {
    return canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { v.table("data", *own); });
  };
  return kind;
}

using Path = std::function<std::string(const char*)>;
constexpr const char* kText = "a text file with one sentence a line";

Kind parallel_text(const Path& path) {
  for (const std::string set : {"train", "dev", "test"}) {
    write_text(path((set + ".src").c_str()), "a b\n" + set + "\n");
    write_text(path((set + ".tgt").c_str()), "x\ny z\n");
  }
  return kind_of<DataOptions>(
      {.train = path("train"), .dev = path("dev"), .test = path("test"), .source = "src", .target = "tgt"},
      {"the corpus", "[data] needs train, dev, test, source and target", kText, "x\nother\n"},
      [](DataOptions& data, size_t set) { read_parallel(data_files(data).sets[set]); });
}

void read_sentences(LabelledTextOptions& data, size_t) {
  read_labelled(data, [](const std::string&) {});
}

Kind labelled_lines(const Path& path) {
  for (const char* set : {"train", "dev", "test"}) write_text(path(set), std::string("0 dull\n1 fine ") + set + "\n");
  return kind_of<LabelledTextOptions>(
      {.classes = "bad good", .train = path("train"), .dev = path("dev"), .test = path("test")},
      {"the corpus", "the form labelled_lines needs train, dev, test and classes", kText, "0 other\n1 text\n"},
      read_sentences);
}

Kind class_files(const Path& path) {
  write_text(path("toy.neg"), "n0\nn1\nn2\nn3\n");
  write_text(path("toy.pos"), "p4\np5\n");
  return kind_of<LabelledTextOptions>(
      {.form = LabelledForm::kClassFiles, .classes = "neg pos", .train = path("toy"), .dev_count = 1, .test_count = 1},
      {"the corpus", "the form class_files needs train, classes, dev_count and test_count", kText, "p4\nother\n"},
      read_sentences);
}

Kind digits(const Path& path) {
  const std::string images("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\1ab", 18), labels("\0\0\x08\x01\0\0\0\2\1\2", 10);
  for (const std::string set : {"train", "test"}) {
    write_text(path((set + ".images").c_str()), images);
    write_text(path((set + ".labels").c_str()), labels);
  }
  return kind_of<DigitsOptions>({.train_images = path("train.images"),
                                 .train_labels = path("train.labels"),
                                 .test_images = path("test.images"),
                                 .test_labels = path("test.labels"),
                                 .dev_first = 1},
                                {"the data set", "[data] needs train_images, train_labels, test_images and test_labels",
                                 "an IDX file", std::string("\0\0\x08\x01\0\0\0\2\1\3", 10)},
                                [](DigitsOptions& data, size_t) { read_digits(data); });
}

Kind treebank(const Path& path) {
  for (const char* set : {"train", "dev", "test"}) write_text(path(set), "1\ta\t_\tX\tY\t_\t0\troot\n");
  return kind_of<TreebankOptions>({.train = path("train"), .dev = path("dev"), .test = path("test")},
                                  {"the treebank", "[data] needs train, dev and test, a file of trees each",
                                   "a file of trees in CoNLL-X or CoNLL-U", "1\tb\t_\tX\tY\t_\t0\troot\n"},
                                  [](TreebankOptions& data, size_t set) { read_files(data_files(data).sets[set]); });
}

Kind plain_text(const Path& path) {
  for (const char* set : {"train", "dev", "test"}) write_text(path(set), "ab\n");
  return kind_of<CharacterTextOptions>(
      {.train = path("train"), .dev = path("dev"), .test = path("test")},
      {"the text", "[data] needs train, dev and test, a text file each", "a plain text file", "ba\n"},
      [](CharacterTextOptions& data, size_t set) { read_files(data_files(data).sets[set]); });
}

using Make = Kind (*)(const Path& path);
class RawData : public testing::TestWithParam<std::pair<const char*, Make>> {
 protected:
  test::TempFolder folder_;
  const Kind kind_ = GetParam().second([this](const char* name) { return (folder_ / name).string(); });
};
INSTANTIATE_TEST_SUITE_P(Kinds, RawData,
                         testing::Values(std::pair("parallel_text", &parallel_text),
                                         std::pair("labelled_lines", &labelled_lines),
                                         std::pair("class_files", &class_files), std::pair("digits", &digits),
                                         std::pair("treebank", &treebank), std::pair("plain_text", &plain_text)),
                         [](const auto& info) { return info.param.first; });

TEST_P(RawData, AreMissedByFileAndWhatToDo) {
  EXPECT_EQ(kind_.files().missing(), "");
  for (const DataSet& set : kind_.files().sets) {
    for (const std::string& file : set.files()) {
      fs::rename(file, file + ".gone");
      *kind_.name = "toy";
      *kind_.how_to_get = "";
      EXPECT_EQ(kind_.files().missing(), kind_.what + " toy lacks the file " + file);
      *kind_.name = "";
      *kind_.how_to_get = "run tools/get_toy.py";
      EXPECT_EQ(kind_.files().missing(), kind_.what + " lacks the file " + file + ": run tools/get_toy.py");
      fs::rename(file + ".gone", file);
    }
  }
}

TEST_P(RawData, AreNotKnownWhileAPathIsNotSet) {
  for (const DataSet& set : kind_.files().sets) {
    for (const DataSetting& setting : set.settings) {
      if (setting.endings.empty()) continue;  // it names no file here
      const std::string saved = std::exchange(*setting.path, "");
      EXPECT_EQ(error_of([&] { kind_.files().missing(); }), std::string(setting.key) + " is not set: " + kind_.needs);
      *setting.path = saved;
    }
  }
}

TEST_P(RawData, AreIdentifiedByTheSumsOfTheirBytesAndUntilThenByName) {
  EXPECT_FALSE(kind_.files().has_checksums());
  EXPECT_THAT(kind_.canonical(), HasSubstr("data.name = \"toy\"\n"));
  kind_.files().fingerprint();
  EXPECT_TRUE(kind_.files().has_checksums());
  EXPECT_THAT(kind_.canonical(), Not(HasSubstr("data.name")));
  for (const DataSet& set : kind_.files().sets) {
    std::string sums;
    for (const std::string& file : set.files()) sums += (sums.empty() ? "" : " ") + sha256(read_text(file));
    EXPECT_EQ(*set.sha256, set.files().size() == 1 ? sums : sha256(sums));
    EXPECT_THAT(kind_.canonical(), HasSubstr("_sha256 = \"" + *set.sha256 + "\"\n"));
    const std::string saved = std::exchange(*set.sha256, "");
    EXPECT_FALSE(kind_.files().has_checksums());
    EXPECT_THAT(kind_.canonical(), HasSubstr("data.name = \"toy\"\n"));
    *set.sha256 = saved;
  }
}

TEST_P(RawData, ThatChangedSinceThePlanOrWhileTheyAreReadAreRefused) {
  kind_.files().fingerprint();
  EXPECT_EQ(error_of([&] { kind_.files().verify(); }), "");
  const std::vector<DataSet> sets = kind_.files().sets;
  for (size_t i = 0; i < sets.size(); ++i) {
    EXPECT_EQ(error_of([&] { kind_.read(i); }), "");
    const std::vector<std::string> files = sets[i].files();
    const std::string saved = read_text(files.back());
    write_text(files.back(), kind_.other);
    const bool one = files.size() == 1;
    EXPECT_EQ(error_of([&] { kind_.files().verify(); }),
              one ? files[0] + " is not the file that this run was planned with; restore it, or plan a new run"
                  : files[0] + " and " + files[1] +
                        " are not the files that this run was planned with; restore those, or plan a new run");
    EXPECT_EQ(error_of([&] { kind_.read(i); }), (one ? files[0] : files[0] + " or " + files[1]) +
                                                    " changed while it was read; run again when no program writes to " +
                                                    (one ? "it" : "them"));
    fs::remove(files.back());
    EXPECT_EQ(error_of([&] { kind_.files().verify(); }), "") << "a missing file is not a changed one";
    write_text(files.back(), saved);
  }
}

TEST_P(RawData, AreRegularFiles) {
  for (const DataSet& set : kind_.files().sets) {
    const std::string file = set.files().back();
    fs::rename(file, file + ".gone");
    fs::create_directory(file);
    EXPECT_EQ(error_of([&] { kind_.files().fingerprint(); }),
              file + " is not a regular file; replace it by " + kind_.expected);
    fs::remove(file);
    fs::rename(file + ".gone", file);
  }
}

}  // namespace
}  // namespace tearless::engine::data_files_test
