#include "harness/plan/program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

RunSpec question(int number) {
  return {.settings = {{"model.number", number}, {"fake.updates", 7}}, .folder = "/", .folders = {}, .smoke = false};
}

std::vector<CheckAnswer> check(const Program& program, const std::vector<RunSpec>& specs) {
  return program.check(specs.size(), [&](size_t i) { return specs[i]; });
}

// A program of a few lines of shell, for answers that no sound program gives.
Program shell(const test::TempFolder& folder, const std::string& body) {
  const fs::path file = folder / "program";
  test::write_text(file, "#!/bin/sh\n" + body + "\n");
  fs::permissions(file, fs::perms::owner_all);
  return Program(file);
}

TEST(Program, IsAskedOneLineForEachRun) {
  RunSpec asked = question(1);
  asked.folders["b"] = "/folder/of \"b\"";
  asked.smoke = true;
  EXPECT_EQ(nlohmann::json::parse(line_of(asked)),
            nlohmann::json::parse(R"({"settings": {"model.number": 1, "fake.updates": 7}, "folder": "/",
                                      "folders": {"b": "/folder/of \"b\""}, "smoke": true})"));
}

TEST(Program, AnswersEveryQuestionInOrder) {
  const Program program(test::program("fake-engine"));
  const std::vector<CheckAnswer> answers = check(program, {question(1), question(2)});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].run.id, run_id(answers[0].run.settings));
  EXPECT_NE(answers[0].run.settings.find("model.number = 1"), std::string::npos);
  EXPECT_NE(answers[1].run.settings.find("model.number = 2"), std::string::npos);
  EXPECT_EQ(answers[1].run.updates, 7);
  EXPECT_EQ(answers[1].run.parameters, 1000);
}

// Far more than two pipes hold: it would hang if the answers were read only after the last question.
TEST(Program, TenThousandQuestionsDoNotBlock) {
  const Program program(test::program("fake-engine"));
  int asked = 0;
  const auto answers = program.check(10'000, [&](size_t) {
    ++asked;
    return question(1);
  });
  EXPECT_EQ(asked, 10'000);
  EXPECT_TRUE(std::all_of(answers.begin(), answers.end(), [](const auto& answer) { return !answer.run.id.empty(); }));
}

// The answer is wrong while the program would wait for ever; the error is reported, and the program is ended.
TEST(Program, ThatAnswersWronglyIsEnded) {
  const test::TempFolder folder;
  const Program program = shell(folder, "echo $$ > '" + (folder / "pid").string() + "'; echo hello; exec sleep 1000");
  EXPECT_EQ(error_of([&] { check(program, {question(1)}); }),
            "program check printed \"hello\"; only answers belong on standard output");
  const std::string pid = read_file(folder / "pid");
  EXPECT_FALSE(fs::exists("/proc/" + pid.substr(0, pid.find('\n'))));
}

TEST(Program, ThatGivesAnIdOfOtherTextIsAtFault) {
  const test::TempFolder folder;
  const auto message = [&](const std::string& answer) {
    const Program program = shell(folder, "read -r line; echo '" + answer + "'");
    return error_of([&] { check(program, {question(1)}); });
  };
  const std::string other = run_id("a = 2");
  EXPECT_THAT(
      message(R"({"canonical": "a = 1", "id": ")" + other + "\"}"),
      testing::AllOf(testing::StartsWith("`" + (folder / "program").string() + " check`: answer 1"),
                     testing::HasSubstr("\"id\" is " + other + ", but the SHA-256 of \"canonical\" begins with " +
                                        run_id("a = 1") + ": the program is at fault")));
  // While data are missing, any id will do that is one.
  const std::string waits = R"({"canonical": "a = 1", "state": "waiting_data", "id": ")";
  EXPECT_EQ(message(waits + other + "\"}"), "");
  for (const char* id : {"", "12", "../../../../0123", "0123456789ABCDEF", "0123456789abcdef0"}) {
    EXPECT_THAT(message(waits + id + "\"}"), testing::HasSubstr("not 16 hex digits")) << id;
  }
}

