#include "engine/data/sentencepiece.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::engine::sentencepiece_test {
namespace {

const ParallelText kSmall{{"hello world", "the cat  sat on the mat", "  leading spaces 2024"},
                          {"hallo Welt", "die Katze saß auf der Matte", "ä ö ü ñ ¿ 日本\u00a0語"}};

std::string round_trip(const Subwords& subwords, const std::string& line) {
  return subwords.join(subwords.encode(line, Side::kSource));
}

std::string error_of(int64_t pieces) {
  return test::error_of([&] { learn_sentencepiece(kSmall, pieces); });
}

TEST(SentencePiece, JoinsBackToTheSameLine) {
  const auto subwords = learn_sentencepiece(kSmall, 70);
  for (const auto* side : {&kSmall.source, &kSmall.target}) {
    for (const std::string& line : *side) EXPECT_EQ(round_trip(*subwords, line), line);
  }
  for (const char* line : {"", " ", "   ", " the", "the ", "  the  cat  ", "Katze2 0ß日", "the\u00a0cat"}) {
    EXPECT_EQ(round_trip(*subwords, line), line);
  }
}

TEST(SentencePiece, CoversEveryCharacterOfTheText) {
  const auto subwords = learn_sentencepiece(kSmall, 60);
  const auto pieces = subwords->spare_pieces();
  for (const char* character : {"ñ", "¿", "日", "語", "\u00a0", "ß", "2"}) {
    EXPECT_NE(std::find(pieces.begin(), pieces.end(), character), pieces.end()) << character;
  }
}

TEST(SentencePiece, IsTheSameEveryTimeAndAfterItsBytesAreRead) {
  const auto subwords = learn_sentencepiece(kSmall, 70);
  EXPECT_EQ(learn_sentencepiece(kSmall, 70)->bytes(), subwords->bytes());
  const auto again = read_sentencepiece(subwords->bytes());
  EXPECT_EQ(again->spare_pieces(), subwords->spare_pieces());
  EXPECT_EQ(again->encode("the mat", Side::kSource), subwords->encode("the mat", Side::kSource));
}

TEST(SentencePiece, RefusesAWordThatWouldCrashTheLibrary) {
  const auto learn = [](size_t characters) {
    ParallelText text = kSmall;
    std::string word;
    for (size_t i = 0; i < characters; ++i) word += i % 3 == 0 ? "ä" : "x";
    text.target[1] = "die " + word + " Katze";
    return test::error_of([&] { learn_sentencepiece(text, 60); });
  };
  EXPECT_EQ(learn(32767), "");
  EXPECT_EQ(learn(32768),
            "data.train: the target side has a word of 32768 characters, but SentencePiece learns from words of at "
            "most 32767; "
            "split the word that begins with \"äxxäxxäxxäxxäxxäxxäx\", or remove its line");
}

TEST(SentencePiece, NamesTheNumberOfPiecesThatATextAllows) {
  EXPECT_EQ(error_of(10),
            "text.pieces = 10 is too few: every character of the training text needs a piece; set it to 40 or more");
  EXPECT_EQ(error_of(40), "");
  EXPECT_EQ(error_of(5000), "text.pieces = 5000 is too many: the training text yields only 179");
  EXPECT_EQ(error_of(179), "");
}

TEST(SentencePiece, JoinsARealRawCorpusBack) {
  DataOptions data{.train = (test::source_root() / "grids/demo/train").string(), .source = "en", .target = "de"};
  const ParallelText train = read_parallel(data_files(data).sets[0]);
  const auto subwords = learn_sentencepiece(train, 1000);
  EXPECT_EQ(subwords->spare_pieces().size(), 996u);
  size_t changed = 0;
  for (const auto* side : {&train.source, &train.target}) {
    for (const std::string& line : *side) changed += round_trip(*subwords, line) != line;
  }
  EXPECT_EQ(changed, 0u);
}

}  // namespace
}  // namespace tearless::engine::sentencepiece_test
