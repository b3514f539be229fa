// The 13a tokeniser against what sacreBLEU 2 made of the same lines.
#include <gtest/gtest.h>

#include "engine/score/tokenise.h"

namespace tearless::engine::tokenise_13a_test {
namespace {

TEST(Tokenise13a, SetsPunctuationApart) {
  EXPECT_EQ(tokenise_13a("Hello, world!"), "Hello , world !");
  EXPECT_EQ(tokenise_13a("Straße,die ‚so' heißt."), "Straße , die ‚so' heißt .");
  EXPECT_EQ(tokenise_13a(" . "), ".");
  EXPECT_EQ(tokenise_13a(""), "");
}

TEST(Tokenise13a, KeepsNumbersWholeAndCutsTheirRanges) {
  EXPECT_EQ(tokenise_13a("He paid $1,000.50 -- in 1990-1995 (U.S.A.)..."),
            "He paid $ 1,000.50 -- in 1990 - 1995 ( U . S . A . ) . . .");
  EXPECT_EQ(tokenise_13a("5. 6 .7 8."), "5 . 6 . 7 8 .");
  EXPECT_EQ(tokenise_13a("x<skipped>y 3-4 a-b"), "xy 3 - 4 a-b");
}

TEST(Tokenise13a, UnescapesFourEntitiesInOrder) {
  EXPECT_EQ(tokenise_13a("&quot;a&amp;lt;b&gt;&apos;"), "\" a < b > & apos ;");
}

TEST(Tokenise13a, DoesNotUseACharacterForTwoMatches) { EXPECT_EQ(tokenise_13a("wait.. ,,no"), "wait . . , , no"); }

TEST(Tokenise13a, SplitsAtUnicodeWhiteSpace) {
  EXPECT_EQ(tokenise_13a("one\u00a0two\u3000three\u2028four\xC2\x85"
                         "five\x1csix"),
            "one two three four five six");
}

}  // namespace
}  // namespace tearless::engine::tokenise_13a_test