TEST(Program, ThatNeedsLessThanNothingIsRefused) {
  const test::TempFolder folder;
  const auto message = [&](const std::string& need) {
    const std::string answer = R"({"canonical": "", "id": ")" + run_id("") + "\", " + need + "}";
    const Program program = shell(folder, "read -r line; echo '" + answer + "'");
    return error_of([&] { check(program, {question(1)}); });
  };
  EXPECT_THAT(message("\"threads\": 0"), testing::HasSubstr("\"threads\" is 0, less than 1"));
  for (const char* device : {"../x", "gpu", "cuda:0", ""}) {
    EXPECT_THAT(message(fmt::format("\"device\": \"{}\"", device)),
                testing::HasSubstr(fmt::format("\"device\" is \"{}\"; it must be cpu or cuda", device)));
  }
  for (const std::string& key :
       {std::string("memory_bytes"), std::string("parameters"), std::string("updates"), std::string("evaluations")}) {
    EXPECT_THAT(message("\"" + key + "\": -1"), testing::HasSubstr("\"" + key + "\" is -1, less than 0")) << key;
    EXPECT_EQ(message("\"" + key + "\": 0"), "") << key;
  }
  EXPECT_EQ(message("\"seed\": -1, \"threads\": 4294967295"), "") << "it is given all cores";
}

TEST(Program, NamesTheInputFilesOfRunsWhichAnswersShareWhereTheyAreTheSame) {
  const test::TempFolder folder;
  const auto checked = [&](const std::string& data) {
    return check(shell(folder, "read -r line; read -r line; for i in 1 2; do echo '{\"id\": \"" + run_id("") +
                                   "\", \"canonical\": \"\"" + data + "}'; done"),
                 {question(1), question(2)});
  };
  EXPECT_EQ(checked("").at(0).run.data, nullptr);
  const std::vector<CheckAnswer> answers = checked(R"(, "data": {"/a/b.x": "12", "/c": "34"})");
  ASSERT_NE(answers.at(0).run.data, nullptr);
  EXPECT_EQ(*answers.at(0).run.data, (InputFiles{{"/a/b.x", "12"}, {"/c", "34"}}));
  EXPECT_EQ(answers.at(0).run.data, answers.at(1).run.data) << "one object: there may be 100,000 runs";
  EXPECT_THAT(error_of([&] { checked(R"(, "data": {"a": "12"})"); }),
              testing::HasSubstr("answer 1 is not as docs/run_directory.md describes"));
}

