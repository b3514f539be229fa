// What the files of an attempt say of it.
#include "harness/runs/attempt_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::attempt_files_test {
namespace {

TEST(ReadAttempt, TakesEachFieldFromItsFile) {
  const test::TempFolder folder;
  const RunDirectory run(folder / "0123");
  make_folders(run.attempt(2));
  make_folders(run.checkpoint(30));
  test::write_text(run.attempt(2) / "start.json",
                   R"({"started_at": "2026-01-31T12:00:00Z", "host": "a host", "device": "cuda", "processor": "p",
                       "version": "0.1.0", "numerics": 7, "cuda_device": "GPU-1", "ended_at": "not here"})");
  const AttemptRecord running = read_attempt(run, 2);
  EXPECT_EQ(running.number, 2);
  EXPECT_EQ(running.code, std::nullopt);
  EXPECT_EQ(running.signal, std::nullopt);
  EXPECT_EQ(running.started_at, "2026-01-31T12:00:00Z");
  EXPECT_EQ(running.ended_at, "");
  EXPECT_EQ(running.phase, "");
  EXPECT_EQ(running.measured, nullptr);
  EXPECT_EQ(cuda_device_of(run, 2), "GPU-1");

  test::write_text(run.attempt(2) / "exit.json",
                   R"({"code": 137, "signal": 9, "asked": "stall", "memory_kills": 1, "disk_full": 1,
                       "ended_at": "2026-01-31T13:00:00Z", "started_at": "not here"})");
  test::write_text(run.attempt(2) / "measured.json", R"({"updates": 40})");
  test::write_text(run.attempt(2) / "phase", "evaluating");
  test::write_text(run.attempt(2) / "arithmetic", "OpenBLAS 0.3.34 Haswell\n");
  const AttemptRecord ended = read_attempt(run, 2);
  EXPECT_EQ(ended.code, 137);
  EXPECT_EQ(ended.signal, 9);
  EXPECT_EQ(ended.asked, "stall");
  EXPECT_TRUE(ended.killed_for_memory);
  EXPECT_TRUE(ended.disk_full);
  EXPECT_EQ(ended.phase, "evaluating");
  EXPECT_EQ(ended.checkpoint, 30);
  EXPECT_EQ(ended.started_at, "2026-01-31T12:00:00Z");
  EXPECT_EQ(ended.ended_at, "2026-01-31T13:00:00Z");
  EXPECT_EQ(ended.host, "a host");
  EXPECT_EQ(ended.device, "cuda");
  EXPECT_EQ(ended.processor, "p");
  EXPECT_EQ(ended.version, "0.1.0");
  EXPECT_EQ(ended.numerics, 7);
  EXPECT_EQ(ended.arithmetic, "OpenBLAS 0.3.34 Haswell");
  EXPECT_EQ(ended.measured, nlohmann::json({{"updates", 40}}));
  EXPECT_EQ(ended.outcome, "");
  EXPECT_EQ(ended.reason, "");
}

TEST(ReadAttempt, WithoutFilesHasNoFields) {
  const test::TempFolder folder;
  const AttemptRecord record = read_attempt(RunDirectory(folder / "0123"), 1);
  EXPECT_EQ(record.code, std::nullopt);
  EXPECT_FALSE(record.killed_for_memory);
  EXPECT_FALSE(record.disk_full);
  EXPECT_EQ(record.host, "");
  EXPECT_EQ(record.numerics, 0);
}

TEST(ReadAttempt, ItsLastCheckpointIsWhatTheNextOneFoundNotWhatIsThereNow) {
  const test::TempFolder folder;
  const RunDirectory run(folder / "0123");
  make_folders(run.checkpoints());
  write_start(run, run.make_attempt(), {});
  make_folders(run.checkpoints() / "step-5");
  run.make_attempt();  // died before it began: it found nothing
  write_start(run, run.make_attempt(), {});
  make_folders(run.checkpoints() / "step-9");
  EXPECT_EQ(read_attempt(run, 1).checkpoint, 5);
  EXPECT_EQ(read_attempt(run, 3).checkpoint, 9);
}

