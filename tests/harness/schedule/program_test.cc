#include "harness/schedule/program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/run_directory.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness {
namespace {

using tearless::test::error_of;
namespace fs = std::filesystem;

CheckQuestion question(int number) {
  return {.settings = {{"model.number", number}, {"fake.updates", 7}}, .folder = "/", .folders = {}, .smoke = false};
}

// A program of a few lines of shell, for answers that no sound program gives.
Program shell(const test::TempFolder& folder, const std::string& body) {
  const fs::path file = folder / "program";
  test::write_text(file, "#!/bin/sh\n" + body + "\n");
  fs::permissions(file, fs::perms::owner_all);
  return Program(file);
}

TEST(Program, AnswersEveryQuestionInOrder) {
  const Program program(test::program("fake-engine"));
  const std::vector<CheckAnswer> answers = program.check({question(1), question(2)});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].id, run_id(answers[0].canonical));
  EXPECT_NE(answers[0].canonical.find("model.number = 1"), std::string::npos);
  EXPECT_NE(answers[1].canonical.find("model.number = 2"), std::string::npos);
  EXPECT_EQ(answers[1].updates, 7);
  EXPECT_EQ(answers[1].parameters, 1000);
}

// Far more than two pipes hold: it would hang if the answers were read only after the last question.
TEST(Program, TenThousandQuestionsDoNotBlock) {
  const Program program(test::program("fake-engine"));
  int asked = 0, answered = 0;
  program.check(
      [&]() -> std::optional<CheckQuestion> {
        if (asked == 10'000) return std::nullopt;
        return question(asked++);
      },
      [&](const CheckAnswer& answer) {
        EXPECT_TRUE(answer.error.empty());
        ++answered;
      });
  EXPECT_EQ(answered, 10'000);
}

TEST(Program, RefusalsNameTheirKey) {
  CheckQuestion refused = question(1);
  refused.settings["modle.kind"] = 1;
  const CheckAnswer answer = Program(test::program("fake-engine")).check({refused}).at(0);
  EXPECT_EQ(answer.key, "modle.kind");
  EXPECT_FALSE(answer.error.empty());
}

TEST(Program, ReportsItsVersionAndDevices) {
  const Probe probe = Program(test::program("fake-engine")).probe();
  EXPECT_EQ(probe.program, "fake-engine");
  EXPECT_EQ(probe.numerics, 1);
}

TEST(Program, ThatIsMissingIsNamed) {
  EXPECT_NE(error_of([] { Program("/nowhere/engine"); }).find("/nowhere/engine"), std::string::npos);
}

TEST(Program, ThatFailsDiesOrAnswersWronglyIsAClearError) {
  const test::TempFolder folder;
  const auto message = [&](const std::string& body) {
    const Program program = shell(folder, body);
    return error_of([&] { program.check(std::vector<CheckQuestion>(2000, question(1))); });
  };
  EXPECT_NE(message("exit 9").find("failed with exit code 9"), std::string::npos);
  EXPECT_NE(message("kill -9 $$").find("killed by signal 9"), std::string::npos);
  EXPECT_NE(message("echo hello; cat >/dev/null").find("answer 1 is not as docs/run_directory.md describes"),
            std::string::npos);
  EXPECT_NE(message("cat >/dev/null").find("answered 0 of 2000"), std::string::npos);
}

}  // namespace
}  // namespace tearless::harness
