#include "engine/train/checkpoint.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sealed_json.h"

namespace tearless::engine {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kFormat = 9;            // increase it with every change of state.bin or of the manifest
constexpr int kOldestParameters = 4;  // since then the run is named, and the parameters come first

// A checkpoint that is being written or removed. prune() deletes leftovers.
constexpr std::string_view kTemporary = "tmp-";

fs::path temporary_folder(const RunDirectory& run, int64_t step) {
  return run.checkpoints() / fmt::format("{}{}", kTemporary, step);
}

/// Copies bytes to a tensor, and returns where the next tensor's bytes begin.
const char* fill_from(const at::Tensor& buffer, const char* bytes) {
  const at::Tensor host = buffer.cpu();
  std::memcpy(host.mutable_data_ptr(), bytes, host.nbytes());
  if (!host.is_alias_of(buffer)) buffer.copy_(host);
  return bytes + host.nbytes();
}

/// Removes what does no harm if it stays: on a network file system, a file that is open elsewhere may refuse removal.
void remove_if_possible(const fs::path& path) {
  try {
    remove_recursively(path);
  } catch (const UserError&) {
  }
}

[[noreturn]] void refuse_size(const RunDirectory& run, int64_t step) {
  fail("the checkpoint {} belongs to a model of another size; delete the run's folder", run.checkpoint(step).string());
}

}  // namespace

std::vector<at::Tensor> TrainedState::all() const {
  std::vector<at::Tensor> tensors = {parameters};
  tensors.insert(tensors.end(), optimiser.begin(), optimiser.end());
  tensors.insert(tensors.end(), carried.begin(), carried.end());
  return tensors;
}

TrainedState TrainedState::copy() const {
  TrainedState copied{.parameters = parameters.clone(), .optimiser = {}};
  for (const at::Tensor& buffer : optimiser) copied.optimiser.push_back(buffer.clone());
  for (const at::Tensor& buffer : carried) copied.carried.push_back(buffer.clone());
  return copied;
}

size_t TrainedState::bytes() const { return (1 + optimiser.size()) * parameters.nbytes() + carried_bytes(); }

size_t TrainedState::carried_bytes() const {
  size_t sum = 0;
  for (const at::Tensor& tensor : carried) sum += tensor.nbytes();
  return sum;
}

bool checkpoints_may_wait(double share, size_t bytes) {
  constexpr size_t kAlwaysWritten = 64 << 20;
  return share == 0 || (share < 1 && bytes >= kAlwaysWritten);
}

bool checkpoint_is_due(double share, size_t bytes, double since, double took) {
  if (!checkpoints_may_wait(share, bytes)) return true;
  return share > 0 && took <= share * (since + took);
}

bool Checkpoints::write(int64_t step, const TrainedState& buffers, const json& state) const {
  const fs::path final_name = run_.checkpoint(step);
  // May date from before this step's evaluation. That evaluation is then repeated, with the same result.
  if (fs::exists(final_name)) return false;
  const fs::path temporary = temporary_folder(run_, step);
  remove_if_possible(temporary);
  make_folders(temporary);

  std::string bytes;
  bytes.reserve(buffers.bytes());
  for (const at::Tensor& buffer : buffers.all()) {
    const at::Tensor host = buffer.cpu();
    bytes.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  }
  write_atomically(temporary / "state.bin", bytes);
  write_atomically(temporary / "manifest.json", sealed({{"format", kFormat},
                                                        {"run", run_.id()},
                                                        {"step", step},
                                                        {"state", state},
                                                        {"files", {{"state.bin", sha256(bytes)}}}}));
  publish_folder(temporary, final_name);
  return true;
}

void Checkpoints::remove(int64_t step) const {
  // Renamed first: a partly removed folder must not look like a checkpoint.
  const fs::path doomed = temporary_folder(run_, step);
  remove_recursively(doomed);
  rename_file(run_.checkpoint(step), doomed);
  remove_if_possible(doomed);
}

