// Raw corpora: what is read, what is left out, and the message for each fault.
#include "engine/data/corpus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/error.h"
#include "engine/data/raw_files.h"
#include "engine/data/text_lines.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::engine::corpus_test {
namespace {

using tearless::test::error_of;
using Lines = std::vector<std::string>;

class Corpus : public testing::Test {
 protected:
  Corpus() {
    data_.name = "toy";
    data_.source = "src";
    data_.target = "tgt";
    data_.train = (folder_ / "train").string();
    data_.dev = (folder_ / "dev").string();
    data_.test = (folder_ / "test").string();
    for (const char* set : {"train", "dev", "test"}) {
      write(std::string(set) + ".src", "a b\nc\n");
      write(std::string(set) + ".tgt", "x\ny z\n");
    }
  }

  void write(const std::string& name, std::string_view text) { test::write_text(folder_ / name, text); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string read_error() {
    return error_of([this] { read_parallel(data_files(data_).sets[0]); });
  }

  test::TempFolder folder_;
  DataOptions data_;
};

TEST_F(Corpus, EndsLinesAtNewlinesAlone) {
  write("train.src",
        "a\rb\nc\u2028d\xC2\x85"
        "e\n\nf");
  write("train.tgt", "1\n2\n3\n4\r\n");
  const ParallelText text = read_parallel(data_files(data_).sets[0]);
  EXPECT_EQ(text.source, (Lines{"a\rb",
                                "c\u2028d\xC2\x85"
                                "e",
                                "", "f"}));
  EXPECT_EQ(text.target, (Lines{"1", "2", "3", "4"}));
}

TEST_F(Corpus, LeavesOutCarriageReturnsAtTheEndsOfLinesAndAByteOrderMarkAtTheStart) {
  write("train.src",
        "\xEF\xBB\xBF"
        "a b\r\nc\r\r\n\r\nd\re\r");
  write("train.tgt",
        "1\n\xEF\xBB\xBF"
        "2\n3\n4\n");
  const ParallelText text = read_parallel(data_files(data_).sets[0]);
  EXPECT_EQ(text.source, (Lines{"a b", "c", "", "d\re"}));
  EXPECT_EQ(text.target, (Lines{"1",
                                "\xEF\xBB\xBF"
                                "2",
                                "3", "4"}));
}

TEST_F(Corpus, SaysOfEachFileWhatIsLeftOut) {
  write("train.src",
        "\xEF\xBB\xBF"
        "a\r\nb\n");
  write("dev.tgt", "x\r\ny z\r\n");
  write("test.src",
        "\xEF\xBB\xBF"
        "a\nb\n");
  Lines said;
  say_left_out(data_files(data_), [&](const std::string& line) { said.push_back(line); });
  EXPECT_EQ(said,
            (Lines{path("train.src") + ": left out the carriage returns at the ends of 1 line, and the byte order "
                                       "mark at the start",
                   path("dev.tgt") + ": left out the carriage returns at the ends of 2 lines",
                   path("test.src") + ": left out the byte order mark at the start"}));
}

TEST_F(Corpus, OfAByteOrderMarkAloneIsEmpty) {
  write("train.src", "\xEF\xBB\xBF");
  EXPECT_EQ(read_error(), path("train.src") + " is empty: put one sentence a line into it");
}

TEST_F(Corpus, RefusesSidesOfDifferentLength) {
  write("train.tgt", "x\n");
  EXPECT_EQ(read_error(), path("train.src") + " has 2 lines but " + path("train.tgt") +
                              " has 1: line n of one must translate line n of the other");
}

TEST_F(Corpus, RefusesAnEmptyFile) {
  write("train.tgt", "");
  EXPECT_EQ(read_error(), path("train.tgt") + " is empty: put one sentence a line into it");
}

TEST_F(Corpus, RefusesInvalidUtf8ByFileAndLine) {
  const std::string sentence = ": not valid UTF-8; convert the file, for example with iconv";
  // A Latin-1 letter, a cut-off sequence, an overlong form, a surrogate, a code point past the last.
  for (const char* bad : {"caf\xE9", "\xE2\x82", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"}) {
    write("train.src", "good é 日 \xF0\x9F\x98\x80\n" + std::string(bad) + "\n");
    EXPECT_EQ(read_error(), path("train.src") + ":2" + sentence);
  }
}

TEST_F(Corpus, NamesTheProgramThatUnpacksACompressedFile) {
  const std::pair<std::string, const char*> kCompressed[] = {
      {std::string("\x1f\x8b\x08\0", 4), "gzip; unpack it with gunzip"},
      {std::string("\xfd\x37zXZ\0\0\x04", 8), "xz; unpack it with unxz"},
      {"\x28\xb5\x2f\xfd\x24", "zstd; unpack it with unzstd"},
      {"BZh91AY&SY\xff", "bzip2; unpack it with bunzip2"},
      {"PK\x03\x04\x14", "zip; unpack it with unzip"}};
  for (const auto& [bytes, advice] : kCompressed) {
    write("train.src", bytes);
    EXPECT_EQ(read_error(), path("train.src") + " is compressed with " + advice);
  }
  for (const char* text : {"BZh9 is text\n", "PK is text\n", "1AY&SY\n", "BZh\n"}) {
    write("train.src", text);
    write("train.tgt", "x\n");
    EXPECT_EQ(read_parallel(data_files(data_).sets[0]).source.size(), 1u) << text;
  }
}

TEST_F(Corpus, RefusesPipesAndDevicesInsteadOfWaiting) {
  std::filesystem::remove(path("train.src"));
  ASSERT_EQ(::mkfifo(path("train.src").c_str(), 0600), 0);
  EXPECT_EQ(error_of([this] { data_files(data_).fingerprint(); }),
            path("train.src") + " is not a regular file; replace it by a text file with one sentence a line");
  EXPECT_EQ(read_error(), "cannot read " + path("train.src") + ": it is a pipe or a device; name a regular file");
  std::filesystem::remove(path("train.src"));
  std::filesystem::create_directory(path("train.src"));
  EXPECT_EQ(error_of([this] { data_files(data_).fingerprint(); }),
            path("train.src") + " is not a regular file; replace it by a text file with one sentence a line");
}

TEST_F(Corpus, AcceptsNulBytesLongLinesAndAMissingLastNewline) {
  const std::string longest(1 << 20, 'x');
  write("train.src", std::string("a\0b", 3) + "\n" + longest);
  EXPECT_EQ(read_parallel(data_files(data_).sets[0]).source, (Lines{std::string("a\0b", 3), longest}));
}

TEST_F(Corpus, LeavesOutEmptyAndOverlongTrainingPairs) {
  const ParallelText text{{"a", "", "b b b", "c", "d d"}, {"1", "2", "3", " \r", "4 4 4"}};
  ParallelText usable = training_pairs(text, 2, {});
  EXPECT_EQ(usable.source, (Lines{"a"}));
  EXPECT_EQ(usable.target, (Lines{"1"}));
  usable = training_pairs(text, 0, {});
  EXPECT_EQ(usable.source, (Lines{"a", "b b b", "d d"}));
  EXPECT_EQ(usable.target, (Lines{"1", "3", "4 4 4"}));
  EXPECT_EQ(error_of([&] {
              training_pairs({{"a b"}, {"c"}}, 1, {.train = "folder/train"});
            }),
            "folder/train: no pair of lines can be trained on; every one has an empty or an overlong side");
}

class CorpusTrainCount : public testing::Test {
 protected:
  /// Which of the pairs 0, 1, … are trained on.
  std::vector<int> chosen(int64_t train_count, int pairs = 40) {
    ParallelText text;
    for (int i = 0; i < pairs; ++i) {
      text.source.push_back(std::to_string(i));
      text.target.push_back("x" + std::to_string(i));
    }
    text.source.insert(text.source.begin(), "");  // left out, so it is none of the pairs that are counted
    text.target.insert(text.target.begin(), "x");
    const ParallelText kept = training_pairs(text, 0, {.train = "folder/train", .train_count = train_count});
    std::vector<int> numbers;
    for (size_t i = 0; i < kept.source.size(); ++i) {
      EXPECT_EQ(kept.target.at(i), "x" + kept.source[i]) << "the sides stay together";
      numbers.push_back(std::stoi(kept.source[i]));
    }
    EXPECT_TRUE(std::ranges::is_sorted(numbers)) << "in the order of the file";
    return numbers;
  }
};

TEST_F(CorpusTrainCount, DrawsSoManyPairsThatFewerAreAPartOfMore) {
  const std::vector<int> few = chosen(10), more = chosen(20);
  EXPECT_EQ(few.size(), 10u);
  EXPECT_EQ(more.size(), 20u);
  EXPECT_TRUE(std::ranges::includes(more, few));
  EXPECT_GT(few.back(), 20) << "of the whole file, not of its beginning";
}

// Calculated by a Philox of another program: another draw would change results under the same settings.
TEST_F(CorpusTrainCount, DrawsTheSamePairsEverywhere) { EXPECT_EQ(chosen(5), (std::vector{9, 12, 18, 35, 36})); }

TEST_F(CorpusTrainCount, OfZeroOrAllPairsIsAll) {
  EXPECT_EQ(chosen(0).size(), 40u);
  EXPECT_EQ(chosen(40), chosen(0));
}

TEST_F(CorpusTrainCount, ThatIsMoreThanThereAreIsRefused) {
  EXPECT_EQ(error_of([this] { chosen(41); }),
            "data.train_count = 41 is too many: folder/train has 40 pairs that can be trained on");
}

TEST_F(Corpus, HashesAFileAgainThatIsReplacedByOneOfTheSameSizeAndTime) {
  data_files(data_).fingerprint();
  const std::string before = data_.train_sha256;
  write("other", "x\ny w\n");
  std::filesystem::last_write_time(path("other"), std::filesystem::last_write_time(path("train.tgt")));
  std::filesystem::rename(path("other"), path("train.tgt"));
  data_files(data_).fingerprint();
  EXPECT_NE(data_.train_sha256, before);
}

TEST_F(Corpus, ReadsTheStartOfAFileAsItIsNow) {
  write("idx", "abcd");
  EXPECT_EQ(read_start(path("idx"), 2).bytes, "ab");
  EXPECT_EQ(read_start(path("idx"), 3).bytes, "abc");
  write("idx", "xyz");
  EXPECT_EQ(read_start(path("idx"), 2).bytes, "xy");
  EXPECT_EQ(read_start(path("idx"), 2).file_size, 3);
}

TEST(TextOptions, OmitFromTheIdWhatDoesNotApply) {
  TextOptions options;
  const auto canonical = [&] {
    return canonical_settings(Identity::kResult, [&](SettingsVisitor& v) { v.table("text", options); });
  };
  EXPECT_EQ(canonical(), "text.kind = \"bpe\"\ntext.max_words = 250\ntext.merges = 3000\n");
  options = {.kind = TextKind::kSentencepiece, .max_words = 0};
  EXPECT_EQ(canonical(), "text.kind = \"sentencepiece\"\ntext.pieces = 2000\n");
  options.kind = TextKind::kSegmented;
  EXPECT_EQ(canonical(), "text.kind = \"segmented\"\n");
}

}  // namespace
}  // namespace tearless::engine::corpus_test
