#include "harness/schedule/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "base/run_directory.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::program_test {
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

TEST(Program, IsAskedTheSameWhetherALineIsWrittenAtOnceOrAroundAValue) {
  CheckQuestion asked = question(1);
  asked.folders["b"] = "/folder/of \"b\"";
  asked.smoke = true;
  CheckQuestion of_one_setting = asked;
  of_one_setting.settings = nlohmann::json::object();
  for (CheckQuestion& each : std::array{asked, of_one_setting}) {
    for (const char* key : {"model.number", "train.seed", "a \"quoted\" key", "z"}) {
      const LineAround line = line_around(each, key);
      EXPECT_EQ(line.before.find(nlohmann::json(key).dump()),
                line.before.size() - nlohmann::json(key).dump().size() - 1);
      each.settings[key] = 7;
      EXPECT_EQ(nlohmann::json::parse(line.before + "7" + line.after), nlohmann::json::parse(line_of(each)));
      each.settings.erase(key);
    }
  }
  EXPECT_EQ(nlohmann::json::parse(line_of(asked)),
            nlohmann::json::parse(R"({"settings": {"model.number": 1, "fake.updates": 7}, "folder": "/",
                                      "folders": {"b": "/folder/of \"b\""}, "smoke": true})"));
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
      10'000,
      [&](size_t) {
        ++asked;
        return line_of(question(1));
      },
      [&](size_t, const CheckAnswer& answer) {
        EXPECT_TRUE(answer.error.empty());
        ++answered;
      });
  EXPECT_EQ(asked, 10'000);
  EXPECT_EQ(answered, 10'000);
}

// Each answer must reach its own question, whichever process gave it, and the parts need not be of one size.
TEST(Program, SeveralProcessesAnswerEachQuestionOnce) {
  const Program program(test::program("fake-engine"));
  for (const size_t count : {0, 1, 2, 1000}) {
    std::vector<std::string> canonical(count);
    program.check(
        count, [](size_t i) { return line_of(question(static_cast<int>(i))); },
        [&](size_t i, const CheckAnswer& answer) {
          ASSERT_LT(i, count);
          EXPECT_EQ(canonical[i], "");
          canonical[i] = answer.canonical;
        },
        /*processes=*/3);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_NE(canonical[i].find(fmt::format("model.number = {}\n", i)), std::string::npos) << canonical[i];
    }
  }
}