void Checkpoints::prune(int64_t keep, const std::vector<int64_t>& needed) const {
  const std::vector<int64_t> steps = run_.checkpoint_steps();
  const auto excess = static_cast<int64_t>(steps.size()) - keep;
  for (int64_t i = 0; i < excess; ++i) {
    const int64_t step = steps[static_cast<size_t>(i)];
    if (std::ranges::find(needed, step) == needed.end()) remove(step);
  }
  for (const fs::path& entry : entries_of(run_.checkpoints())) {
    if (entry.filename().string().starts_with(kTemporary)) remove_if_possible(entry);
  }
}

std::optional<int64_t> Checkpoints::newest() const {
  const std::vector<int64_t> steps = run_.checkpoint_steps();
  if (steps.empty()) return std::nullopt;
  return steps.back();
}

StoredCheckpoint Checkpoints::verified(int64_t step, int oldest_format) const {
  const fs::path manifest_path = run_.checkpoint(step) / "manifest.json";
  const fs::path state_path = run_.checkpoint(step) / "state.bin";
  const auto damaged = [&]() -> StoredCheckpoint {
    throw DamagedCheckpoint(fmt::format("the checkpoint {} is damaged", run_.checkpoint(step).string()));
  };
  if (!fs::is_regular_file(manifest_path) || !fs::is_regular_file(state_path)) return damaged();
  const std::string text = read_file(manifest_path);
  const std::optional<json> manifest = unsealed(text);
  if (!manifest) return damaged();
  StoredCheckpoint read;
  try {
    if (const int format = manifest->at("format"); format < oldest_format || format > kFormat) {
      fail(
          "the checkpoint {} was written by another version of the engine; delete that folder; the run then resumes "
          "from an older checkpoint or from the start",
          run_.checkpoint(step).string());
    }
    if (sealed(*manifest) != text) return damaged();  // unsealed() accepts an object without a checksum
    const std::string writer = manifest->at("run");
    if (writer != run_.id()) {
      fail(
          "the checkpoint {} is of the run {}, not of {}; delete that folder; the run then resumes from an older "
          "checkpoint or from the start",
          run_.checkpoint(step).string(), writer, run_.id());
    }
    read.bytes = read_file(state_path);
    if (manifest->at("step") != step || manifest->at("files").at("state.bin") != sha256(read.bytes)) return damaged();
    read.state = manifest->at("state");
  } catch (const json::exception&) {
    return damaged();
  }
  return read;
}

StoredCheckpoint Checkpoints::read(int64_t step, const TrainedState& buffers) const {
  StoredCheckpoint read = verified(step, kFormat);
  if (read.bytes.size() != buffers.bytes()) refuse_size(run_, step);
  return read;
}

void StoredCheckpoint::copy_to(const TrainedState& buffers) const {
  const char* next = bytes.data();
  for (const at::Tensor& buffer : buffers.all()) next = fill_from(buffer, next);
}

void Checkpoints::read_mean(const std::vector<int64_t>& steps, TrainedState& buffers) const {
  require(!steps.empty(), "checkpoints: a mean of none");  // the parameters would stay as they are
  const at::Tensor sum = buffers.parameters.cpu();
  for (const int64_t step : steps) {
    StoredCheckpoint stored = read(step, buffers);
    const at::Tensor values = at::from_blob(stored.bytes.data(), sum.sizes(), at::kFloat);
    step == steps.front() ? sum.copy_(values) : sum.add_(values);
  }
  if (steps.size() > 1) sum.div_(static_cast<double>(steps.size()));
  if (!sum.is_alias_of(buffers.parameters)) buffers.parameters.copy_(sum);
}

void Checkpoints::read_parameters(int64_t step, at::Tensor& parameters, int64_t buffers, size_t carried_bytes) const {
  const StoredCheckpoint read = verified(step, kOldestParameters);
  const size_t flat = static_cast<size_t>(1 + buffers) * parameters.nbytes();
  if (read.bytes.size() != flat + carried_bytes) refuse_size(run_, step);
  fill_from(parameters, read.bytes.data());
}

}  // namespace tearless::engine
