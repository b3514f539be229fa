// The gradient norms of a run, update by update, from files that are written byte by byte.
#include "harness/runs/gradient_norms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::gradient_norms_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class GradientNorms : public testing::Test {
 protected:
  std::vector<std::pair<int64_t, double>> norms() const {
    std::vector<std::pair<int64_t, double>> read;
    read_gradient_norms(run_, [&](int64_t update, double norm) { read.emplace_back(update, norm); });
    return read;
  }
  void write(const std::string& bytes) const { test::write_text(run_.gradient_norms(), bytes); }
  static std::string bytes_of(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
    return bytes;
  }

  test::TempFolder folder_;
  RunDirectory run_{folder_.path()};
};

TEST_F(GradientNorms, CountUpdatesFromOneAndAreLittleEndian) {
  write(std::string("\0\0\xc0\x3f\0\0\x80\x40\0\0\x80\x7f", 12));
  EXPECT_THAT(norms(), ElementsAre(Pair(1, 1.5), Pair(2, 4.0), Pair(3, INFINITY)));
}

TEST_F(GradientNorms, OfManyUpdatesAreAllRead) {
  constexpr int64_t kUpdates = 100'003;  // no multiple of a power of two
  std::string bytes;
  for (int64_t n = 1; n <= kUpdates; ++n) bytes += bytes_of(static_cast<float>(n) / 4);
  write(bytes);
  const auto read = norms();
  ASSERT_EQ(std::ssize(read), kUpdates);
  for (int64_t n = 1; n <= kUpdates; ++n) {
    ASSERT_EQ(read[static_cast<size_t>(n - 1)], std::pair(n, static_cast<double>(n) / 4));
  }
}

TEST_F(GradientNorms, AreNoneWithoutAFileAndInAnEmptyOne) {
  EXPECT_TRUE(norms().empty());
  write("");
  EXPECT_TRUE(norms().empty());
}

TEST_F(GradientNorms, OfARunThatIsUnderWayAreThoseThatAreWhole) {
  write(std::string(4, '\0') + "xx");
  EXPECT_THAT(norms(), ElementsAre(Pair(1, 0)));
}

TEST_F(GradientNorms, OfAFinishedRunsFileThatEndsWithinAValueAreRefusedBeforeTheFirst) {
  test::write_text(run_.done(), "{}");
  for (const size_t length : {1, 3, 4095, 70'002}) {
    write(std::string(length, 'x'));
    const std::string sentence = error_of([&] { read_gradient_norms(run_, [](int64_t, double) { FAIL(); }); });
    EXPECT_THAT(sentence, AllOf(HasSubstr(run_.gradient_norms().string()), HasSubstr(std::to_string(length) + " bytes"),
                                HasSubstr("tearless verify")));
  }
}

TEST_F(GradientNorms, OfAFolderAreRefused) {
  fs::create_directories(run_.gradient_norms());
  EXPECT_EQ(error_of([&] { norms(); }), run_.gradient_norms().string() + ": not a file");
}

TEST_F(GradientNorms, EndWhereTheReaderThrows) {
  write(bytes_of(1) + bytes_of(2) + bytes_of(3));
  int64_t last = 0;
  const auto read = [&](int64_t update, double) {
    last = update;
    if (update == 2) throw std::runtime_error("enough");
  };
  EXPECT_THROW(read_gradient_norms(run_, read), std::runtime_error);
  EXPECT_EQ(last, 2);
}

}  // namespace
}  // namespace tearless::harness::gradient_norms_test