TEST(Program, SeveralProcessesAreStartedOnlyForManyQuestions) {
  const test::TempFolder folder;
  const Program program = shell(folder, "echo started >> '" + (folder / "log").string() +
                                            "'\nwhile read -r line; do echo '{\"error\": \"no\"}'; done");
  const auto starts = [&](size_t count, size_t processes) {
    fs::remove(folder / "log");
    program.check(
        count, [](size_t) { return line_of(question(1)); }, [](size_t, const CheckAnswer&) {}, processes);
    const std::string log = read_file(folder / "log");
    return std::count(log.begin(), log.end(), '\n');
  };
  EXPECT_EQ(starts(100, 4), 4);
  EXPECT_EQ(starts(100, 0), 1);
  EXPECT_EQ(Program::processes_for(0, 8), 1u);
  EXPECT_EQ(Program::processes_for(19'999, 8), 1u);
  EXPECT_EQ(Program::processes_for(20'000, 8), 2u);
  EXPECT_EQ(Program::processes_for(20'000, 1), 1u);
  EXPECT_EQ(Program::processes_for(200'000, 8), 8u);
}

// The second process fails while the first would wait for ever; its error is reported and the first is ended.
TEST(Program, OneOfSeveralProcessesThatFailsIsNamed) {
  const test::TempFolder folder;
  const auto message = [&](const std::string& second) {
    fs::remove_all(folder / "first");
    const Program program =
        shell(folder, "if mkdir '" + (folder / "first").string() + "' 2>/dev/null; then echo $$ > '" +
                          (folder / "first/pid").string() + "'; exec sleep 1000; fi\nwhile [ ! -s '" +
                          (folder / "first/pid").string() + "' ]; do sleep 0.01; done\n" + second);
    return error_of([&] {
      program.check(
          10, [](size_t) { return line_of(question(1)); }, [](size_t, const CheckAnswer&) {}, /*processes=*/2);
    });
  };
  const auto first_is_gone = [&] {
    const std::string pid = read_file(folder / "first/pid");
    return !fs::exists("/proc/" + pid.substr(0, pid.find('\n')));
  };
  const std::string killed = message("kill -9 $$");
  EXPECT_THAT(killed, testing::ContainsRegex("check` \\(process [12] of 2\\) was killed by signal 9$"));
  EXPECT_TRUE(first_is_gone());
  EXPECT_THAT(message("exit 9"), testing::ContainsRegex("process [12] of 2\\) failed with exit code 9"));
  EXPECT_THAT(message("echo hello; cat >/dev/null"),
              testing::ContainsRegex("process [12] of 2\\): answer 1 is not as docs/run_directory.md describes"));
  EXPECT_TRUE(first_is_gone());
  EXPECT_THAT(message("cat >/dev/null"), testing::ContainsRegex("process [12] of 2\\) answered 0 of 5 questions"));
}

TEST(Program, NamesTheInputFilesOfRunsWhichAnswersShareWhereTheyAreTheSame) {
  const test::TempFolder folder;
  const auto checked = [&](const std::string& data) {
    return shell(folder, "read -r line; read -r line; for i in 1 2; do echo '{\"id\": \"1\", \"canonical\": \"\"" +
                             data + "}'; done")
        .check({question(1), question(2)});
  };
  EXPECT_EQ(checked("").at(0).data, nullptr);
  const std::vector<CheckAnswer> answers = checked(R"(, "data": {"/a/b.x": "12", "/c": "34"})");
  ASSERT_NE(answers.at(0).data, nullptr);
  EXPECT_EQ(*answers.at(0).data, (InputFiles{{"/a/b.x", "12"}, {"/c", "34"}}));
  EXPECT_EQ(answers.at(0).data, answers.at(1).data) << "one object: there may be 100,000 runs";
  EXPECT_THAT(error_of([&] { checked(R"(, "data": {"a": "12"})"); }),
              testing::HasSubstr("answer 1 is not as docs/run_directory.md describes"));
}

TEST(Program, EveryFieldOfAnAnswerIsRead) {
  const test::TempFolder folder;
  const auto answer_of = [&](std::string line) {
    std::erase(line, '\n');
    return shell(folder, "read -r line; echo '" + line + "'").check({question(1)}).at(0);
  };
  const CheckAnswer all = answer_of(
      R"({"id": "12", "canonical": "a = 1", "local": "b = 2", "state": "waiting_data", "waiting_for": "a file",
          "parameters": 3, "memory_bytes": 4.0, "updates": 5, "evaluations": 6, "device": "cuda", "threads": 7,
          "shape": "8", "of_a_newer_program": [1]})");
  EXPECT_EQ(all.id, "12");
  EXPECT_EQ(all.canonical, "a = 1");
  EXPECT_EQ(all.local, "b = 2");
  EXPECT_TRUE(all.waiting);
  EXPECT_EQ(all.waiting_for, "a file");
  EXPECT_EQ(all.parameters, 3);
  EXPECT_EQ(all.memory_bytes, 4) << "as Python writes a quotient";
  EXPECT_EQ(all.updates, 5);
  EXPECT_EQ(all.evaluations, 6);
  EXPECT_EQ(all.device, "cuda");
  EXPECT_EQ(all.threads, 7);
  EXPECT_EQ(all.shape, "8");
  const CheckAnswer least = answer_of(R"({"id": "12", "canonical": "", "parameters": null})");
  EXPECT_FALSE(least.waiting);
  EXPECT_EQ(least.parameters, std::nullopt);
  EXPECT_EQ(least.memory_bytes, std::nullopt);
  EXPECT_EQ(least.device, "cpu");
  EXPECT_EQ(least.threads, 1);
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
}  // namespace tearless::harness::program_test