TEST(KindsOfMachines, APartThatIsNotKnownIsNoOtherKind) {
  EXPECT_EQ(kinds_in({}), 0u);
  EXPECT_EQ(kinds_in({"cpu, EPYC, OpenBLAS 0.3"}), 1u);
  EXPECT_EQ(kinds_in({"cpu, EPYC, OpenBLAS 0.3", "cpu, EPYC"}), 1u) << "an attempt that was killed before it said so";
  EXPECT_EQ(kinds_in({"cpu, EPYC, OpenBLAS 0.3", "cpu, , OpenBLAS 0.3", "cpu, "}), 1u);
  EXPECT_EQ(kinds_in({"cpu, EPYC, 2 threads", "cpu, EPYC, OpenBLAS 0.3, 2 threads"}), 1u);
  EXPECT_EQ(kinds_in({"cpu, EPYC, OpenBLAS 0.3", "cpu, EPYC, MKL 2024"}), 2u);
  EXPECT_EQ(kinds_in({"cpu, EPYC, OpenBLAS 0.3", "cpu, Xeon"}), 2u);
  EXPECT_EQ(kinds_in({"cpu, EPYC 7763, OpenBLAS 0.3", "cpu, EPYC"}), 2u) << "the beginning of a part is another part";
  EXPECT_EQ(kinds_in({"cpu, EPYC, 2 threads", "cpu, EPYC, 3 threads"}), 2u);
}

TEST(ReadMetrics, RecordsAtWhichByteEachLineBegins) {
  const test::TempFolder folder;
  const RunDirectory run(folder / "0123");
  make_folders(run.root());
  const std::string first = R"({"step": 1, "name": "train.loss", "value": 5})"
                            "\n";
  const std::string foreign = "not a metric\n";
  const std::string second = R"({"step": 2, "name": "train.loss", "value": 4})"
                             "\n";
  test::write_text(run.metrics(), first + foreign + second + second + second.substr(0, 9));
  const auto length = [](const std::string& text) { return static_cast<int64_t>(text.size()); };
  const int64_t middle = length(first + foreign), third = middle + length(second);

  const auto begins = [](const MetricsRead& read) {
    std::vector<int64_t> bytes;
    for (const MetricLine& line : read.lines) bytes.push_back(line.position);
    return bytes;
  };
  EXPECT_EQ(begins(read_metrics(run, 0)), (std::vector<int64_t>{0, middle, third}));
  const MetricsRead rest = read_metrics(run, middle);
  EXPECT_EQ(begins(rest), (std::vector<int64_t>{middle, third}));
  EXPECT_EQ(rest.to, third + length(second)) << "a line without its end is not read";
}

TEST(ReadMetrics, CountsWhatItDoesNotRead) {
  const test::TempFolder folder;
  const RunDirectory run(folder.path());
  const auto unread = [&](const std::string& lines) {
    test::write_text(run.metrics(), lines);
    return sentences_of(read_metrics(run, 0).unread);
  };
  const std::string good = R"({"step": 1, "name": "a", "value": 5})"
                           "\n";
  EXPECT_THAT(unread(good + good), testing::IsEmpty());
  EXPECT_EQ(read_metrics(run, 0).lines.size(), 2u);
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"step": 1, "loss": 5})", "no \"name\""},
      {R"({"name": "a", "value": 5})", "no \"step\""},
      {R"({"step": 1, "name": "a", "value": "5"})", "a \"value\" that is no number"},
      {R"({"step": 1, "name": "a", "value": true})", "a \"value\" that is no number"},
      {R"({"step": NaN, "name": "a", "value": 5})", "a \"step\" that is no whole number from 0 to 2^53"},
      {R"({"step": 1, "name": 7, "value": 5})", "a \"name\" that is no text"},
      {R"({"step": -7, "name": "a", "value": 5})", "a \"step\" that is no whole number from 0 to 2^53"},
      {R"({"step": 18446744073709551615, "name": "a", "value": 5})",
       "a \"step\" that is no whole number from 0 to 2^53"},
      {R"({"step": 1.5, "name": "a", "value": 5})", "a \"step\" that is no whole number from 0 to 2^53"},
      {"[1, 2]", "no JSON object"},
      {"Epoch 3: loss 0.5", "no JSON"},
      {"", "no JSON"}};
  for (const auto& [line, what] : kCases) {
    EXPECT_THAT(unread(good + line + "\n" + good + line + "\n"),
                testing::ElementsAre(std::string("metrics.jsonl: not read in 2 lines, first in line 2: ") + what));
    EXPECT_EQ(read_metrics(run, 0).lines.size(), 2u) << line;
  }
  EXPECT_THAT(unread(good + R"({"step": 2, "name": "a", "value": 5, "epoch": 1})" + "\n"),
              testing::ElementsAre("metrics.jsonl: not read in 1 line, first in line 2: another key, \"epoch\""));
  EXPECT_EQ(read_metrics(run, 0).lines.size(), 2u) << "its value is read";
  std::string many;
  for (int i = 0; i < 9; ++i) many += fmt::format("{{\"step\": 1, \"name\": \"a\", \"value\": 5, \"k{}\": 1}}\n", i);
  EXPECT_EQ(unread(many).size(), 6u);
  EXPECT_EQ(unread(many).back(), "metrics.jsonl: and 4 more kinds of what is not read");
}

