// Plain text as the numbers of its bytes or characters.
#include "engine/data/character_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/hash.h"
#include "engine/data/streams.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::engine::character_text_test {
namespace {

using tearless::test::error_of;
using testing::ElementsAre;
using testing::IsEmpty;
using Texts = std::vector<std::string>;

class CharacterTexts : public testing::Test {
 protected:
  CharacterTexts() {
    data_ = {.name = "toy", .train = path("train"), .dev = path("dev"), .test = path("test")};
    for (const char* set : {"train", "dev", "test"}) write(set, "ab\n");
  }
  void write(const std::string& set, std::string_view text) { test::write_text(folder_ / set, text); }
  std::string path(const std::string& set) const { return (folder_ / set).string(); }
  std::shared_ptr<const CharacterText> get() {
    said_.clear();
    return character_text(data_, text_, [this](const std::string& message) { said_.push_back(message); });
  }
  static std::string joined(const CharacterText& text, const std::vector<int32_t>& tokens) {
    std::string joined;
    for (const int32_t token : tokens) joined += text.symbols.at(static_cast<size_t>(token));
    return joined;
  }

  test::TempFolder folder_;
  CharacterTextOptions data_;
  SymbolOptions text_;
  Texts said_;
};

TEST_F(CharacterTexts, NumberBytesByCountAndThenByValue) {
  write("train", "cab\nbé\nb\xff");
  write("dev", "\xa9\nb");
  write("test", "cc\n");
  const auto text = get();
  EXPECT_THAT(text->symbols, ElementsAre("b", "a", "c", "\xa9", "\xc3", "\xff"));
  EXPECT_EQ(text->vocabulary_size(), 6);
  EXPECT_THAT(text->train, ElementsAre(2, 1, 0, 0, 4, 3, 0, 5));
  EXPECT_THAT(text->dev, ElementsAre(3, 0));
  EXPECT_THAT(text->test, ElementsAre(2, 2));
  EXPECT_THAT(said_, ElementsAre("read toy: 8 training symbols, 2 dev, 2 test; vocabulary 6"));
}

// One, two, three and four bytes; the order of ties is that of the code points.
TEST_F(CharacterTexts, NumberCharactersByCountAndThenByValue) {
  text_.unit = TextUnit::kCharacter;
  write("train", "😀€éz\nz");
  write("dev", "€z");
  write("test", "😀é");
  const auto text = get();
  EXPECT_THAT(text->symbols, ElementsAre("z", "é", "€", "😀"));
  EXPECT_THAT(text->train, ElementsAre(3, 2, 1, 0, 0));
  EXPECT_THAT(text->dev, ElementsAre(2, 0));
  EXPECT_THAT(text->test, ElementsAre(3, 1));
}

TEST_F(CharacterTexts, HaveTheLineFeedAsASymbolIfSet) {
  write("train", "\n\nab\r\nb\nb");
  EXPECT_EQ(joined(*get(), get()->train), "ab\rbb") << "a carriage return is text";
  text_.newlines = true;
  const auto text = get();
  EXPECT_THAT(text->symbols, ElementsAre("\n", "b", "\r", "a"));
  EXPECT_EQ(joined(*text, text->train), "\n\nab\r\nb\nb");
  EXPECT_EQ(joined(*text, text->dev), "ab\n");
}

TEST_F(CharacterTexts, AreReadByteForByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  write("train", "\xef\xbb\xbf" + all);
  write("dev", std::string_view("\0\r", 2));
  text_.newlines = true;
  const auto text = get();
  EXPECT_EQ(text->vocabulary_size(), 256);
  EXPECT_EQ(joined(*text, text->train), "\xef\xbb\xbf" + all);
  EXPECT_EQ(joined(*text, text->dev), std::string("\0\r", 2));
}

TEST_F(CharacterTexts, OfDevAndTestHaveNoSymbolThatTrainingLacks) {
  write("dev", "ab\nb\naé\n");
  EXPECT_EQ(error_of([&] { get(); }), path("dev") +
                                          ":3: the byte 0xC3 does not occur in the training text, so that it has no "
                                          "number; replace it, or train on text that has it");
  text_.unit = TextUnit::kCharacter;
  EXPECT_EQ(error_of([&] { get(); }), path("dev") +
                                          ":3: the character \"é\" does not occur in the training text, so that it "
                                          "has no number; replace it, or train on text that has it");
  write("dev", "ab");
  write("test", "a\x01");
  EXPECT_THAT(error_of([&] { get(); }), testing::StartsWith(path("test") + ":1: the character \"\\x01\" does not"));
  write("train", "ab");
  write("test", "b\n");
  EXPECT_EQ(get()->test.size(), 1u) << "a line feed needs a number only as a symbol";
  text_.newlines = true;
  EXPECT_THAT(error_of([&] { get(); }), testing::StartsWith(path("test") + ":1: the character \"\\n\" does not"));
}

TEST_F(CharacterTexts, ThatAreNotUtf8AreBytesOnly) {
  for (const char* set : {"train", "dev", "test"}) {
    const std::string saved = test::read_text(path(set));
    write(set, "ab\nab\na\xc3\nb");
    text_.unit = TextUnit::kCharacter;
    EXPECT_EQ(error_of([&] { get(); }), path(set) +
                                            ":3: not valid UTF-8; convert the file, for example with iconv, or set "
                                            "text.unit = \"byte\"");
    write(set, saved);
  }
  write("train", "a\xc3\xc3");
  write("dev", "\xc3");
  write("test", "\xc3");
  text_.unit = TextUnit::kByte;
  EXPECT_THAT(get()->dev, ElementsAre(0));
}

TEST_F(CharacterTexts, WithoutASymbolAreRefused) {
  for (const char* set : {"train", "dev", "test"}) {
    const std::string saved = test::read_text(path(set));
    write(set, "");
    EXPECT_EQ(error_of([&] { get(); }), path(set) + " is empty: put the text into it");
    write(set, "\n\n");
    EXPECT_EQ(error_of([&] { get(); }), path(set) + " has nothing but ends of lines: put the text into it");
    write(set, saved);
  }
  text_.newlines = true;
  write("dev", "\n");
  EXPECT_EQ(get()->dev.size(), 1u);
  write("dev", "\x1f\x8b");
  EXPECT_EQ(error_of([&] { get(); }), path("dev") + " is compressed with gzip; unpack it with gunzip");
}

TEST_F(CharacterTexts, AreReadOnceAProcessAndAgainWithOtherSettings) {
  write("train", folder_.path().string() + "ab");  // bytes of no other test's data
  const auto first = get();
  EXPECT_EQ(said_.size(), 1u);
  data_.name = "the same";
  EXPECT_EQ(get(), first);
  EXPECT_THAT(said_, IsEmpty());
  data_files(data_).fingerprint();
  std::filesystem::rename(path("dev"), path("dev") + ".moved");
  EXPECT_EQ(get(), first) << "a missing file is no error while its checksum is known";
  std::filesystem::rename(path("dev") + ".moved", path("dev"));
  text_.unit = TextUnit::kCharacter;
  EXPECT_NE(get(), first);
  EXPECT_EQ(said_.size(), 1u);
  text_ = {};
  EXPECT_EQ(get(), first);
  write("train", folder_.path().string() + "ab\n");
  text_.newlines = true;
  data_.train_sha256 = "";
  EXPECT_NE(get(), first);
}

TEST_F(CharacterTexts, ThatAreMissingOrOthersThanPlannedAreRefused) {
  std::filesystem::rename(path("dev"), path("dev") + ".moved");
  data_.how_to_get = "cut it";
  EXPECT_EQ(error_of<DataError>([&] { get(); }), "the text toy lacks the file " + path("dev") + ": cut it");
  std::filesystem::rename(path("dev") + ".moved", path("dev"));
  data_files(data_).fingerprint();
  write("dev", "ba\n");
  EXPECT_EQ(error_of<DataError>([&] { get(); }),
            path("dev") + " is not the file that this run was planned with; restore it, or plan a new run");
  data_.train_sha256 = data_.dev_sha256 = data_.test_sha256 = std::string(64, '0');
  for (const char* set : {"train", "dev", "test"}) std::filesystem::remove(path(set));
  EXPECT_EQ(error_of<DataError>([&] { get(); }), "the text toy lacks the file " + path("train") + ": cut it");
}

// The counts are of an independent program.
TEST_F(CharacterTexts, OfText8AreCountedAsByAnIndependentProgram) {
  const std::string packed = "data/charlm/text8.first6877825.xz";
  TEARLESS_NEEDS_SHARED(packed);
  const test::Finished finished = test::run(
      {.arguments = {"/usr/bin/env", "python3", "-B", (test::source_root() / "tools/data/get_text8.py").string(),
                     (test::shared_folder() / packed).parent_path().string(), folder_.path().string()}});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  for (const char* set : {"train", "dev", "test"}) std::filesystem::rename(path(std::string(set) + ".txt"), path(set));
  const auto text = get();
  std::string symbols;
  for (const std::string& symbol : text->symbols) symbols += symbol;
  EXPECT_EQ(symbols, " etaniorshldcumfgpwbyvkzxjq");
  EXPECT_EQ(text->train.size(), 6190043u);
  EXPECT_EQ(text->dev.size(), 343891u);
  EXPECT_EQ(text->test.size(), 343891u);
  const std::string all = joined(*text, text->train) + joined(*text, text->dev) + joined(*text, text->test);
  EXPECT_EQ(sha256(all), "8c5551457ad85e6f248e016443493f940756c7582473e6bbfcafcbe27fc98836");
  EXPECT_EQ(Streams(text->train, 22).segments(512), 550);
  text_.unit = TextUnit::kCharacter;
  EXPECT_EQ(get()->train, text->train) << "in ASCII a byte is a character";
}

}  // namespace
}  // namespace tearless::engine::character_text_test
