// checkpoints/step-N/: everything a run needs to go on as if it had never stopped. Complete or absent.
//   state.bin      parameters, first and second moments: three times P floats, as they lie in memory
//   manifest.json  {"format", "step", "state": …, "files": {"state.bin": sha256}}
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/run_directory.h"

namespace tearless::engine {

/// The flat buffers [P] that a checkpoint holds.
struct TrainedState {
  at::Tensor parameters, first_moment, second_moment;
};

class Checkpoints {
 public:
  explicit Checkpoints(const RunDirectory& run) : run_(run) {}

  /// Publishes step-N. `state`: the small values, JSON.
  void write(int64_t step, const TrainedState& buffers, const nlohmann::json& state) const;
  /// Removes all but the newest `keep` and the one of step `best`, and what a crash left half-written.
  void prune(int64_t keep, std::optional<int64_t> best) const;

  /// The newest step there is.
  std::optional<int64_t> newest() const;
  /// Fills the buffers and returns the small values. UserError where the bytes are not those that were written.
  nlohmann::json read(int64_t step, TrainedState& buffers) const;
  /// Only the parameters.
  void read_parameters(int64_t step, at::Tensor& parameters) const;

 private:
  std::filesystem::path folder(int64_t step) const;
  nlohmann::json read_verified(int64_t step, std::string& bytes) const;

  RunDirectory run_;
};

}  // namespace tearless::engine