TEST(Program, EveryFieldOfAnAnswerIsRead) {
  const test::TempFolder folder;
  const auto answer_of = [&](std::string line, const std::string& canonical = "") {
    std::erase(line, '\n');
    line.insert(1, R"("id": ")" + run_id(canonical) + "\", \"canonical\": \"" + canonical + "\", ");
    return check(shell(folder, "read -r line; echo '" + line + "'"), {question(1)}).at(0).run;
  };
  const harness::Run all = answer_of(
      R"({"local": "b = 2", "state": "waiting_data", "waiting_for": "a file",
          "parameters": 3, "memory_bytes": 4.0, "updates": 5, "evaluations": 6, "device": "cuda", "threads": 7,
          "resource_class": "8", "warnings": ["it looks coded", "9"], "of_a_newer_program": [1]})",
      "a = 1");
  EXPECT_EQ(all.id, run_id("a = 1"));
  EXPECT_EQ(all.settings, "") << "the id is provisional";
  EXPECT_EQ(all.local, "b = 2");
  EXPECT_EQ(all.waiting_for, "a file");
  EXPECT_EQ(all.parameters, 3);
  EXPECT_EQ(all.needs.memory_bytes, 4) << "as Python writes a quotient";
  EXPECT_EQ(all.updates, 5);
  EXPECT_EQ(all.evaluations, 6);
  EXPECT_EQ(all.needs.device, "cuda");
  EXPECT_EQ(all.needs.threads, 7);
  EXPECT_EQ(all.needs.resource_class, "8");
  EXPECT_THAT(all.warnings, testing::ElementsAre("it looks coded", "9"));
  EXPECT_EQ(harness::run_from(to_json(all)).warnings, all.warnings) << "a sweep keeps them";
  const harness::Run least = answer_of(R"({"parameters": null})");
  EXPECT_EQ(least.waiting_for, "");
  EXPECT_EQ(least.parameters, std::nullopt);
  EXPECT_EQ(least.needs.memory_bytes, std::nullopt);
  EXPECT_EQ(least.needs.device, "cpu");
  EXPECT_EQ(least.needs.threads, 1);
  EXPECT_EQ(least.needs.resource_class, "");
  EXPECT_EQ(answer_of(R"({"seed": 1})", "c = 3").settings, "c = 3");
  EXPECT_EQ(answer_of(R"({"parameters": 5, "memory_bytes": 6})").needs.resource_class, "cpu 1 5 6")
      << "runs of the same size are taken to be alike";
  EXPECT_EQ(answer_of(R"({"state": "waiting_data"})").waiting_for, "its data are missing");
}

TEST(Program, RefusalsNameTheirKey) {
  RunSpec refused = question(1);
  refused.settings["modle.kind"] = 1;
  const CheckAnswer answer = check(Program(test::program("fake-engine")), {refused}).at(0);
  EXPECT_EQ(answer.key, "modle.kind");
  EXPECT_FALSE(answer.error.empty());
}

// An answer to question(1), as a shell's word.
std::string answer_in_shell() { return "'{\"id\": \"" + run_id("") + "\", \"canonical\": \"\"}'"; }

TEST(Program, ALineThatIsNoAnswerIsShown) {
  const test::TempFolder folder;
  const auto message = [&](const std::string& body) {
    const Program program = shell(folder, body);
    return error_of([&] { check(program, {question(1)}); });
  };
  const std::string answers = "read -r line; echo " + answer_in_shell() + "\n";
  const std::string rule = "; only answers belong on standard output";
  EXPECT_EQ(message("echo 'Loading kernels with AVX2 support.'; " + answers),
            "program check printed \"Loading kernels with AVX2 support.\"" + rule);
  EXPECT_EQ(message(answers + "echo Done"), "program check printed \"Done\"" + rule) << "after its last answer, too";
  EXPECT_EQ(message("printf '\\033[1mbold\\n'"), "program check printed \"\\x1b[1mbold\"" + rule);
  EXPECT_EQ(message("echo; " + answers), "program check printed an empty line" + rule);
  EXPECT_EQ(message("printf '\\r\\n'; " + answers), "program check printed an empty line" + rule);
  EXPECT_EQ(message("echo 7"), "program check printed \"7\"" + rule) << "JSON, but no answer";
  EXPECT_EQ(message("echo '[{}]'"), "program check printed \"[{}]\"" + rule);
  const std::string indented = "program check printed \"{\"; an answer is one whole line of JSON";
  EXPECT_EQ(message("printf '{\\n  \"id\": 1\\n}\\n'"), indented);
  EXPECT_EQ(message("printf '  {\\n'"), indented);
  EXPECT_THAT(message("printf %1000s x"), testing::EndsWith("\"x\"" + rule));
  EXPECT_THAT(message("printf '%01000d rest\\n' 1x 2>/dev/null; yes | head -c 5000 | tr -d '\\n'; echo"),
              testing::HasSubstr("…\"" + rule));
}

