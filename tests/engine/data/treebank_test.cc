// Treebanks as token numbers: the order of the vocabulary, what is unknown, what is left out, and the cache in the
// process.
#include "engine/data/treebank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/words.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::engine::treebank_test {
namespace {

using tearless::test::error_of;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;

/// A sentence in CoNLL of words such as "form|FINE|COARSE|head|label".
std::string conll(std::string_view words) {
  std::string text;
  for (const std::string_view word : split_words(words)) {
    Texts part = {""};
    for (const char c : word) c == '|' ? part.emplace_back() : part.back() += c;
    const auto number = 1 + std::count(text.begin(), text.end(), '\n');
    text += fmt::format("{}\t{}\t_\t{}\t{}\t_\t{}\t{}\t_\t_\n", number, part.at(0), part.at(2), part.at(1), part.at(3),
                        part.at(4));
  }
  return text + "\n";
}

constexpr const char* kCrossing = "x|NN|N|3|obj y|NN|N|4|obj z|VB|V|0|root w|NN|N|3|obj";  // x ← z, y ← w
constexpr const char* kBSawB = "b|NN|N|2|nsubj saw|VB|V|0|root b|NN|N|2|obj";
constexpr const char* kEteWas = "été|NN|N|2|nsubj:pass was|VB|V|0|root";

class Treebanks : public testing::Test {
 protected:
  Treebanks() {
    data_ = {.name = "toy", .train = path("train"), .dev = path("dev"), .test = path("test")};
    write("train", {kBSawB, kEteWas});
    write("dev", {kEteWas});
    write("test", {kEteWas});
  }
  void write(const std::string& set, const std::vector<std::string>& sentences) {
    std::string text;
    for (const std::string& sentence : sentences) text += conll(sentence);
    test::write_text(folder_ / set, text);
  }
  std::string path(const std::string& set) const { return (folder_ / set).string(); }
  std::shared_ptr<const Treebank> get() {
    said_.clear();
    return read_treebank(data_, [this](const std::string& message) { said_.push_back(message); });
  }
  /// Of the words, in the order of their numbers.
  static Texts words_of(const Treebank& treebank) {
    return {treebank.tokens.begin() + treebank.no_word + 3, treebank.tokens.begin() + treebank.no_tag};
  }

