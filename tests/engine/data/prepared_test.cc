// From raw files to tokens, and the cache between: shared, safe under a race, regenerated when damaged.
#include "engine/data/prepared.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/words.h"
#include "engine/data/corpus.h"
#include "engine/data/token_file.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/privileges.h"

namespace tearless::engine::prepared_test {
namespace {

using Lines = std::vector<std::string>;
using Ids = std::vector<int32_t>;

Ids ids(std::span<const int32_t> tokens) { return {tokens.begin(), tokens.end()}; }

/// A corpus of a few lines, and a cache of its own.
class Preparation : public testing::Test {
 public:
  ~Preparation() override { ::unsetenv("TEARLESS_CACHE"); }

 protected:
  Preparation() {
    ::setenv("TEARLESS_CACHE", (folder_ / "cache").c_str(), /*overwrite=*/1);
    data_.name = "toy";
    data_.source = "src";
    data_.target = "tgt";
    data_.train = (folder_ / "train").string();
    data_.dev = (folder_ / "dev").string();
    data_.test = (folder_ / "test").string();
    // Source tokens: b 3, a 2. Target tokens: x 3, b 2, y 1.
    write("train.src", "b a\n\nb a b\nlost\n");
    write("train.tgt", "x b\nlost\nx  x b y\n \n");
    write("dev.src", "a q\n\n");
    write("dev.tgt", "y  a\nz\n");
    write("test.src", "b\n");
    write("test.tgt", "x\rx\n");
    text_.kind = TextKind::kSegmented;
  }

  void write(const std::string& name, std::string_view text) { test::write_text(folder_ / name, text); }
  Prepared make() {
    said_.clear();
    return prepare(data_, text_, [this](const std::string& line) { said_.push_back(line); });
  }
  std::string error_of_make() {
    return test::error_of([this] { make(); });
  }
  std::string key() {
    DataOptions data = data_;
    data_files(data).fingerprint();
    return preparation_key(data, text_);
  }
  std::filesystem::path token_file() { return prepared_folder(key()) / "tokens.bin"; }

