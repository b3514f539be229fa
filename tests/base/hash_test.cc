// Against the published values of SHA-256 and FNV-1a.
#include "base/hash.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/paths.h"

namespace tearless::hash_test {
namespace {

constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, MatchesTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), kAbc);
}

TEST(Sha256, IsTheSameForBytesInPieces) {
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  EXPECT_EQ(hash.hex(), kAbc);
}

TEST(Sha256, OfAFileIsThatOfItsBytes) {
  const test::TempFolder folder;
  const std::string bytes(3'000'000, '\xff');
  test::write_text(folder / "a", bytes);
  EXPECT_EQ(sha256_of_file(folder / "a"), sha256(bytes));
  EXPECT_THROW(sha256_of_file(folder / "none"), UserError);
}

TEST(Fnv1a, MatchesItsReference) {
  EXPECT_EQ(fnv1a32(""), 0x811c9dc5u);
  EXPECT_EQ(fnv1a32("a"), 0xe40c292cu);
  EXPECT_EQ(fnv1a32("foobar"), 0xbf9cf968u);
}

}  // namespace
}  // namespace tearless::hash_test
