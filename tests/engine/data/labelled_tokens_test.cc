// From labelled sentences to token numbers, the cache in the process, and batches.
#include "engine/data/labelled_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "engine/data/batches.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::engine::labelled_tokens_test {
namespace {

using tearless::test::error_of;
using Ids = std::vector<int32_t>;
using Words = std::vector<std::string>;

Ids ids(std::span<const int32_t> tokens) { return {tokens.begin(), tokens.end()}; }

/// Lines of these lengths.
TokenLines lines_of(const std::vector<int>& lengths) {
  TokenLines lines;
  for (const int length : lengths) lines.add(Ids(static_cast<size_t>(length), kFirstPiece));
  return lines;
}

const Words kClasses = {"bad", "good"};

TEST(LabelledTokens, NumberWordsByCountAndThenByBytes) {
  LabelledSets sets;
  sets.train = {.text = {"b  a\tb ", "é z a b once"}, .label = {0, 1}};
  sets.dev = {.text = {"new b", "once"}, .label = {1, 1}};
  sets.test = {.text = {"é a"}, .label = {0}};
  LabelledTokens tokens = encode(sets, kClasses, {.min_count = 1});
  EXPECT_EQ(tokens.vocabulary, (Words{"<pad>", "<bos>", "<eos>", "<unk>", "b", "a", "once", "z", "é"}));
  EXPECT_EQ(tokens.vocabulary_size(), 9);
  EXPECT_EQ(tokens.classes, kClasses);
  EXPECT_EQ(tokens.class_count(), 2);
  EXPECT_EQ(ids(tokens.train.lines[0]), (Ids{4, 5, 4}));
  EXPECT_EQ(ids(tokens.train.lines[1]), (Ids{8, 7, 5, 4, 6}));
  EXPECT_EQ(tokens.train.labels, (Ids{0, 1}));
  EXPECT_EQ(ids(tokens.dev.lines[0]), (Ids{kUnk, 4}));
  EXPECT_EQ(tokens.dev.labels, (Ids{1, 1}));
  EXPECT_EQ(ids(tokens.test.lines[0]), (Ids{8, 5}));
  EXPECT_EQ(tokens.test.labels, (Ids{0}));

  tokens = encode(sets, kClasses, {.min_count = 2});
  EXPECT_EQ(tokens.vocabulary, (Words{"<pad>", "<bos>", "<eos>", "<unk>", "b", "a"}));
  EXPECT_EQ(ids(tokens.train.lines[1]), (Ids{kUnk, kUnk, 5, 4, kUnk}));
  EXPECT_EQ(ids(tokens.dev.lines[1]), (Ids{kUnk}));  // a sentence of unknown words stays
}

TEST(LabelledTokens, AreLowerCasedIfSet) {
  LabelledSets sets;
  sets.train = {.text = {"The ÉTÉ", "the été"}, .label = {0, 1}};
  sets.dev = sets.test = {.text = {"THE"}, .label = {0}};
  LabelledTokens tokens = encode(sets, kClasses, {.min_count = 2});
  EXPECT_EQ(tokens.vocabulary, (Words{"<pad>", "<bos>", "<eos>", "<unk>", "the", "été"}));
  EXPECT_EQ(ids(tokens.train.lines[0]), (Ids{4, 5}));
  EXPECT_EQ(ids(tokens.dev.lines[0]), (Ids{4}));
  EXPECT_EQ(ids(tokens.test.lines[0]), (Ids{4}));
  tokens = encode(sets, kClasses, {.min_count = 1, .lower_case = false});
  EXPECT_EQ(tokens.vocabulary, (Words{"<pad>", "<bos>", "<eos>", "<unk>", "The", "the", "ÉTÉ", "été"}));
  EXPECT_EQ(ids(tokens.dev.lines[0]), (Ids{kUnk}));
}

TEST(LabelledTokens, OfASentenceWithoutAWordAreOneUnk) {
  LabelledSets sets;
  sets.train = {.text = {"a", "a"}, .label = {0, 1}};
  sets.dev = {.text = {"a", "", "a"}, .label = {0, 1, 0}};
  sets.test = {.text = {" \t\r"}, .label = {1}};
  const LabelledTokens tokens = encode(sets, kClasses, {});
  EXPECT_EQ(tokens.dev.size(), 3);
  EXPECT_EQ(ids(tokens.dev.lines[1]), (Ids{kUnk}));
  EXPECT_EQ(ids(tokens.test.lines[0]), (Ids{kUnk}));
  EXPECT_EQ(tokens.dev.labels, (Ids{0, 1, 0}));
}

TEST(LabelledTokens, OfTextThatSpellsASpecialTokenAreWords) {
  LabelledSets sets;
  sets.train = {.text = {"<unk> <unk>", "<pad> <pad> a"}, .label = {0, 1}};
  const LabelledTokens tokens = encode(sets, kClasses, {});
  EXPECT_EQ(tokens.vocabulary, (Words{"<pad>", "<bos>", "<eos>", "<unk>", "<pad>", "<unk>"}));
  EXPECT_EQ(ids(tokens.train.lines[0]), (Ids{5, 5}));
  EXPECT_EQ(ids(tokens.train.lines[1]), (Ids{4, 4, kUnk}));
}

TEST(LabelledTokens, LeaveOutLongTrainingSentencesAndNoOthers) {
  LabelledSets sets;
  sets.train = {.text = {"a a a", "b b", "a", "b b b"}, .label = {0, 1, 0, 1}};
  sets.dev = sets.test = {.text = {"b b b b"}, .label = {1}};
  const LabelledTokens tokens = encode(sets, kClasses, {.min_count = 1, .max_words = 2});
  EXPECT_EQ(tokens.vocabulary, (Words{"<pad>", "<bos>", "<eos>", "<unk>", "b", "a"}));  // counted without them
  EXPECT_EQ(tokens.train.size(), 2);
  EXPECT_EQ(ids(tokens.train.lines[0]), (Ids{4, 4}));
  EXPECT_EQ(tokens.train.labels, (Ids{1, 0}));
  EXPECT_EQ(tokens.dev.lines.length(0), 4);
  EXPECT_EQ(tokens.test.lines.length(0), 4);
  EXPECT_EQ(encode(sets, kClasses, {.max_words = 0}).train.size(), 4);
  EXPECT_EQ(encode(sets, kClasses, {.max_words = 3}).train.size(), 4);
}

TEST(LabelledTokens, WithoutAClassOrAWordAreRefused) {
  LabelledSets sets;
  sets.train = {.text = {"a b", "c", "d d"}, .label = {1, 0, 1}};
  EXPECT_EQ(error_of([&] { encode(sets, kClasses, {.max_words = 1}); }),
            "text.max_words = 1 leaves no training sentence of the class good (label 1); every class needs one to be "
            "learned");
  EXPECT_EQ(error_of([&] { encode(sets, kClasses, {.min_count = 3}); }),
            "text.min_count = 3 leaves no word: every word of the training set is rarer");
}

class LabelledCache : public testing::Test {
 protected:
  LabelledCache() {
    data_ = {.name = "toy", .classes = "bad good", .train = path("train"), .dev = path("dev"), .test = path("test")};
    write("train", "0 " + folder_.path().string() + " dull\n1 fine film film\n");  // bytes of no other test's data
    write("dev", "1 fine\n");
    write("test", "0 bore\n");
  }
  void write(const std::string& name, std::string_view text) { test::write_text(folder_ / name, text); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::shared_ptr<const LabelledTokens> get(const WordOptions& text = {}) {
    said_.clear();
    return labelled_tokens(data_, text, [this](const std::string& message) { said_.push_back(message); });
  }

  test::TempFolder folder_;
  LabelledTextOptions data_;
  Words said_;
};

TEST_F(LabelledCache, ReadsEqualDataOnceAProcess) {
  const auto first = get();
  EXPECT_EQ(said_, (Words{"read toy: 2 of 2 training sentences, 1 dev, 1 test; vocabulary 5"}));
  EXPECT_EQ(first->vocabulary.back(), "film");
  EXPECT_EQ(get(), first);
  EXPECT_EQ(said_, Words{});
  data_.name = "the same";
  EXPECT_EQ(get(), first);
  data_files(data_).fingerprint();
  EXPECT_EQ(get(), first);
  for (const char* file : {"train", "dev", "test"}) {
    std::filesystem::rename(path(file), path(file) + ".moved");
    EXPECT_EQ(get(), first);  // missing files are no error while their checksums are known
  }
}

TEST_F(LabelledCache, TellsSettingsApart) {
  const auto first = get();
  EXPECT_NE(get({.min_count = 1}), first);
  EXPECT_NE(get({.max_words = 5}), first);
  data_.classes = "good bad";
  EXPECT_NE(get(), first);
  EXPECT_EQ(get()->classes, (Words{"good", "bad"}));
}

TEST_F(LabelledCache, ReadsChangedDataAgainUnlessTheyWerePlannedWith) {
  const auto first = get();
  write("dev", "1 fine\n0 fine\n");
  EXPECT_EQ(get()->dev.size(), 2);
  data_files(data_).fingerprint();
  write("dev", "1 fine\n0 fine\n0 fine\n");
  EXPECT_EQ(error_of([this] { get(); }),
            path("dev") + " is not the file that this run was planned with; restore it, or plan a new run");
}

TEST_F(LabelledCache, SaysWhichFileIsMissing) {
  std::filesystem::remove(path("dev"));
  EXPECT_EQ(error_of([this] { get(); }), "the corpus toy lacks the file " + path("dev"));
  data_.train_sha256 = data_.dev_sha256 = data_.test_sha256 = std::string(64, '0');
  std::filesystem::remove(path("train"));
  std::filesystem::remove(path("test"));
  EXPECT_EQ(error_of([this] { get(); }), "the corpus toy lacks the file " + path("train"));
}

TEST_F(LabelledCache, HoldsTheLastEight) {
  const auto first = get();
  for (int64_t max_words = 11; max_words <= 17; ++max_words) get({.max_words = max_words});
  EXPECT_EQ(get(), first);
  get({.max_words = 18});
  EXPECT_NE(get(), first);
}

// Their order, limit and dependence on seed and pass: batches_test.cc.
TEST(LabelledBatches, AreThoseOfPairsWithoutTargets) {
  std::vector<int> lengths;
  for (int i = 0; i < 300; ++i) lengths.push_back(1 + i * i % 37);
  lengths.push_back(500);  // longer than a batch
  const TokenLines lines = lines_of(lengths);
  TokenLines empty;
  empty.offsets.assign(lengths.size() + 1, 0);
  const ParallelTokens pairs(lines, empty);
  for (int64_t pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(cut_labelled_batches(lines, 100, 5, pass), cut_batches(pairs, {.tokens = 100}, 5, pass));
    EXPECT_EQ(cut_labelled_batches(lines, 150, 1, pass), cut_batches(pairs, {.tokens = 150}, 1, pass));
  }
}

TEST(LabelledBatches, OfAnEvaluationKeepTheOrder) {
  const TokenLines lines = lines_of({2, 3, 1, 9, 1, 1, 4});
  EXPECT_EQ(evaluation_batches(lines, 9), (std::vector<SentenceIds>{{0, 1, 2}, {3}, {4, 5}, {6}}));
  EXPECT_EQ(evaluation_batches(lines, 8), (std::vector<SentenceIds>{{0, 1}, {2}, {3}, {4, 5}, {6}}));
}

TEST(LabelledBatches, ArePackedOneSentenceAfterAnother) {
  LabelledLines set;
  set.lines.add(Ids{10, 11, 12});
  set.lines.add(Ids{kUnk});
  set.lines.add(Ids{13, 14});
  set.labels = {4, 0, 2};
  const LabelledBatch batch = pack(set, Ids{2, 0, 1});
  EXPECT_EQ(batch.rows.tokens, (Ids{13, 14, 10, 11, 12, kUnk}));
  EXPECT_EQ(batch.rows.positions, (Ids{0, 1, 0, 1, 2, 0}));
  EXPECT_EQ(batch.rows.sentence_ids, (Ids{2, 2, 0, 0, 0, 1}));
  EXPECT_EQ(batch.rows.offsets, (Ids{0, 2, 5, 6}));
  EXPECT_EQ(batch.labels, (Ids{2, 4, 0}));
}

// The numbers are of an independent program, with Python's str.lower() and str.split().
class RealSentences : public testing::Test {
 protected:
  void get(const std::string& tool, const std::string& data) {
    const test::Finished finished =
        test::run({.arguments = {"/usr/bin/env", "python3", "-B", (test::source_root() / "tools/data" / tool).string(),
                                 (test::shared_folder() / "data" / data).string(), folder_.path().string()}});
    ASSERT_EQ(finished.code, 0) << finished.errors;
  }
  /// How many sentences of each class a set has, as it is read.
  static Ids counts(const LabelledText& set, size_t classes) {
    Ids counts(classes);
    for (const int32_t label : set.label) ++counts[static_cast<size_t>(label)];
    return counts;
  }
  static std::string sum(const LabelledText& set) {
    std::string text;
    for (const std::string& sentence : set.text) text += (text.empty() ? "" : "\n") + sentence;
    return sha256(text);
  }
  static int64_t unknown(const LabelledLines& set) {
    return std::count(set.lines.tokens.begin(), set.lines.tokens.end(), kUnk);
  }
  test::TempFolder folder_;
};

TEST_F(RealSentences, OfRtAreSplitAndCountedAsByAnIndependentProgram) {
  TEARLESS_NEEDS_SHARED("data/rt-polarity/rt-polarity.neg.xz");
  get("get_rt.py", "rt-polarity");
  const LabelledTextOptions data{.name = "rt",
                                 .form = LabelledForm::kClassFiles,
                                 .classes = "neg pos",
                                 .encoding = TextEncoding::kWindows1252,
                                 .train = (folder_ / "rt-polarity").string(),
                                 .train_count = 8608,
                                 .dev_count = 964,
                                 .test_count = 1089};
  Words said;
  const LabelledSets sets = read_labelled(data, [&](const std::string& message) { said.push_back(message); });
  EXPECT_EQ(said, (Words{"the corpus rt: 1 of 10662 sentences is in no set: " + (folder_ / "rt-polarity.neg").string() +
                         ":2416"}));
  EXPECT_EQ(counts(sets.train, 2), (Ids{8608 - 4287, 4287}));
  EXPECT_EQ(counts(sets.dev, 2), (Ids{964 - 471, 471}));
  EXPECT_EQ(counts(sets.test, 2), (Ids{1089 - 573, 573}));
  EXPECT_EQ(sum(sets.train), "fbebe889dc38a67207b164084844fce84cdef257acbcdcba00156387447f27ed");
  EXPECT_EQ(sum(sets.dev), "12dc724152f1d16c6a7150126a5cd9a5338c94679ea954b0afda68ff3545cc58");
  EXPECT_EQ(sum(sets.test), "57383f3514020a7133761e7570ba8a4d5ab9d133bd09d4ec1791ecd91ac3225a");
  said.clear();
  const auto tokens = labelled_tokens(data, {}, [&](const std::string& message) { said.push_back(message); });
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[1], "read rt: 8608 of 8608 training sentences, 964 dev, 1089 test; vocabulary 9058");
  EXPECT_EQ(tokens->vocabulary_size(), 9058);
  EXPECT_EQ(Words(tokens->vocabulary.begin() + 4, tokens->vocabulary.begin() + 8), (Words{".", "the", ",", "a"}));
  EXPECT_EQ(tokens->vocabulary.back(), "…");
  EXPECT_EQ(tokens->train.lines.tokens.size(), 181121u);
  EXPECT_EQ(tokens->dev.lines.tokens.size(), 19798u);
  EXPECT_EQ(tokens->test.lines.tokens.size(), 23108u);
  EXPECT_EQ(unknown(tokens->train), 10094);
  EXPECT_EQ(unknown(tokens->dev), 1804);
  EXPECT_EQ(unknown(tokens->test), 2031);
}

TEST_F(RealSentences, OfSst5AreCountedAsByAnIndependentProgram) {
  TEARLESS_NEEDS_SHARED("data/sst5/stsa.fine.train.xz");
  get("get_sst5.py", "sst5");
  const LabelledTextOptions data{.name = "sst5",
                                 .classes = "very_negative negative neutral positive very_positive",
                                 .train = (folder_ / "stsa.fine.train").string(),
                                 .dev = (folder_ / "stsa.fine.dev").string(),
                                 .test = (folder_ / "stsa.fine.test").string()};
  const LabelledSets sets = read_labelled(data, [](const std::string&) {});
  EXPECT_EQ(counts(sets.train, 5), (Ids{1092, 2218, 1624, 2322, 1288}));
  EXPECT_EQ(counts(sets.dev, 5), (Ids{139, 289, 229, 279, 165}));
  EXPECT_EQ(counts(sets.test, 5), (Ids{279, 633, 389, 510, 399}));
  const auto tokens = labelled_tokens(data, {}, [](const std::string&) {});
  EXPECT_EQ(tokens->vocabulary_size(), 8220);
  EXPECT_EQ(tokens->class_count(), 5);
  EXPECT_EQ(ids(tokens->test.lines[0]), (Ids{69, 3931, 6, 69, 3, 6, 30, 66, 9, 295, 4}));
  EXPECT_EQ(tokens->test.labels[0], 1);
  EXPECT_EQ(tokens->train.lines.tokens.size(), 163563u);
  EXPECT_EQ(unknown(tokens->train), 8365);
  EXPECT_EQ(unknown(tokens->dev), 1749);
  EXPECT_EQ(unknown(tokens->test), 3574);
  EXPECT_EQ(labelled_tokens(data, {.min_count = 1}, [](const std::string&) {})->vocabulary_size(), 16585);
}

}  // namespace
}  // namespace tearless::engine::labelled_tokens_test