  test::TempFolder folder_;
  TreebankOptions data_;
  Texts said_;
};

TEST_F(Treebanks, NumberWordsTagsAndLabelsByCountAndThenByBytes) {
  const auto bank = get();
  EXPECT_THAT(bank->tokens,
              ElementsAre("<no word>", "<root word>", "<unknown word>", "b", "saw", "was", "été", "<no tag>",
                          "<root tag>", "<unknown tag>", "NN", "VB", "<no label>", "nsubj", "root", "obj"));
  EXPECT_EQ(bank->vocabulary_size(), 16);
  EXPECT_EQ(bank->no_word, 0);
  EXPECT_EQ(bank->no_tag, 7);
  EXPECT_EQ(bank->no_label, 12);
  EXPECT_EQ(bank->first_label, 13);
  EXPECT_THAT(bank->labels, ElementsAre("nsubj", "root", "obj"));
  EXPECT_EQ(bank->root_label, 1);
  ASSERT_EQ(bank->train.size(), 2u);
  EXPECT_EQ(bank->train[0].size(), 3);
  EXPECT_THAT(bank->train[0].words, ElementsAre(1, 3, 4, 3));
  EXPECT_THAT(bank->train[0].tags, ElementsAre(8, 10, 11, 10));
  EXPECT_THAT(bank->train[0].heads, ElementsAre(2, 0, 2));
  EXPECT_THAT(bank->train[0].labels, ElementsAre(0, 1, 2));
  EXPECT_THAT(bank->train[0].is_word, ElementsAre(1, 1, 1));
  EXPECT_THAT(bank->train[1].words, ElementsAre(1, 6, 5));
}

TEST_F(Treebanks, TellWordsTagsAndLabelsThatTrainingLacks) {
  write("dev", {"b|NN|N|2|nsubj Saw|VBZ|V|0|root it|PRP|P|2|iobj"});
  const auto bank = get();
  ASSERT_EQ(bank->dev.size(), 1u);
  EXPECT_THAT(bank->dev[0].words, ElementsAre(1, 3, 2, 2));
  EXPECT_THAT(bank->dev[0].tags, ElementsAre(8, 10, 9, 9));
  EXPECT_THAT(bank->dev[0].labels, ElementsAre(0, 1, -1));
  EXPECT_THAT(bank->dev[0].heads, ElementsAre(2, 0, 2));
}

TEST_F(Treebanks, KeepTheFormsOfDevAndTestForOutputs) {
  write("dev", {kBSawB, kEteWas});
  write("test", {"WAS|VB|V|0|root"});
  data_.lower_case = true;
  const auto bank = get();
  EXPECT_THAT(bank->dev[0].forms, ElementsAre("b", "saw", "b"));
  EXPECT_THAT(bank->dev[1].forms, ElementsAre("été", "was"));
  EXPECT_THAT(bank->test[0].forms, ElementsAre("WAS"));
  for (const EncodedTree& tree : bank->train) EXPECT_THAT(tree.forms, IsEmpty());
}

TEST_F(Treebanks, LowerCaseWordsAloneIfSet) {
  write("train", {"The|DT|D|2|Det ÉTÉ|NN|N|0|Root", "the|DT|D|2|Det été|NN|N|0|Root"});
  write("dev", {"THE|DT|D|2|Det Été|NN|N|0|Root"});
  EXPECT_THAT(words_of(*get()), ElementsAre("The", "the", "ÉTÉ", "été"));
  EXPECT_THAT(get()->dev[0].words, ElementsAre(1, 2, 2));
  data_.lower_case = true;
  data_.min_count = 2;  // counted in lower case
  const auto bank = get();
  EXPECT_THAT(words_of(*bank), ElementsAre("the", "été"));
  EXPECT_THAT(bank->dev[0].words, ElementsAre(1, 3, 4));
  EXPECT_THAT(bank->labels, ElementsAre("Det", "Root"));
  EXPECT_EQ(bank->tokens[static_cast<size_t>(bank->no_tag) + 3], "DT");
}

TEST_F(Treebanks, TakeRareWordsForUnknownAndNoRareTagsOrLabels) {
  write("train", {"b|NN|N|2|nsubj saw|VBD|V|0|root b|NN|N|2|obj", kEteWas});
  data_.min_count = 2;
  const auto bank = get();
  EXPECT_THAT(words_of(*bank), ElementsAre("b"));
  EXPECT_THAT(bank->train[0].words, ElementsAre(1, 3, 2, 3));
  EXPECT_THAT(bank->train[1].words, ElementsAre(1, 2, 2));
  EXPECT_THAT(Texts(bank->tokens.begin() + bank->no_tag + 3, bank->tokens.begin() + bank->no_label),
              ElementsAre("NN", "VB", "VBD"));
  EXPECT_THAT(bank->labels, ElementsAre("nsubj", "root", "obj"));
  data_.min_count = 3;
  EXPECT_EQ(error_of([&] { get(); }), "data.min_count = 3 leaves no word: every word of the training set is rarer");
}

TEST_F(Treebanks, HaveTheLabelsThatAreSet) {
  data_.labels = ArcLabels::kFull;
  EXPECT_THAT(get()->labels, ElementsAre("root", "nsubj", "nsubj:pass", "obj"));
  data_.labels = ArcLabels::kNone;
  const auto bank = get();
  EXPECT_THAT(bank->labels, ElementsAre("arc"));
  EXPECT_EQ(bank->root_label, 0);
  EXPECT_EQ(bank->vocabulary_size(), bank->first_label + 1);
  EXPECT_THAT(bank->train[0].labels, Each(0));
  EXPECT_THAT(bank->dev[0].labels, Each(0));
}

TEST_F(Treebanks, HaveTheTagsOfTheColumnThatIsSet) {
  data_.tags = TagColumn::kCoarse;
  const auto bank = get();
  EXPECT_EQ(bank->tokens[static_cast<size_t>(bank->no_tag) + 3], "N");
  EXPECT_THAT(bank->train[0].tags, ElementsAre(8, 10, 11, 10));
}

TEST_F(Treebanks, WithoutTagsInThatColumnAreRefused) {
  write("train", {"b|_|N|2|nsubj saw|_|V|0|root"});
  EXPECT_EQ(error_of([&] { get(); }), path("train") +
                                          ": every tag is \"_\", so the column is not annotated; set data.tags = "
                                          "\"coarse\"");
  write("train", {"b|N|_|2|nsubj saw|V|_|0|root"});
  EXPECT_EQ(get()->train.size(), 1u);
  data_.tags = TagColumn::kCoarse;
  EXPECT_EQ(error_of([&] { get(); }), path("train") +
                                          ": every tag is \"_\", so the column is not annotated; set data.tags = "
                                          "\"fine\"");
  write("train", {"b|N|_|2|nsubj saw|V|V|0|root"});
  EXPECT_EQ(get()->train.size(), 1u) << "some words may lack a tag";
}

TEST_F(Treebanks, WithoutTagsInThatColumnOfDevOrTestAreRefusedToo) {
  for (const char* set : {"dev", "test"}) {
    write(set, {"b|_|N|2|nsubj saw|_|V|0|root", "b|_|N|0|root"});
    EXPECT_EQ(error_of([&] { get(); }), path(set) +
                                            ": every tag is \"_\", so the column is not annotated; set data.tags = "
                                            "\"coarse\"");
    data_.tags = TagColumn::kCoarse;
    EXPECT_THAT(get()->train, testing::SizeIs(2));
    data_.tags = TagColumn::kFine;
    write(set, {"b|_|N|2|nsubj saw|VB|V|0|root"});
    EXPECT_THAT(get()->train, testing::SizeIs(2)) << "one word of the set has a tag";
    write(set, {kEteWas});
  }
}

// Tags of another language or scheme, by which CoreNLP's rule finds no punctuation: uas_no_punct would count it.
TEST_F(Treebanks, WhosePunctuationTheirTagsDoNotTellAreRefused) {
  for (const char* set : {"train", "dev", "test"}) {
    for (const char* tag : {"$.", "_", "-LRB-", "punct"}) {
      write(set, {kBSawB, fmt::format("b|NN|N|2|nsubj saw|VB|V|0|root !|{}|PUNCT|2|obj", tag)});
      EXPECT_EQ(error_of([&] { get(); }),
                path(set) +
                    ": words are PUNCT in the fourth column, but the fifth has none of the tags that tell punctuation "
                    "(`` '' , . : PUNCT), so that it would count as words; set data.tags = \"coarse\"")
          << tag;
      data_.tags = TagColumn::kCoarse;
      EXPECT_EQ(error_of([&] { get(); }), "");
      data_.tags = TagColumn::kFine;
    }
    for (const char* tag : {".", "''", "PUNCT"}) {
      write(set, {fmt::format("b|NN|N|2|nsubj saw|VB|V|0|root !|{}|PUNCT|2|obj (|-LRB-|PUNCT|2|obj", tag)});
      EXPECT_EQ(error_of([&] { get(); }), "") << "one word is enough: brackets are words by that rule";
    }
    write(set, {kBSawB, kEteWas});
    EXPECT_EQ(error_of([&] { get(); }), "") << "no word is PUNCT";
  }
}

TEST_F(Treebanks, TrainOnProjectiveTreesAloneAndScoreAll) {
  write("train", {kCrossing, kBSawB, kCrossing});
  write("dev", {kCrossing, kEteWas});
  write("test", {kCrossing});
  const auto bank = get();
  EXPECT_EQ(bank->train.size(), 1u);
  EXPECT_EQ(bank->left_out, 2);
  EXPECT_THAT(words_of(*bank), ElementsAre("b", "saw"));  // counted without them
  ASSERT_EQ(bank->dev.size(), 2u);
  EXPECT_THAT(bank->dev[0].heads, ElementsAre(3, 4, 0, 3));
  EXPECT_EQ(bank->test.size(), 1u);
  EXPECT_THAT(said_, ElementsAre("read toy: 1 of 3 training trees (projective ones), 2 dev, 1 test; 14 tokens, 3 "
                                 "labels"));
  write("train", {kCrossing});
  EXPECT_EQ(error_of([&] { get(); }), path("train") + ": no tree can be trained on: none is projective");
}

TEST_F(Treebanks, HaveOneLabelBelowTheRootThatNoOtherWordHas) {
  write("train", {"a|NN|N|2|dep b|NN|N|0|root:x", "a|NN|N|0|root:y"});
  EXPECT_EQ(get()->labels[static_cast<size_t>(get()->root_label)], "root");
  data_.labels = ArcLabels::kFull;
  EXPECT_EQ(error_of([&] { get(); }), path("train") +
                                          ": the words below the root have several labels, such as \"root:x\" and "
                                          "\"root:y\"; give them one, or set data.labels = \"none\"");
  write("train", {"a|NN|N|0|x", "a|NN|N|0|y"});
  EXPECT_THAT(error_of([&] { get(); }), testing::HasSubstr("have several labels, such as \"x\" and \"y\""));
  write("train", {"a|NN|N|2|y b|NN|N|0|x c|NN|N|2|x", "a|NN|N|2|x b|NN|N|0|y"});
  EXPECT_THAT(error_of([&] { get(); }), testing::HasSubstr("have several labels, such as \"x\" and \"y\""));
  write("train", {"a|NN|N|2|dep b|NN|N|0|dep c|NN|N|2|obj"});
  EXPECT_EQ(error_of([&] { get(); }), path("train") +
                                          ": \"dep\", the label of the words below the root, is also that of others; "
                                          "give those another, or set data.labels = \"none\"");
  data_.labels = ArcLabels::kNone;
  EXPECT_EQ(get()->labels.size(), 1u);
  data_.labels = ArcLabels::kFull;
  write("train", {"a|NN|N|2|_ b|NN|N|0|_ c|NN|N|2|_"});
  EXPECT_THAT(get()->labels, ElementsAre("_")) << "without labels as with data.labels = none";
  write("train", {"a|NN|N|2|_ b|NN|N|0|x c|NN|N|2|_"});
  EXPECT_EQ(get()->root_label, 1);
}

// The rule of CoreNLP for the Penn Treebank, and PUNCT.
TEST_F(Treebanks, TellPunctuationByTheTag) {
  for (const char* tag : {"``", "''", ".", ",", ":", "PUNCT"}) EXPECT_TRUE(is_punctuation(tag)) << tag;
  for (const char* tag : {"-LRB-", "-RRB-", "HYPH", "NFP", "SYM", "$", "NN", "", "..", "punct"}) {
    EXPECT_FALSE(is_punctuation(tag)) << tag;
  }
  write("dev", {"(|-LRB-|PUNCT|2|punct saw|VB|V|0|root !|.|PUNCT|2|punct -|:|SYM|2|punct"});
  EXPECT_THAT(get()->dev[0].is_word, ElementsAre(1, 1, 0, 0));
  data_.tags = TagColumn::kCoarse;
  EXPECT_THAT(get()->dev[0].is_word, ElementsAre(0, 1, 0, 1));
}

TEST_F(Treebanks, AreRefusedByFileAndLine) {
  for (const char* set : {"train", "dev", "test"}) {
    const std::string saved = test::read_text(path(set));
    test::write_text(path(set), conll(kBSawB) + "# the next\n" + conll("a|NN|N|2|x b|NN|N|4|x c|NN|N|0|root"));
    EXPECT_EQ(error_of([&] { get(); }), path(set) + ":7: the head 4 is beyond the sentence of 3 words");
    test::write_text(path(set), saved);
  }
  test::write_text(path("dev"), "\x1f\x8b");
  EXPECT_EQ(error_of([&] { get(); }), path("dev") + " is compressed with gzip; unpack it with gunzip");
}

TEST_F(Treebanks, AreReadOnceAProcess) {
  write("train", {kBSawB, folder_.path().string() + "|NN|N|0|root"});  // bytes of no other test's data
  const auto first = get();
  EXPECT_EQ(said_.size(), 1u);
  data_.name = "the same";
  EXPECT_EQ(get(), first);
  EXPECT_THAT(said_, IsEmpty());
  data_files(data_).fingerprint();
  EXPECT_EQ(get(), first);
  std::filesystem::rename(path("dev"), path("dev") + ".moved");
  EXPECT_EQ(get(), first) << "a missing file is no error while its checksum is known";
}

TEST_F(Treebanks, AreReadAgainWithOtherSettings) {
  const auto first = get();
  const TreebankOptions same = data_;
  data_.min_count = 2;
  EXPECT_NE(get(), first);
  data_ = same;
  data_.lower_case = true;
  EXPECT_NE(get(), first);
  data_ = same;
  data_.labels = ArcLabels::kFull;
  EXPECT_NE(get(), first);
  data_ = same;
  EXPECT_EQ(get(), first);
  data_.tags = TagColumn::kCoarse;
  EXPECT_NE(get(), first);
}

TEST_F(Treebanks, ThatAreMissingOrOthersThanPlannedAreRefused) {
  std::filesystem::rename(path("dev"), path("dev") + ".moved");
  data_.how_to_get = "convert it";
  EXPECT_EQ(error_of<DataError>([&] { get(); }), "the treebank toy lacks the file " + path("dev") + ": convert it");
  std::filesystem::rename(path("dev") + ".moved", path("dev"));
  data_files(data_).fingerprint();
  write("dev", {kBSawB});
  EXPECT_EQ(error_of<DataError>([&] { get(); }),
            path("dev") + " is not the file that this run was planned with; restore it, or plan a new run");
  data_.train_sha256 = data_.dev_sha256 = data_.test_sha256 = std::string(64, '0');
  for (const char* set : {"train", "dev", "test"}) std::filesystem::remove(path(set));
  EXPECT_EQ(error_of<DataError>([&] { get(); }), "the treebank toy lacks the file " + path("train") + ": convert it");
}

// The numbers are of an independent program.
TEST_F(Treebanks, OfEnglishWebTextAreCountedAsByAnIndependentProgram) {
  TEARLESS_NEEDS_SHARED("data/ud-english-ewt/en_ewt-ud-train.conllu.xz");
  for (const std::string set : {"train", "dev", "test"}) {
    const std::string packed = "data/ud-english-ewt/en_ewt-ud-" + set + ".conllu.xz";
    const test::Finished finished =
        test::run({.arguments = {"/usr/bin/env", "python3", "-c",
                                 "import lzma, sys; open(sys.argv[2], 'wb').write(lzma.open(sys.argv[1]).read())",
                                 (test::shared_folder() / packed).string(), path(set)}});
    ASSERT_EQ(finished.code, 0) << finished.errors;
  }
  const auto words = [](const std::vector<EncodedTree>& trees) {
    int64_t words = 0;
    for (const EncodedTree& tree : trees) words += tree.size();
    return words;
  };
  const auto unknown = [](const std::vector<EncodedTree>& trees, int32_t token) {
    int64_t unknown = 0;
    for (const EncodedTree& tree : trees) unknown += std::count(tree.words.begin(), tree.words.end(), token);
    return unknown;
  };
  const auto punctuation = [](const std::vector<EncodedTree>& trees) {
    int64_t punctuation = 0;
    for (const EncodedTree& tree : trees) punctuation += std::count(tree.is_word.begin(), tree.is_word.end(), 0);
    return punctuation;
  };

  auto bank = get();
  EXPECT_EQ(bank->train.size(), 12256u);
  EXPECT_EQ(bank->left_out, 12544 - 12256);
  EXPECT_EQ(bank->dev.size(), 2001u);
  EXPECT_EQ(bank->test.size(), 2077u);
  EXPECT_EQ(words(bank->train), 196107);
  EXPECT_EQ(words(bank->dev), 25147);
  EXPECT_EQ(words(bank->test), 25094);
  EXPECT_EQ(words_of(*bank).size(), 19262u);
  EXPECT_EQ(bank->vocabulary_size(), 3 + 19262 + 3 + 49 + 1 + 36);
  EXPECT_EQ(bank->labels.size(), 36u);
  EXPECT_EQ(bank->labels[static_cast<size_t>(bank->root_label)], "root");
  EXPECT_THAT(Texts(bank->tokens.begin() + 3, bank->tokens.begin() + 9),
              ElementsAre(".", "the", ",", "to", "and", "a"));
  EXPECT_EQ(words_of(*bank).back(), "’ve");
  EXPECT_EQ(unknown(bank->dev, bank->no_word + 2), 2117);
  EXPECT_EQ(unknown(bank->test, bank->no_word + 2), 2314);
  EXPECT_EQ(punctuation(bank->dev), 2719);
  EXPECT_EQ(punctuation(bank->test), 2707);
  EXPECT_THAT(bank->test[0].forms, ElementsAre("What", "if", "Google", "Morphed", "Into", "GoogleOS", "?"));
  EXPECT_THAT(bank->test[0].heads, ElementsAre(0, 4, 4, 1, 6, 4, 4));

  data_.tags = TagColumn::kCoarse;
  data_.labels = ArcLabels::kFull;
  data_.min_count = 2;
  bank = get();
  EXPECT_EQ(bank->vocabulary_size(), 3 + 9634 + 3 + 17 + 1 + 51);
  EXPECT_EQ(unknown(bank->test, bank->no_word + 2), 3043);
  EXPECT_EQ(punctuation(bank->dev), 3075);
  EXPECT_EQ(punctuation(bank->test), 3096);
}

}  // namespace
}  // namespace tearless::engine::treebank_test
