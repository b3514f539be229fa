#include "engine/train/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/omitted.h"
#include "engine/train/checkpoint.h"

namespace tearless::engine {
namespace {

using nlohmann::json;

/// The header of parameters whose bytes have that checksum, with spaces behind it so that the tensors are aligned.
std::string header_of(const RunDirectory& run, const Parameters& parameters, std::string_view steps,
                      std::string_view sha256) {
  json header = {{"__metadata__", {{"run", run.id()}, {"sha256", sha256}, {"steps", steps}}}};
  uint64_t begin = 0;
  for (const ParameterSpec& spec : parameters.specs()) {
    const uint64_t end = begin + sizeof(float) * static_cast<uint64_t>(spec.size());
    header[spec.name] = {{"dtype", "F32"}, {"shape", spec.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

static_assert(std::endian::native == std::endian::little);

void write_model(const RunDirectory& run, const Parameters& parameters, const std::vector<int64_t>& steps) {
  const at::Tensor host = parameters.values().cpu();
  const std::string_view values(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  const std::string header = header_of(run, parameters, fmt::format("{}", fmt::join(steps, " ")), sha256(values));
  const uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  file += values;
  write_atomically(run.model(), file);
}

void read_model(const RunDirectory& run, Parameters& parameters) {
  const std::string file = read_file(run.model());
  const std::string_view bytes = file;
  const at::Tensor host = parameters.values().cpu();
  uint64_t length = 0;
  if (bytes.size() >= sizeof length) std::memcpy(&length, bytes.data(), sizeof length);
  const auto refuse = [&] {
    fail(
        "{} is damaged, or of another run or model; restore it from a copy, or delete the run's folder and train it "
        "again",
        run.model().string());
  };
  if (length > bytes.size() || bytes.size() != sizeof length + length + host.nbytes()) refuse();
  const std::string_view header = bytes.substr(sizeof length, length), values = bytes.substr(sizeof length + length);
  const json read = json::parse(header, nullptr, /*allow_exceptions=*/false);
  const json steps = read.is_object() ? read.value(json::json_pointer("/__metadata__/steps"), json()) : json();
  if (!steps.is_string() || header != header_of(run, parameters, steps.get<std::string>(), sha256(values))) refuse();
  std::memcpy(host.mutable_data_ptr(), values.data(), values.size());
  if (!host.is_alias_of(parameters.values())) parameters.values().copy_(host);
  parameters.update_bf16_copy();
}

std::filesystem::path read_finished_model(const RunDirectory& run, const TrainOptions& train, Task& task) {
  const json scores = json::parse(read_result(run, "scores.json"));
  if (std::filesystem::exists(run.model())) {
    read_model(run, task.parameters());
    return run.model();
  }
  const auto step = static_cast<int64_t>(scores.at("selected_step").get<double>());
  if (!std::filesystem::exists(run.checkpoint(step))) {
    require_here(run, run.model().filename().string());
    fail("{} has no model.safetensors: it was deleted; delete the folder and train the run again", run.root().string());
  }
  size_t carried_bytes = 0;
  for (const at::Tensor& tensor : task.carried()) carried_bytes += tensor.nbytes();
  Checkpoints(run).read_parameters(step, task.parameters().values(), train.optimiser.chosen().buffers, carried_bytes);
  task.parameters().update_bf16_copy();
  return run.checkpoint(step) / "state.bin";
}

}  // namespace tearless::engine
