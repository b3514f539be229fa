#include "engine/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace tearless::engine {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kFormat = 2;  // 1: parameters whose sizes are no multiple of 8 stood among the others
constexpr std::string_view kPrefix = "step-";

std::optional<int64_t> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || stop != end) return std::nullopt;
  return step;
}

std::vector<int64_t> steps_in(const fs::path& folder) {
  std::vector<int64_t> steps;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    if (const auto step = step_of(entry.path())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string_view bytes_of(const at::Tensor& host) {
  return {reinterpret_cast<const char*>(host.const_data_ptr<float>()),
          static_cast<size_t>(host.numel()) * sizeof(float)};
}

void fill_from(at::Tensor& buffer, const char* bytes) {
  at::Tensor host = buffer.cpu();
  std::memcpy(host.mutable_data_ptr<float>(), bytes, static_cast<size_t>(host.numel()) * sizeof(float));
  if (!host.is_alias_of(buffer)) buffer.copy_(host);
}

}  // namespace

fs::path Checkpoints::folder(int64_t step) const { return run_.checkpoints() / fmt::format("{}{}", kPrefix, step); }

void Checkpoints::write(int64_t step, const TrainedState& buffers, const json& state) const {
  const fs::path final_name = folder(step);
  if (fs::exists(final_name))
    return;  // perhaps from before this step's evaluation, which is then made again: to the same end
  const fs::path temporary = run_.checkpoints() / fmt::format("tmp-{}", step);
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  make_folders(temporary);

  Sha256 checksum;
  std::string bytes;
  for (const at::Tensor* buffer : {&buffers.parameters, &buffers.first_moment, &buffers.second_moment}) {
    const at::Tensor host = buffer->cpu();
    bytes.append(bytes_of(host));
  }
  checksum.update(bytes);
  write_atomically(temporary / "state.bin", bytes);
  const json manifest = {
      {"format", kFormat}, {"step", step}, {"state", state}, {"files", {{"state.bin", checksum.hex()}}}};
  write_atomically(temporary / "manifest.json", manifest.dump(2) + "\n");
  publish_folder(temporary, final_name);
}

void Checkpoints::prune(int64_t keep, std::optional<int64_t> best) const {
  std::vector<int64_t> steps = steps_in(run_.checkpoints());
  std::error_code ignored;
  const auto excess = static_cast<int64_t>(steps.size()) - keep;
  for (int64_t i = 0; i < excess; ++i) {
    const int64_t step = steps[static_cast<size_t>(i)];
    if (step == best) continue;
    // Renamed first: a folder that is half removed must not look like a checkpoint.
    const fs::path doomed = run_.checkpoints() / fmt::format("tmp-{}", step);
    fs::rename(folder(step), doomed, ignored);
    fs::remove_all(doomed, ignored);
  }
  for (const auto& entry : fs::directory_iterator(run_.checkpoints(), ignored)) {
    if (!step_of(entry.path())) fs::remove_all(entry.path(), ignored);
  }
}

std::optional<int64_t> Checkpoints::newest() const {
  const std::vector<int64_t> steps = steps_in(run_.checkpoints());
  if (steps.empty()) return std::nullopt;
  return steps.back();
}

json Checkpoints::read_verified(int64_t step, std::string& bytes) const {
  const fs::path manifest_path = folder(step) / "manifest.json";
  const fs::path state_path = folder(step) / "state.bin";
  const char* what = "is damaged";
  try {
    const json manifest = json::parse(read_file(manifest_path));
    bytes = read_file(state_path);
    if (manifest.at("format") != kFormat) {
      what = "was written by another version of the engine";
    } else if (manifest.at("files").at("state.bin") == sha256(bytes)) {
      return manifest.at("state");
    }
  } catch (const json::exception&) {
  }
  fail("the checkpoint {} {}; delete that folder, and the run goes on from an older one or from the start",
       folder(step).string(), what);
}

json Checkpoints::read(int64_t step, TrainedState& buffers) const {
  std::string bytes;
  json state = read_verified(step, bytes);
  const size_t size = static_cast<size_t>(buffers.parameters.numel()) * sizeof(float);
  if (bytes.size() != 3 * size) {
    fail("the checkpoint {} is of a model of another size; delete the run's folder", folder(step).string());
  }
  fill_from(buffers.parameters, bytes.data());
  fill_from(buffers.first_moment, bytes.data() + size);
  fill_from(buffers.second_moment, bytes.data() + 2 * size);
  return state;
}

void Checkpoints::read_parameters(int64_t step, at::Tensor& parameters) const {
  std::string bytes;
  read_verified(step, bytes);
  fill_from(parameters, bytes.data());
}

}  // namespace tearless::engine
