#include <filesystem>

#include "base/error.h"
#include "base/omitted.h"
#include "base/run_directory.h"
#include "base/utf8.h"
#include "harness/runs/attempt_files.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/targets.h"
#include "tests/support/paths.h"

namespace tearless::fuzz {
namespace {

using namespace tearless::harness;

constexpr const char* kFiles[] = {"attempts/1/start.json",
                                  "attempts/1/exit.json",
                                  "attempts/1/measured.json",
                                  "attempts/1/log.txt",
                                  "DONE",
                                  "scores.json",
                                  "metrics.jsonl",
                                  "omitted.json"};

void read_everything(const RunDirectory& run, size_t size) {
  if (const auto supervisor = supervisor_of(run, 1)) supervisor->is_alive();
  cuda_device_of(run, 1);
  const AttemptRecord attempt = read_attempt(run, 1);
  attempt.measured.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  require(valid_utf8(last_log_line(run, 1)), "the last line of a log is not UTF-8");

  const MetricsRead whole = read_metrics(run, 0);
  require(whole.to <= static_cast<int64_t>(size), "metrics are read beyond their end");
  const MetricsRead rest = read_metrics(run, whole.to);
  require(rest.lines.empty() && rest.to == whole.to, "metrics that were read are read again");

  if (const auto done = read_done(run)) changed_result_file(run, *done);
  read_omitted(run);
  read_scores(run);
}

}  // namespace

/// The first byte chooses the file.
int fuzz_run_folder(const uint8_t* data, size_t size) {
  static const test::TempFolder folder;
  const RunDirectory run(folder.path());
  std::filesystem::create_directories(run.attempt(1));
  std::string_view bytes = text_of(data, size);
  const std::filesystem::path file = folder / kFiles[take_byte(bytes) % std::size(kFiles)];
  write_new(file, bytes);
  try {
    read_everything(run, size);
  } catch (const UserError&) {
  }
  std::filesystem::remove(file);
  return 0;
}

}  // namespace tearless::fuzz
