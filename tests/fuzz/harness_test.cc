#include <gtest/gtest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets.h"

namespace tearless::fuzz::harness_test {
namespace {

TEST(Fuzz, GridFiles) { replay("grid", fuzz_grid); }
TEST(Fuzz, Settings) { replay("settings", fuzz_settings); }
TEST(Fuzz, RunFolders) { replay("run_folder", fuzz_run_folder); }
TEST(Fuzz, Archives) { replay("archive", fuzz_archive); }
TEST(Fuzz, Requests) { replay("request", fuzz_request); }
TEST(Fuzz, SentenceStats) { replay("sentence_stats", fuzz_sentence_stats); }
TEST(Fuzz, WorkerFiles) { replay("worker_file", fuzz_worker_file); }
TEST(Fuzz, AnswersOfSlurm) { replay("slurm", fuzz_slurm); }

TEST(Fuzz, RunFoldersWithJsonNestedWithoutEnd) {
  for (const char file : {'\0', '\1', '\2', '\4', '\5', '\6'}) {
    const std::string nested(200'000, '[');
    const std::string input = file + ("{\"a\":" + nested) + std::string(nested.size(), ']') + "}\n";
    fuzz_run_folder(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
}

}  // namespace
}  // namespace tearless::fuzz::harness_test