  test::TempFolder folder_;
  DataOptions data_;
  TextOptions text_;
  Lines said_;
};

// The files of each set, and both sides.
TEST_F(Preparation, RefusesSubwordMarksInAnySetBeforeItLearns) {
  text_ = {.kind = TextKind::kBpe, .merges = 2};
  for (const char* file : {"train.src", "train.tgt", "dev.src", "dev.tgt", "test.src", "test.tgt"}) {
    const std::string good = test::read_text(folder_ / file);
    write(file, "x@@\n" + good.substr(good.find('\n') + 1));
    EXPECT_THAT(error_of_make(), testing::StartsWith((folder_ / file).string() + ":1: the word \"x@@\" ends with @@"));
    EXPECT_FALSE(std::filesystem::exists(token_file()));
    write(file, good);
  }
  text_ = {.kind = TextKind::kSentencepiece, .pieces = 13};
  write("test.tgt", "x\u2581x\n");
  EXPECT_THAT(error_of_make(), testing::StartsWith((folder_ / "test.tgt").string() + ":1: there is \u2581 (U+2581)"));
}

TEST_F(Preparation, RefusesALineOfDevOrTestThatIsTooLongToBeEvaluated) {
  const auto words = [](size_t count) {
    std::string line;
    for (size_t i = 0; i < count; ++i) line += "x ";
    return line;
  };
  const auto refusal = [&](const std::string& file, size_t line, size_t count, size_t subwords) {
    return testing::StartsWith(fmt::format("{}:{} has {} words, {} subwords, and a line of dev or test may have 10000 ",
                                           (folder_ / file).string(), line, count, subwords));
  };
  write("dev.tgt", "y\n" + words(10'001) + "\n");
  EXPECT_THAT(error_of_make(), refusal("dev.tgt", 2, 10'001, 10'001));
  write("dev.tgt", "y\n" + words(10'000) + "\n");
  EXPECT_EQ(make().dev.target.length(1), 10'000);
  write("test.src", words(10'000) + "\n");
  EXPECT_THAT(error_of_make(), refusal("test.src", 1, 10'000, 10'001)) << "EOS is a subword of the source";
  EXPECT_FALSE(std::filesystem::exists(token_file()));
  write("test.src", "b\n");
  write("train.tgt", "x b\nlost\n" + words(10'001) + "\n \n");
  text_.max_words = 0;
  EXPECT_EQ(error_of_make(), "") << "batches of training have limits of their own";
}

TEST_F(Preparation, OfFilesFromWindowsIsThatOfTheSameTextWithPlainLineEnds) {
  text_ = {.kind = TextKind::kSentencepiece, .pieces = 13};
  const Prepared plain = make();
  for (const char* file : {"train.src", "train.tgt", "dev.src", "dev.tgt", "test.src"}) {
    std::string text = "\xEF\xBB\xBF";
    for (const char c : test::read_text(folder_ / file)) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
    write(file, text);
  }
  const Prepared windows = make();
  EXPECT_EQ(windows.vocabulary.pieces, plain.vocabulary.pieces);
  EXPECT_EQ(windows.train.source.tokens, plain.train.source.tokens);
  EXPECT_EQ(windows.dev.target.tokens, plain.dev.target.tokens);
  EXPECT_EQ(windows.dev_reference, plain.dev_reference);
}

TEST_F(Preparation, OrdersTheVocabularyByFrequencyThenBytes) {
  const Prepared prepared = make();
  EXPECT_EQ(prepared.vocabulary.pieces, (Lines{"<pad>", "<bos>", "<eos>", "<unk>", "b", "x", "a", "y"}));
  // Output vocabulary: the tokens of the training targets, EOS and UNK. Only the source has a.
  EXPECT_EQ(prepared.vocabulary.in_target, (std::vector<uint8_t>{0, 0, 1, 1, 1, 1, 0, 1}));
}

TEST_F(Preparation, LeavesEmptyTrainingPairsOutAndKeepsEveryLineOfDevAndTest) {
  const Prepared prepared = make();
  ASSERT_EQ(prepared.train.size(), 2);
  EXPECT_EQ(ids(prepared.train.source[0]), (Ids{4, 6, kEos}));
  EXPECT_EQ(ids(prepared.train.target[0]), (Ids{5, 4}));
  EXPECT_EQ(ids(prepared.train.target[1]), (Ids{5, 5, 4, 7}));
  ASSERT_EQ(prepared.dev.size(), 2);
  EXPECT_EQ(ids(prepared.dev.source[0]), (Ids{6, kUnk, kEos}));
  EXPECT_EQ(ids(prepared.dev.source[1]), (Ids{kEos}));
  EXPECT_EQ(ids(prepared.dev.target[0]), (Ids{7, 6}));  // 6 is not in the output vocabulary: the model counts it as UNK
  EXPECT_EQ(ids(prepared.dev.target[1]), (Ids{kUnk}));
  EXPECT_EQ(prepared.dev_reference, (Lines{"y a", "z"}));
  EXPECT_EQ(prepared.test_reference, (Lines{"x x"}));
}

TEST_F(Preparation, ComparesHypothesesWithJoinedWordsForSegmentedText) {
  write("test.tgt", "x@@ b y\n");
  const Prepared prepared = make();
  EXPECT_EQ(prepared.test_reference, (Lines{"xb y"}));
  EXPECT_EQ(prepared.test.target[0].size(), 3u);
}

TEST_F(Preparation, SpellsTokensAsText) {
  const Prepared prepared = make();
  EXPECT_EQ(prepared.to_text(Ids{kBos, 5, kPad, kUnk, 4, kEos, 7}), "x <unk> b y");
  EXPECT_EQ(prepared.to_text(Ids{}), "");
  const ParallelTokens encoded = prepared.encode_source(Lines{"a b", ""});
  ASSERT_EQ(encoded.size(), 2);
  EXPECT_EQ(ids(encoded.source[0]), (Ids{6, 4, kEos}));
  EXPECT_EQ(ids(encoded.source[1]), (Ids{kEos}));
  EXPECT_EQ(ids(encoded.target[0]), Ids{});
}

TEST_F(Preparation, NumbersThePiecesOfEachSideApart) {
  text_.vocabulary = VocabularyKind::kPerSide;
  for (const bool from_cache : {false, true}) {
    const Prepared prepared = make();
    EXPECT_EQ(said_.empty(), from_cache);
    EXPECT_EQ(prepared.vocabulary.source_pieces, (Lines{"<pad>", "<bos>", "<eos>", "<unk>", "b", "a"}));
    EXPECT_EQ(prepared.vocabulary.pieces, (Lines{"<pad>", "<bos>", "<eos>", "<unk>", "x", "b", "y"}));
    EXPECT_EQ(prepared.vocabulary.in_target, (std::vector<uint8_t>{0, 0, 1, 1, 1, 1, 1}));
    EXPECT_EQ(prepared_vocabulary_sizes(key()), (VocabularySizes{.source = 6, .target = 7}));
    EXPECT_EQ(ids(prepared.train.source[1]), (Ids{4, 5, 4, kEos}));
    EXPECT_EQ(ids(prepared.train.target[1]), (Ids{4, 4, 5, 6}));
    EXPECT_EQ(ids(prepared.dev.source[0]), (Ids{5, kUnk, kEos}));
    EXPECT_EQ(ids(prepared.dev.target[0]), (Ids{6, kUnk})) << "a is a piece of the source alone";
    EXPECT_EQ(ids(prepared.encode_source(Lines{"a b x"}).source[0]), (Ids{5, 4, kUnk, kEos}));
    EXPECT_EQ(prepared.to_text(Ids{5, 4}), "b x");
    EXPECT_EQ(prepared.to_text(Ids{5, 4, kEos}, Side::kSource), "a b");
  }
}

TEST_F(Preparation, LearnsSubwordsFromBothSidesAlsoWhereTheirNumbersAreApart) {
  for (const TextKind kind : {TextKind::kBpe, TextKind::kSentencepiece}) {
    text_ = {.kind = kind, .merges = 3, .pieces = 13};
    const Prepared joint = make();
    text_.vocabulary = VocabularyKind::kPerSide;
    const Prepared apart = make();
    EXPECT_EQ(apart.subwords->bytes(), joint.subwords->bytes());
    EXPECT_EQ(apart.to_text(apart.train.target[1]), joint.to_text(joint.train.target[1]));
    EXPECT_LT(apart.vocabulary.sizes().source, joint.vocabulary.size());
    EXPECT_LT(apart.vocabulary.sizes().target, joint.vocabulary.size());
  }
}

// Of the source "ab" is the most frequent pair, of the target "cd"; of both it is "cd", and "ab" is the second.
TEST_F(Preparation, LearnsMergesFromTheTextOfEachSideIfSet) {
  write("train.src", "ab ab cd\n");
  write("train.tgt", "cd cd cd ab\n");
  for (const char* set : {"dev", "test"}) {
    write(std::string(set) + ".src", "ab cd\n");
    write(std::string(set) + ".tgt", "ab cd\n");
  }
  text_ = {.kind = TextKind::kBpe, .merges = 1};
  const auto spelled = [](const Prepared& prepared, std::span<const int32_t> tokens, Side side) {
    Lines pieces;
    for (const int32_t token : tokens) pieces.push_back(prepared.vocabulary.pieces_of(side)[token]);
    return pieces;
  };
  const Prepared joint = make();
  EXPECT_EQ(spelled(joint, joint.dev.source[0], Side::kSource), (Lines{"a@@", "b", "cd", "<eos>"}));
  EXPECT_EQ(spelled(joint, joint.dev.target[0], Side::kTarget), (Lines{"a@@", "b", "cd"}));
  text_.learned = LearnedFrom::kPerSide;
  for (const VocabularyKind vocabulary : {VocabularyKind::kJoint, VocabularyKind::kPerSide}) {
    text_.vocabulary = vocabulary;
    for (const bool from_cache : {false, true}) {
      const Prepared apart = make();
      EXPECT_EQ(said_.empty(), from_cache);
      const Lines source = {"ab", "c@@", "d", "<eos>"};
      EXPECT_EQ(spelled(apart, apart.dev.source[0], Side::kSource), source);
      EXPECT_EQ(spelled(apart, apart.dev.target[0], Side::kTarget), (Lines{"a@@", "b", "cd"}));
      EXPECT_EQ(spelled(apart, apart.encode_source(Lines{"ab cd"}).source[0], Side::kSource), source);
      EXPECT_EQ(apart.to_text(apart.dev.target[0]), "ab cd");
      EXPECT_EQ(apart.to_text(apart.dev.source[0], Side::kSource), "ab cd");
      EXPECT_EQ(apart.vocabulary.size(), vocabulary == VocabularyKind::kJoint ? 4 + 6 : 4 + 3);
    }
  }
}

TEST_F(Preparation, LearnsAsManyPiecesForEachSideIfSet) {
  write("train.src", "lost lost lost\n");
  write("train.tgt", "ab cd ab cd\n");
  write("dev.src", "lo\n");
  write("dev.tgt", "ab\n");
  text_ = {.kind = TextKind::kSentencepiece, .pieces = 13, .vocabulary = VocabularyKind::kPerSide};
  text_.learned = LearnedFrom::kPerSide;
  text_.pieces = 11;
  for (const bool from_cache : {false, true}) {
    const Prepared apart = make();
    EXPECT_EQ(said_.empty(), from_cache);
    EXPECT_EQ(apart.vocabulary.sizes(), (VocabularySizes{11, 11})) << "all pieces, those that training lacks too";
    for (const auto& [side, others] : {std::pair(Side::kSource, "abcd"), {Side::kTarget, "lost"}}) {
      const Lines& pieces = apart.vocabulary.pieces_of(side);
      for (size_t id = kFirstPiece; id < pieces.size(); ++id) {
        EXPECT_EQ(pieces[id].find_first_of(others), std::string::npos) << pieces[id];
      }
    }
    for (const int32_t token : ids(apart.dev.source[0])) EXPECT_NE(token, kUnk);
    EXPECT_EQ(apart.to_text(apart.train.target[0]), "ab cd ab cd");
  }
  text_.vocabulary = VocabularyKind::kJoint;
  const Prepared joint = make();
  EXPECT_EQ(joint.vocabulary.size(), 4 + 2 * 7 - 1) << "the mark of a space is a piece of both";
  for (const int32_t token : ids(joint.dev.source[0])) EXPECT_NE(token, kUnk);
  text_.pieces = 40;
  EXPECT_EQ(error_of_make(), "text.pieces = 40 is too many: the source side of the training text yields only 17");
  text_.pieces = 8;
  EXPECT_EQ(error_of_make(),
            "text.pieces = 8 is too few: every character of the source side of the training text needs a piece; set it "
            "to 9 or more");
  write("train.tgt", "abe cd\n");
  text_.pieces = 9;
  EXPECT_EQ(error_of_make(),
            "text.pieces = 9 is too few: every character of the target side of the training text needs a piece; set it "
            "to 10 or more");
}

// As JoeyNMT's max_sent_length. EOS is not counted.
TEST_F(Preparation, CountsTheSubwordsOfSegmentedTextAsWords) {
  write("train.src", "a b\na@@ b@@ c\na\n");
  write("train.tgt", "x y\nx\nx@@ y@@ z\n");
  text_.max_words = 2;
  EXPECT_EQ(make().train.size(), 1);
  text_.max_words = 3;
  EXPECT_EQ(make().train.size(), 3);
}

TEST_F(Preparation, OfSegmentedTextLearnsNothingOfEitherSide) {
  const std::string before = key();
  const Prepared joint = make();
  text_.learned = LearnedFrom::kPerSide;
  EXPECT_EQ(key(), before);
  EXPECT_EQ(token_file_bytes(make()), token_file_bytes(joint));
}

// "lo" is learned on the way to "lost", and dev may need it.
TEST_F(Preparation, HasAllPiecesOfSentencepieceAlsoThoseThatTheTrainingTextIsNotMadeOf) {
  write("train.src", "lost lost lost\n");
  write("train.tgt", "lost lost lost\n");
  write("dev.src", "lo\n");
  write("dev.tgt", "x\n");
  text_ = {.kind = TextKind::kSentencepiece, .pieces = 13};
  const Prepared prepared = make();
  const std::set<std::string> pieces(prepared.vocabulary.pieces.begin(), prepared.vocabulary.pieces.end());
  for (const std::string& piece : prepared.subwords->spare_pieces()) EXPECT_TRUE(pieces.contains(piece)) << piece;
  std::set<int32_t> of_training;
  for (const int32_t token : ids(prepared.train.target[0])) of_training.insert(token);
  for (const int32_t token : ids(prepared.dev.source[0])) {
    EXPECT_NE(token, kUnk);
    EXPECT_FALSE(of_training.contains(token));
  }
}

// Counts in the training text: b 3 + 2, x 3, a 2, y 1.
TEST_F(Preparation, MakesRarePiecesUnknown) {
  text_.min_count = 3;
  const Prepared joint = make();
  EXPECT_EQ(joint.vocabulary.pieces, (Lines{"<pad>", "<bos>", "<eos>", "<unk>", "b", "x"}));
  EXPECT_EQ(joint.vocabulary.in_target, (std::vector<uint8_t>{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(ids(joint.train.source[0]), (Ids{4, kUnk, kEos}));
  EXPECT_EQ(ids(joint.train.target[1]), (Ids{5, 5, 4, kUnk}));
  text_.min_count = 2;
  EXPECT_EQ(make().vocabulary.pieces, (Lines{"<pad>", "<bos>", "<eos>", "<unk>", "b", "x", "a"}));

  text_.vocabulary = VocabularyKind::kPerSide;
  text_.min_count = 3;
  const Prepared apart = make();
  EXPECT_EQ(apart.vocabulary.source_pieces, (Lines{"<pad>", "<bos>", "<eos>", "<unk>", "b"}));
  EXPECT_EQ(apart.vocabulary.pieces, (Lines{"<pad>", "<bos>", "<eos>", "<unk>", "x"}));
  EXPECT_EQ(ids(apart.train.target[1]), (Ids{4, 4, kUnk, kUnk}));
  text_.min_count = 9;
  EXPECT_EQ(error_of_make(), "text.min_count = 9 leaves no piece: all of the training text are rarer; lower it");
}

TEST_F(Preparation, HasNoKeyWithoutTheChecksumsOfItsFiles) {
  EXPECT_THROW(preparation_key(data_, text_), std::logic_error);
}

// A corpus that nobody asked to prepare otherwise keeps its entry of the cache.
TEST_F(Preparation, HasTheSameKeyWithTheVocabularyAsItAlwaysWas) {
  const std::string before = key();
  text_.min_count = 1;
  text_.vocabulary = VocabularyKind::kJoint;
  EXPECT_EQ(key(), before);
  text_.kind = TextKind::kBpe;
  const std::string bpe = key();
  text_.learned = LearnedFrom::kJoint;
  EXPECT_EQ(key(), bpe);
  text_.learned = LearnedFrom::kPerSide;
  EXPECT_NE(key(), bpe);
  text_.kind = TextKind::kSegmented;
  text_.min_count = 2;
  const std::string cut = key();
  EXPECT_NE(cut, before);
  text_.min_count = 1;
  text_.vocabulary = VocabularyKind::kPerSide;
  EXPECT_NE(key(), before);
  EXPECT_NE(key(), cut);
}

TEST_F(Preparation, ReadsTheNamesOfSpecialTokensInTextAsWords) {
  write("dev.src", "<eos> <unk>\n\n");
  EXPECT_EQ(ids(make().dev.source[0]), (Ids{kUnk, kUnk, kEos}));
}

TEST_F(Preparation, IsDoneOnceAndSharedByEqualSettings) {
  EXPECT_FALSE(is_prepared(key()));
  EXPECT_EQ(prepared_vocabulary_sizes(key()), std::nullopt);
  const Prepared first = make();
  EXPECT_EQ(said_, (Lines{"preparing toy: 2 of 4 training pairs, 2 dev, 1 test; learning subwords (segmented)"}));
  EXPECT_TRUE(is_prepared(key()));
  EXPECT_EQ(prepared_vocabulary_sizes(key()), (VocabularySizes{8, 8}));

  const Prepared second = make();
  EXPECT_TRUE(said_.empty());
  EXPECT_EQ(second.vocabulary.pieces, first.vocabulary.pieces);
  EXPECT_EQ(second.vocabulary.in_target, first.vocabulary.in_target);
  EXPECT_EQ(second.train.source.tokens, first.train.source.tokens);
  EXPECT_EQ(second.train.target.offsets, first.train.target.offsets);
  EXPECT_EQ(second.dev.target.tokens, first.dev.target.tokens);
  EXPECT_EQ(second.test_reference, first.test_reference);
  EXPECT_EQ(second.to_text(Ids{5, 4}), "x b");
}

TEST_F(Preparation, IsTheSameAfterTheCacheForEveryKindOfText) {
  for (const TextKind kind : {TextKind::kBpe, TextKind::kSentencepiece}) {
    text_ = {.kind = kind, .merges = 3, .pieces = 13};
    const Prepared made = make();
    EXPECT_EQ(said_.size(), 1u);
    const Prepared loaded = make();
    EXPECT_TRUE(said_.empty());
    EXPECT_EQ(ids(loaded.encode_source(Lines{"a lost b"}).source[0]),
              ids(made.encode_source(Lines{"a lost b"}).source[0]));
    EXPECT_EQ(loaded.to_text(loaded.train.target[1]), kind == TextKind::kBpe ? "x x b y" : "x  x b y");
  }
}

TEST_F(Preparation, KeepsTabsOfRawText) {
  write("train.src", "a\tb\n c  d\n");
  write("train.tgt", "x\t\ty\n x\n");
  text_ = {.kind = TextKind::kSentencepiece, .pieces = 13, .max_words = 0};
  const Prepared prepared = make();
  EXPECT_EQ(prepared.to_text(prepared.train.source[0]), "a\tb");
  EXPECT_EQ(prepared.to_text(prepared.train.source[1]), " c  d");
  EXPECT_EQ(prepared.to_text(prepared.train.target[0]), "x\t\ty");
}

TEST_F(Preparation, DependsOnBytesAndTextSettingsNotOnPaths) {
  const std::string before = key();
  std::filesystem::create_directory(folder_ / "moved");
  for (const char* set : {"train", "dev", "test"}) {
    for (const char* side : {".src", ".tgt"}) {
      std::filesystem::rename(folder_ / (std::string(set) + side), folder_ / "moved" / (std::string(set) + side));
    }
  }
  data_.name = "other";
  data_.train = (folder_ / "moved/train").string();
  data_.dev = (folder_ / "moved/dev").string();
  data_.test = (folder_ / "moved/test").string();
  EXPECT_EQ(key(), before);
  text_.merges = 5;  // which text of this kind does not have
  EXPECT_EQ(key(), before);
  text_.max_words = 5;
  EXPECT_NE(key(), before);
}

TEST_F(Preparation, NeedsNoRawFilesAfterwards) {
  data_files(data_).fingerprint();
  make();
  for (const char* name : {"train.src", "train.tgt", "dev.src", "dev.tgt", "test.src", "test.tgt"}) {
    std::filesystem::remove(folder_ / name);
  }
  EXPECT_EQ(make().train.size(), 2);
  text_.max_words = 7;
  EXPECT_EQ(error_of_make(), "the corpus toy lacks the file " + data_.train + ".src");
}

TEST_F(Preparation, RefusesRawFilesThatChanged) {
  data_files(data_).fingerprint();
  make();
  write("dev.tgt", "y  b\nz\n");
  EXPECT_EQ(error_of_make(),
            data_.dev + ".src and " + data_.dev +
                ".tgt are not the files that this run was planned with; restore those, or plan a new run");
}

TEST_F(Preparation, RegeneratesADamagedEntryAndSaysSo) {
  make();
  const std::string good = test::read_text(token_file());
  std::string flipped = good;
  flipped[flipped.size() - 3] ^= 1;
  const std::vector<std::pair<std::string, std::string>> damages = {
      {flipped, "its checksum is wrong"},
      {good.substr(0, good.size() / 2), "its checksum is wrong"},
      {"", "it has no first line"}};
  for (const auto& [bytes, reason] : damages) {
    test::write_text(token_file(), bytes);
    EXPECT_EQ(make().vocabulary.size(), 8);
    ASSERT_EQ(said_.size(), 2u);
    EXPECT_EQ(said_[0], token_file().string() + " is damaged (" + reason + "); preparing the corpus again");
    EXPECT_EQ(test::read_text(token_file()), good);
  }
  test::write_text(token_file(), "{\"format\": 1}\n");
  EXPECT_EQ(prepared_vocabulary_sizes(key()), std::nullopt);
  EXPECT_EQ(make().vocabulary.size(), 8);
}

TEST_F(Preparation, RegeneratesAnEntryWithWrongTokensUnderARightChecksum) {
  Prepared prepared = make();
  const std::string good = test::read_text(token_file());
  prepared.vocabulary.pieces.pop_back();
  prepared.vocabulary.in_target.pop_back();
  test::write_text(token_file(), token_file_bytes(prepared));
  EXPECT_EQ(make().vocabulary.size(), 8);
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_[0],
            token_file().string() + " is damaged (a token is outside the vocabulary); preparing the corpus again");
  EXPECT_EQ(test::read_text(token_file()), good);
}

TEST_F(Preparation, IgnoresWhatACrashLeftBehind) {
  const auto partial = prepared_folder(key()).string() + ".partial";
  std::filesystem::create_directories(partial);
  test::write_text(std::filesystem::path(partial) / "tokens.bin", "half");
  EXPECT_EQ(make().vocabulary.size(), 8);
  EXPECT_FALSE(std::filesystem::exists(partial));
}

TEST_F(Preparation, IsDoneOnceForManyProcessesAtATime) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += fmt::format("word{} and{} more{}\n", i, i % 1000, i % 77);
  write("train.src", text);
  write("train.tgt", text);
  text_ = {.kind = TextKind::kBpe, .merges = 200};
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      int code = 99;  // of a child that threw
      try {
        code = make().train.size() == 20000 ? static_cast<int>(said_.size()) : 98;
      } catch (...) {
      }
      ::_exit(code);
    }
    children.push_back(pid);
  }
  int made = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_LE(WEXITSTATUS(status), 1);
    made += WEXITSTATUS(status);
  }
  EXPECT_EQ(made, 1);
}

TEST_F(Preparation, SaysThatTheCacheCannotBeWritten) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  std::filesystem::create_directory(folder_ / "cache");
  std::filesystem::permissions(folder_ / "cache", std::filesystem::perms(0555));
  const test::WithoutRoot plain_user;
  EXPECT_EQ(error_of_make(), "cannot create the folder " + (folder_ / "cache/prepared").string() +
                                 ": Permission denied; check the folder's permissions");
}

TEST(PreparedFolder, IsTheFirstOfThreeFolders) {
  const auto saved = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  const std::string xdg = saved("XDG_CACHE_HOME"), home = saved("HOME");
  ::setenv("HOME", "/home/her", 1);
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  ::setenv("TEARLESS_CACHE", "/own", 1);
  EXPECT_EQ(prepared_folder("k"), "/own/prepared/k");
  ::unsetenv("TEARLESS_CACHE");
  EXPECT_EQ(prepared_folder("k"), "/xdg/tearless/prepared/k");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(prepared_folder("k"), "/home/her/.cache/tearless/prepared/k");
  ::setenv("HOME", home.c_str(), 1);
  if (!xdg.empty()) ::setenv("XDG_CACHE_HOME", xdg.c_str(), 1);
}

// IWSLT'15's development sets stand in for a corpus: tst2012 to learn from, tst2013 to encode.
TEST_F(Preparation, RoundTripsARealTokenisedCorpus) {
  TEARLESS_NEEDS_SHARED("data/iwslt15-en-vi/dev.vi");
  const auto folder = test::shared_folder() / "data/iwslt15-en-vi";
  data_.source = "en";
  data_.target = "vi";
  data_.train = (folder / "dev").string();
  data_.dev = data_.test = (folder / "test").string();
  text_ = {.kind = TextKind::kBpe, .merges = 3000, .max_words = 0};
  const Prepared prepared = make();
  EXPECT_EQ(prepared.train.size(), 1553);
  EXPECT_EQ(prepared.dev.size(), 1268);
  const ParallelText train = read_parallel(data_files(data_).sets[0]);
  int64_t unknown = 0;
  for (int64_t i = 0; i < prepared.train.size(); ++i) {
    const auto plain = [](const std::string& line) {
      std::string words;
      for (const std::string_view word : split_words(line)) words.append(words.empty() ? "" : " ").append(word);
      return words;
    };
    EXPECT_EQ(prepared.to_text(prepared.train.target[i]), plain(train.target[static_cast<size_t>(i)]));
    for (const int32_t id : prepared.train.source[i]) unknown += id == kUnk;
  }
  EXPECT_EQ(unknown, 0);  // the restriction to a language's own pieces never touches what they were taken from
}

}  // namespace
}  // namespace tearless::engine::prepared_test