TEST(ReadMetrics, KeepsValuesThatAreNotFinite) {
  const test::TempFolder folder;
  const RunDirectory run(folder.path());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<const char*, double> kCases[] = {
      {"null", std::nan("")},    {"NaN", std::nan("")}, {"\"nan\"", std::nan("")}, {"Infinity", kInfinity},
      {"-Infinity", -kInfinity}, {"1e999", kInfinity},  {"-1e999", -kInfinity}};
  for (const auto& [text, value] : kCases) {
    test::write_text(run.metrics(), fmt::format("{{\"step\": 3, \"name\": \"a\", \"value\": {}}}\n", text));
    const MetricsRead read = read_metrics(run, 0);
    EXPECT_TRUE(read.unread.empty()) << text;
    ASSERT_EQ(read.lines.size(), 1u) << text;
    EXPECT_EQ(read.lines[0].step, 3);
    EXPECT_TRUE(std::isnan(value) ? std::isnan(read.lines[0].value) : read.lines[0].value == value) << text;
  }
}

// --- scores.json ----------------------------------------------------------------------------------------------------

Scores scores_of_text(const std::string& text) {
  const test::TempFolder folder;
  const RunDirectory run(folder.path());
  test::write_text(run.scores(), text);
  return read_scores(run);
}

using Numbers = std::map<std::string, double>;
using NoNumbers = std::map<std::string, std::string>;

TEST(ReadScores, TakesNumbersAndNamesWhatIsNone) {
  const Scores scores = scores_of_text(R"({"test.bleu": 20.5, "updates": 5, "test.ppl": null})");
  EXPECT_EQ(scores.numbers, (Numbers{{"test.bleu", 20.5}, {"updates", 5}}));
  EXPECT_EQ(scores.no_numbers, (NoNumbers{{"test.ppl", "null"}}));
  EXPECT_TRUE(scores_of_text("{}").numbers.empty());
  const test::TempFolder folder;
  EXPECT_TRUE(read_scores(RunDirectory(folder.path())).numbers.empty());
}

TEST(ReadScores, WhatPythonWritesForNumbersThatAreNotFiniteLeavesTheOthers) {
  const Scores scores = scores_of_text(
      R"({"a": NaN,"b":Infinity, "c": -Infinity, "d": 1e999, "e": -1e999, "f": "nan", "NaN": 3, "x\"NaN": -4.5e-3})");
  EXPECT_EQ(scores.numbers, (Numbers{{"NaN", 3}, {"x\"NaN", -0.0045}}));
  EXPECT_EQ(
      scores.no_numbers,
      (NoNumbers{{"a", "NaN"}, {"b", "Infinity"}, {"c", "-Infinity"}, {"d", "1e999"}, {"e", "-1e999"}, {"f", "nan"}}));
}

TEST(ReadScores, JsonIsReadAsItIs) {
  for (const char* text : {"", "{", R"({"a": 1e308, "b\\": "NaN", "\"Infinity": [true, -0.5E+3]})", "{\"a\": nope}"}) {
    EXPECT_EQ(scores_as_json(text), text);
  }
  EXPECT_EQ(scores_as_json(R"({"\\": NaN, "\"": 1e999})"), R"({"\\": "NaN", "\"": "1e999"})");
}

TEST(ReadScores, NamesTheKeyThatIsTwiceOrHasNoNumber) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"a": 1, "b": 2, "a": 3})", R"(has "a" twice)"},
      {R"({"a": 1, "\u0061": 1})", R"(has "a" twice)"},
      {R"({"a": 1, "b": "20.5"})", R"(has "b" with a value that is no number)"},
      {R"({"a": true})", R"(has "a" with a value that is no number)"},
      {R"({"a": [1]})", R"(has "a" with a value that is no number)"},
      {R"({"a": {"a": 1}})", R"(has "a" with a value that is no number)"},
      {R"({"a": 1, "b": NaNs})", R"(is no JSON behind "b")"},
      {R"({"b": +-Infinity})", R"(is no JSON behind "b")"},
      {R"({"b": [NaN]})", R"(has "b" with a value that is no number)"},
      {R"({"b": 1)", R"(is no JSON behind "b")"},
      {"", "is not a JSON object of scores"},
      {"[1]", "is not a JSON object of scores"},
      {"\xEF\xBB\xBF{}", "is not a JSON object of scores"},
  };
  for (const auto& [text, what] : cases) {
    const std::string message = test::error_of([text = text] { scores_of_text(text); });
    EXPECT_THAT(message, testing::HasSubstr(std::string("scores.json ") + what + "; restore it, or delete")) << text;
  }
}

}  // namespace
}  // namespace tearless::harness::attempt_files_test
