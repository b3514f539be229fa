// What a copy of results alone lacks: a listed result file is not missing, and nothing else may be.
#include "base/omitted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/hash.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::omitted_test {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

class OmittedTest : public testing::Test {
 protected:
  OmittedTest() {
    make_folders(run_.outputs());
    test::write_text(run_.scores(), "{}");
    test::write_text(run_.outputs() / "test.hyp", "a\n");
    write_done(run_, "done", 1, "max_epochs", {"scores.json", "outputs/test.hyp"});
    std::filesystem::remove(run_.outputs() / "test.hyp");
  }
  void omit(const std::string& name, const std::string& sha256) const {
    write_omitted(run_, {{name, {.sha256 = sha256, .bytes = 2}}}, run_.root());
  }
  std::string changed() const { return changed_result_file(run_, *read_done(run_)); }
  void edit(const std::string& from, const std::string& to) const {
    std::string text = test::read_text(run_.omitted());
    ASSERT_NE(text.find(from), std::string::npos);
    test::write_text(run_.omitted(), text.replace(text.find(from), from.size(), to));
  }

  test::TempFolder folder_;
  RunDirectory run_{folder_ / "0123456789abcdef"};
};

TEST_F(OmittedTest, AFileThatIsListedWithTheChecksumOfDoneIsNotMissing) {
  EXPECT_EQ(changed(), "outputs/test.hyp");
  omit("outputs/test.hyp", sha256("a\n"));
  EXPECT_EQ(changed(), "");
  const Omitted omitted = read_omitted(run_);
  ASSERT_EQ(omitted.size(), 1u);
  EXPECT_EQ(omitted.at("outputs/test.hyp").bytes, 2);
  EXPECT_EQ(omitted.at("outputs/test.hyp").sha256, sha256("a\n"));
}

TEST_F(OmittedTest, AFileThatIsThereIsComparedAsInAnyRun) {
  omit("outputs/test.hyp", sha256("a\n"));
  test::write_text(run_.outputs() / "test.hyp", "b\n");
  EXPECT_EQ(changed(), "outputs/test.hyp");
  test::write_text(run_.outputs() / "test.hyp", "a\n");
  EXPECT_EQ(changed(), "");
  test::write_text(run_.scores(), "{\"test.bleu\": 99}");
  EXPECT_EQ(changed(), "scores.json");
}

TEST_F(OmittedTest, AFileThatIsListedWithAnotherChecksumOrNotAtAllIsMissing) {
  omit("outputs/test.hyp", sha256("b\n"));
  EXPECT_EQ(changed(), "outputs/test.hyp");
  omit("outputs/dev.hyp", sha256("a\n"));
  EXPECT_EQ(changed(), "outputs/test.hyp");
  omit("outputs/test.hyp", sha256("a\n"));
  std::filesystem::remove(run_.scores());
  EXPECT_EQ(changed(), "scores.json");
}

TEST_F(OmittedTest, AListThatWasEditedIsRefused) {
  const auto refusal = [&] { return error_of([&] { changed(); }); };
  const std::string expected = run_.omitted().string() + " was edited, is damaged, or belongs to another run";
  for (const auto& [from, to] : {std::pair("\"bytes\": 2", "\"bytes\": 3"),
                                 {"outputs/test.hyp", "outputs/dev.hyp"},
                                 {"\"sealed\": true", "\"sealed\": false"},
                                 {"\"files\"", "\"fills\""},
                                 {"}", ""}}) {
    omit("outputs/test.hyp", sha256("a\n"));
    edit(from, to);
    EXPECT_THAT(refusal(), HasSubstr(expected)) << from;
  }
  test::write_text(run_.omitted(), R"({"run": "0123456789abcdef", "files": {}})");
  EXPECT_THAT(refusal(), HasSubstr(expected)) << "without its seal";
  test::write_text(run_.omitted(), "");
  EXPECT_THAT(refusal(), HasSubstr(expected));
}

TEST_F(OmittedTest, AListOfAnotherRunIsRefused) {
  const RunDirectory other(folder_ / "fedcba9876543210");
  make_folders(other.root());
  write_omitted(other, {{"outputs/test.hyp", {.sha256 = sha256("a\n"), .bytes = 2}}}, run_.root());
  EXPECT_THAT(error_of([&] { read_omitted(run_); }), HasSubstr("belongs to another run"));
}

TEST_F(OmittedTest, WhoAsksForAListedFileIsToldThatItIsNotHere) {
  omit("outputs/test.hyp", sha256("a\n"));
  const auto asked = [&](const std::string& name) { return error_of([&] { read_result(run_, name); }); };
  EXPECT_THAT(asked("outputs/test.hyp"),
              AllOf(HasSubstr((run_.outputs() / "test.hyp").string() + " is not here"), HasSubstr("omitted.json")));
  EXPECT_THAT(asked("outputs/dev.hyp"), HasSubstr("is missing"));
  EXPECT_EQ(asked("scores.json"), "");
  EXPECT_EQ(error_of([&] { require_here(run_, "scores.json"); }), "");
  EXPECT_EQ(error_of([&] { require_here(run_, "log.txt"); }), "") << "nothing is known of it";
  EXPECT_THAT(error_of([&] { require_here(run_, "outputs/test.hyp"); }), HasSubstr("is not here"));
}

TEST(Omitted, IsEmptyInAnyOtherRun) {
  const test::TempFolder folder;
  EXPECT_TRUE(read_omitted(RunDirectory(folder.path())).empty());
}

}  // namespace
}  // namespace tearless::omitted_test