TEST(Program, AnAnswerWithoutANeededFieldOrWithOneOfAnotherKindIsNamed) {
  const test::TempFolder folder;
  const auto message = [&](const std::string& answer) {
    const Program program = shell(folder, "read -r line; echo '" + answer + "'");
    return error_of([&] { check(program, {question(1)}); });
  };
  const std::string id = "\"id\": \"" + run_id("") + "\"", all = "{" + id + ", \"canonical\": \"\"";
  EXPECT_THAT(message("{}"),
              testing::EndsWith("answer 1 is not as docs/run_directory.md describes: \"id\" is missing"));
  EXPECT_THAT(message("{" + id + "}"), testing::EndsWith(": \"canonical\" is missing"));
  EXPECT_THAT(message("{" + id + ", \"canonical\": 1}"), testing::EndsWith(": \"canonical\" is not a text"));
  EXPECT_THAT(message(all + ", \"state\": 1}"), testing::EndsWith(": \"state\" is not a text"));
  EXPECT_THAT(message(all + ", \"updates\": \"many\"}"), testing::EndsWith(": \"updates\" is not a whole number"));
  EXPECT_THAT(message(all + ", \"data\": [\"/a\"]}"),
              testing::EndsWith(": \"data\" is not an object of files and their checksums"));
  EXPECT_THAT(message("{\"error\": 5}"), testing::EndsWith(": \"error\" is not a text"));
  EXPECT_EQ(message(all + ", \"error\": null, \"key\": null}"), "") << "as Python prints None";
}

TEST(Program, ThatAnswersALineTwiceIsRefused) {
  const test::TempFolder folder;
  const Program program = shell(folder, "while read -r line; do echo " + answer_in_shell() + "; [ $again ] || echo " +
                                            answer_in_shell() + "; again=no; done");
  EXPECT_EQ(error_of([&] {
              check(program, {question(1), question(2)});
            }),
            "program check printed more answers than the 2 that it was asked for; each question gets one, in their "
            "order");
}

TEST(Program, TheLastAnswerNeedsNoLineFeed) {
  const test::TempFolder folder;
  EXPECT_EQ(check(shell(folder, "read -r line; printf %s " + answer_in_shell()), {question(1)}).at(0).run.id,
            run_id(""));
}

TEST(Program, AProbeIsHeldToTheSameRules) {
  const test::TempFolder folder;
  const auto message = [&](const std::string& body) {
    const Program program = shell(folder, body);
    return error_of([&] { program.probe(); });
  };
  const std::string answer = R"(echo '{"program": "p", "version": "1", "numerics": 1}';)";
  EXPECT_EQ(message(answer), "");
  EXPECT_EQ(message("echo Hello; " + answer),
            "program probe printed \"Hello\"; only answers belong on standard output");
  EXPECT_EQ(message(answer + "echo Bye"), "program probe printed \"Bye\"; only answers belong on standard output");
  EXPECT_THAT(message(answer + answer), testing::StartsWith("program probe printed a second answer: \"{"));
  EXPECT_EQ(message(":"), "program probe printed no answer");
  EXPECT_THAT(message(R"(echo '{"version": "1", "numerics": 1}')"), testing::EndsWith(": \"program\" is missing"));
  EXPECT_THAT(message(R"(echo '{"program": "p", "version": 1, "numerics": 1}')"),
              testing::EndsWith(": \"version\" is not a text"));
  EXPECT_THAT(message(R"(echo '{"program": "p", "version": "1"}')"), testing::EndsWith(": \"numerics\" is missing"));
  EXPECT_THAT(message(R"(echo '{"program": "p", "version": "1", "numerics": "1"}')"),
              testing::EndsWith(": \"numerics\" is not a whole number"));
  EXPECT_THAT(message(R"(echo '{"program": "p", "version": "1", "numerics": 1, "files": "a"}')"),
              testing::EndsWith(": \"files\" is not a list of names"));
  EXPECT_THAT(message(R"(echo '{"program": "p", "version": "1", "numerics": 1, "home": "lib"}')"),
              testing::EndsWith(": \"home\" is not an absolute path"));
}

