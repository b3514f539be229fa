#include <gtest/gtest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz::engine_test {
namespace {

TEST(Fuzz, TokenFiles) { replay("token_file", fuzz_token_file); }
TEST(Fuzz, Corpora) { replay("corpus", fuzz_corpus); }
TEST(Fuzz, Digits) { replay("digits", fuzz_digits); }
TEST(Fuzz, CharacterTexts) { replay("characters", fuzz_characters); }
TEST(Fuzz, Trees) { replay("trees", fuzz_trees); }

}  // namespace
}  // namespace tearless::fuzz::engine_test
