// A prepared corpus whose checksum is right may still be wrong: whatever would be read out of bounds later is refused.
#include "engine/data/token_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "engine/data/bpe.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::engine::token_file_test {
namespace {

using Lines = std::vector<std::string>;

TokenLines lines(std::vector<int32_t> tokens, std::vector<int64_t> offsets) {
  TokenLines made;
  made.tokens = std::move(tokens);
  made.offsets = std::move(offsets);
  return made;
}

/// Two training pairs and one pair each of dev and test over the vocabulary {…, a, b}.
Prepared small() {
  Prepared prepared;
  prepared.subwords = std::make_unique<Segmented>();
  prepared.vocabulary = {{"<pad>", "<bos>", "<eos>", "<unk>", "a", "b"}, {0, 0, 1, 1, 1, 0}};
  prepared.train = {lines({4, kEos, 5, 4, kEos}, {0, 2, 5}), lines({4, 4}, {0, 1, 2})};
  prepared.dev = {lines({kEos}, {0, 1}), lines({}, {0, 0})};
  prepared.test = {lines({5, kEos}, {0, 2}), lines({4}, {0, 1})};
  prepared.dev_reference = {""};
  prepared.test_reference = {"a"};
  return prepared;
}

/// What is wrong with these bytes, or "".
std::string fault_of(const std::string& bytes, TextKind kind = TextKind::kSegmented) {
  return test::error_of<std::runtime_error>([&] { parse_token_file(bytes, kind); });
}

std::string fault_after(const std::function<void(Prepared&)>& change) {
  Prepared prepared = small();
  change(prepared);
  return fault_of(token_file_bytes(prepared));
}

/// The file with another body under a checksum that fits it.
std::string with_body(const std::function<void(std::string&)>& change) {
  const std::string bytes = token_file_bytes(small());
  const size_t end = bytes.find('\n');
  nlohmann::json header = nlohmann::json::parse(bytes.substr(0, end));
  std::string body = bytes.substr(end + 1);
  change(body);
  header["sha256"] = sha256(body);
  return header.dump() + "\n" + body;
}

TEST(TokenFile, IsReadAsItWasWritten) {
  const Prepared read = parse_token_file(token_file_bytes(small()), TextKind::kSegmented);
  EXPECT_EQ(token_file_bytes(read), token_file_bytes(small()));
}

TEST(TokenFile, HasASecondVocabularyWhereTheSidesAreApart) {
  Prepared prepared = small();
  prepared.vocabulary.source_pieces = {"<pad>", "<bos>", "<eos>", "<unk>", "p", "q", "r"};
  prepared.train.source = lines({6, kEos, 5, 4, kEos}, {0, 2, 5});
  const std::string bytes = token_file_bytes(prepared);
  const Prepared read = parse_token_file(bytes, TextKind::kSegmented);
  EXPECT_EQ(token_file_bytes(read), bytes);
  EXPECT_EQ(read.vocabulary.source_pieces, prepared.vocabulary.source_pieces);
  EXPECT_EQ(read.vocabulary.sizes(), (VocabularySizes{.source = 7, .target = 6}));
  const char* kFault = "a token is outside the vocabulary";
  const auto fault = [&](const std::function<void(Prepared&)>& change) {
    Prepared changed = parse_token_file(bytes, TextKind::kSegmented);
    change(changed);
    return fault_of(token_file_bytes(changed));
  };
  EXPECT_EQ(fault([](Prepared& p) { p.train.source.tokens[0] = 7; }), kFault);
  EXPECT_EQ(fault([](Prepared& p) { p.train.target.tokens[0] = 6; }), kFault) << "6 is a number of the source alone";
}

TEST(TokenFile, HasTheModelsOfBothSidesWhereEachHasItsOwn) {
  const Lines source = {"ab ab"}, target = {"cd cd"};
  Prepared prepared = small();
  prepared.subwords = std::make_unique<Bpe>(Bpe::learn({{}, target}, 1));
  const std::string of_both = token_file_bytes(prepared);
  prepared.source_subwords = std::make_unique<Bpe>(Bpe::learn({source, {}}, 1));
  const std::string bytes = token_file_bytes(prepared);
  const Prepared read = parse_token_file(bytes, TextKind::kBpe);
  EXPECT_EQ(token_file_bytes(read), bytes);
  EXPECT_EQ(read.subwords_of(Side::kSource).encode("ab cd", Side::kSource), (Lines{"ab", "c@@", "d"}));
  EXPECT_EQ(read.subwords_of(Side::kTarget).encode("ab cd", Side::kTarget), (Lines{"a@@", "b", "cd"}));
  EXPECT_EQ(parse_token_file(of_both, TextKind::kBpe).source_subwords, nullptr);
  EXPECT_EQ(of_both.find("source_subwords"), std::string::npos);
  std::string damaged = of_both;
  damaged.insert(1, "\"source_subwords\":true,");
  EXPECT_NE(fault_of(damaged, TextKind::kBpe), "");
}

TEST(TokenFile, RefusesTokensOutsideTheVocabulary) {
  const char* kFault = "a token is outside the vocabulary";
  EXPECT_EQ(fault_after([](Prepared& p) { p.train = {lines({6, kEos}, {0, 2}), lines({4}, {0, 1})}; }), kFault);
  EXPECT_EQ(fault_after([](Prepared& p) { p.test = {lines({4, kEos}, {0, 2}), lines({-1}, {0, 1})}; }), kFault);
}

TEST(TokenFile, RefusesLinesThatDoNotLieOneAfterAnother) {
  const char* kFault = "the lines of a set do not lie one after another";
  for (const std::vector<int64_t>& offsets : std::vector<std::vector<int64_t>>{
           {}, {0}, {1, 2}, {0, 3}, {0, 2, 1, 2}, {0, -1, 2}, {0, int64_t{1} << 62, 2}, {0, 1}}) {
    EXPECT_EQ(fault_after([&](Prepared& p) { p.train = {lines({4, kEos}, offsets), lines({}, {0, 0})}; }), kFault);
  }
}

TEST(TokenFile, RefusesSidesAndReferencesOfDifferentLength) {
  EXPECT_EQ(fault_after([](Prepared& p) {
              p.dev = {lines({kEos, kEos}, {0, 1, 2}), lines({}, {0, 0})};
            }),
            "the two sides of a set have different numbers of lines");
  EXPECT_EQ(fault_after([](Prepared& p) { p.test_reference.clear(); }), "a set and its references differ in length");
  EXPECT_EQ(fault_after([](Prepared& p) { p.train = {}; }), "a set is empty");
}

TEST(TokenFile, RefusesASourceLineWithoutItsEnd) {
  const char* kFault = "a source line lacks its end";
  EXPECT_EQ(fault_after([](Prepared& p) { p.dev = {lines({4}, {0, 1}), lines({}, {0, 0})}; }), kFault);
  EXPECT_EQ(fault_after([](Prepared& p) { p.dev = {lines({}, {0, 0}), lines({}, {0, 0})}; }), kFault);
}

TEST(TokenFile, RefusesAVocabularyThatContradictsItself) {
  EXPECT_EQ(fault_after([](Prepared& p) { p.vocabulary.in_target.pop_back(); }),
            "the vocabulary's two lists differ in length");
  EXPECT_EQ(fault_after([](Prepared& p) { p.vocabulary.in_target[4] = 2; }),
            "a flag of the vocabulary is neither 0 nor 1");
  EXPECT_EQ(fault_after([](Prepared& p) { p.vocabulary.pieces.resize(3); }),
            "the vocabulary has another size than the first line says");
  std::string bytes = token_file_bytes(small());
  bytes.replace(bytes.find("\"vocabulary\":6"), 14, "\"vocabulary\":7");
  EXPECT_EQ(fault_of(bytes), "the vocabulary has another size than the first line says");
}

TEST(TokenFile, RefusesBytesThatAreLeftOverMissingOrCutInANumber) {
  EXPECT_EQ(fault_of(with_body([](std::string& body) { body += '\0'; })), "more bytes follow its last list");
  EXPECT_EQ(fault_of(with_body([](std::string& body) { body.pop_back(); })), "it ends too early");
  // The first list of numbers, of the pieces' sizes, follows the empty text of the subwords.
  EXPECT_EQ(fault_of(with_body([](std::string& body) { --body[8]; })), "a list ends within a number");
  EXPECT_EQ(fault_of(with_body([](std::string& body) { body[15] = '\x7f'; })), "it ends too early");
}

TEST(TokenFile, RefusesSubwordsOfAnotherKind) {
  EXPECT_EQ(fault_of(token_file_bytes(small()), TextKind::kBpe),
            "the merges are not followed by the pieces of two sides");
  EXPECT_EQ(fault_of(with_body([](std::string& body) {
                       const std::string junk = "junk";
                       body = std::string("\4\0\0\0\0\0\0\0", 8) + junk + body.substr(8);
                     }),
                     TextKind::kSentencepiece),
            "it holds no SentencePiece model");
}

}  // namespace
}  // namespace tearless::engine::token_file_test