TEST(Program, ReportsItsVersion) {
  const Probe probe = Program(test::program("fake-engine")).probe();
  EXPECT_EQ(probe.program, "fake-engine");
  EXPECT_EQ(probe.numerics, 1);
}

TEST(Program, ThatCannotBeExecutedIsNamedWithTheReason) {
  const test::TempFolder folder;
  const fs::path file = folder / "pro gram";
  const auto message = [&] { return error_of([&] { Program{file}; }); };
  EXPECT_THAT(message(), testing::StartsWith("there is no training program " + file.string() + "; "));
  fs::create_directory(file);
  EXPECT_EQ(message(), "the training program " + file.string() + " is a folder; name the program in it");
  fs::remove(file);
  test::write_text(file, "#!/bin/sh\n");
  EXPECT_EQ(message(),
            "the training program " + file.string() + " is not executable; chmod +x '" + file.string() + "'");
  fs::permissions(file, fs::perms::owner_all);
  EXPECT_EQ(message(), "");
  for (const char* first : {"#!/nowhere/python3", "#! /nowhere/python3 -u"}) {
    test::write_text(file, std::string(first) + "\n");
    EXPECT_EQ(message(),
              "the first line of " + file.string() + " names the interpreter /nowhere/python3, which does not exist");
  }
  test::write_text(file, "#!/bin/sh\r\necho\r\n");
  EXPECT_THAT(message(), testing::HasSubstr("the interpreter /bin/sh\\r, which")) << "lines of another system";
}

TEST(Program, ThatIsNotInstalledIsNamedWithWhatItNeeds) {
  EXPECT_THAT(how_to_get_engine("2.34"), testing::StartsWith("install it (pip install tearless-engine), "));
  EXPECT_THAT(how_to_get_engine("2.28"),
              testing::StartsWith("tearless-engine needs glibc 2.34 or later, and this machine has 2.28: "));
}

TEST(Program, TheCommandLineGoesBeforeTheGridAndThatBeforeTheEnvironment) {
  const test::TempFolder folder;
  const auto program = [&](const char* name) {
    test::write_text(folder / name, "#!/bin/sh\n");
    fs::permissions(folder / name, fs::perms::owner_all);
    return folder / name;
  };
  const fs::path asked = program("asked"), of_grid = program("of_grid"), named = program("named");
  ::setenv("TEARLESS_ENGINE", named.c_str(), /*overwrite=*/1);
  EXPECT_EQ(Program::find(asked, of_grid).path(), asked);
  EXPECT_EQ(Program::find("", of_grid).path(), of_grid);
  EXPECT_EQ(Program::find("", std::nullopt).path(), named);
  ::setenv("TEARLESS_ENGINE", "", /*overwrite=*/1);
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "tearless-engine";
  if (fs::exists(beside))
    EXPECT_EQ(Program::find("", std::nullopt).path(), beside);
  else
    EXPECT_THAT(error_of([] { Program::find("", std::nullopt); }), testing::HasSubstr("there is no training program"));
  ::unsetenv("TEARLESS_ENGINE");
}

TEST(Program, ThatFailsDiesOrAnswersWronglyIsAClearError) {
  const test::TempFolder folder;
  const auto message = [&](const std::string& body) {
    const Program program = shell(folder, body);
    return error_of([&] { check(program, std::vector<RunSpec>(2000, question(1))); });
  };
  EXPECT_NE(message("exit 9").find("failed with exit code 9"), std::string::npos);
  EXPECT_NE(message("kill -9 $$").find("killed by signal 9"), std::string::npos);
  EXPECT_NE(message("echo '{}'; cat >/dev/null").find("answer 1 is not as docs/run_directory.md describes"),
            std::string::npos);
  EXPECT_NE(message("cat >/dev/null").find("answered 0 of 2000"), std::string::npos);
}

}  // namespace
}  // namespace tearless::harness::program_test
