#include "base/work_done.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"

namespace tearless {
namespace {

constexpr std::streamoff kMetricsTail = 1 << 16;  // bytes at the end of metrics.jsonl that are searched for a line

int64_t last_step_in(const std::filesystem::path& metrics) {
  std::ifstream in(metrics, std::ios::binary | std::ios::ate);
  if (!in) return 0;
  in.seekg(std::max<std::streamoff>(0, in.tellg() - kMetricsTail));
  const std::string tail{std::istreambuf_iterator<char>(in), {}};
  const size_t end = tail.rfind('\n');
  if (end == std::string::npos) return 0;
  const std::vector<std::string_view> lines = split_lines(std::string_view(tail).substr(0, end));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto metric = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (!metric.is_object()) continue;
    const auto step = metric.find("step");
    if (step == metric.end() || !step->is_number_integer()) continue;
    if (const auto value = step->get<int64_t>(); value >= 0) return value;
  }
  return 0;
}

int64_t changed_ns(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return 0;
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

WorkDone work_done(const RunDirectory& run) {
  return {.checkpoint = std::max<int64_t>(0, run.newest_checkpoint()),
          .step = last_step_in(run.metrics()),
          .reported_ns = changed_ns(run.metrics())};
}

}  // namespace tearless
