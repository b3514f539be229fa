// model.safetensors in the run's folder: the parameters of a finished run, in the format of Hugging Face's safetensors,
// which other programs read too (https://github.com/huggingface/safetensors):
//
//   bytes 0 … 7   length N of the header, little-endian
//   N bytes       JSON: {"__metadata__": {"run", "sha256", "steps"},
//                        NAME: {"dtype": "F32", "shape", "data_offsets"}, …}
//   the rest      the tensors, fp32, little-endian, one after another: Parameters::values() as it is
//
// "sha256" is of the rest; "steps" are those of the checkpoints whose mean the parameters are. Matrices are [out, in].
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/run_directory.h"
#include "engine/model/parameters.h"
#include "engine/train/options.h"
#include "engine/train/task.h"

namespace tearless::engine {

/// Writes the file atomically.
void write_model(const RunDirectory& run, const Parameters& parameters, const std::vector<int64_t>& steps);
/// Reads the file into `parameters`. UserError if it is damaged, or of another run or model.
void read_model(const RunDirectory& run, Parameters& parameters);

/// Reads the model of a finished run into `task`: model.safetensors, or, of a run that ended before there was this
/// file, the checkpoint of its score selected_step. Returns the file that was read. UserError if the run is not done,
/// there is neither file, or it is damaged.
std::filesystem::path read_finished_model(const RunDirectory& run, const TrainOptions& train, Task& task);

}  // namespace tearless::engine
