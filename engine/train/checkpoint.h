// Checkpoints: complete or absent, and believed only where every byte is the one that was written.
//
//   checkpoints/step-N/state.bin      parameters, first and second moments: fp32, little-endian, one after another
//   checkpoints/step-N/manifest.json  {"format", "step", "state": …, "files": {"state.bin": sha256}}, sealed
//                                     (base/record.h)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/run_directory.h"

namespace tearless::engine {

/// The flat buffers [P] that a checkpoint holds.
struct TrainedState {
  at::Tensor parameters, first_moment, second_moment;
};

/// A checkpoint as it was read: its checksums were right.
struct StoredCheckpoint {
  nlohmann::json state;  // the small values
  std::string bytes;     // of the buffers

  void copy_to(TrainedState& buffers) const;
};

/// A checkpoint, or something that it needs, is not what was written. The run can go on from an older one.
class DamagedCheckpoint : public UserError {
 public:
  using UserError::UserError;
};

class Checkpoints {
 public:
  explicit Checkpoints(const RunDirectory& run) : run_(run) {}

  /// Publishes step-N; false where there is one already. `state`: the small values, JSON.
  bool write(int64_t step, const TrainedState& buffers, const nlohmann::json& state) const;
  /// Removes all but the newest `keep` and the one of step `best`, and what a crash left half-written.
  void prune(int64_t keep, std::optional<int64_t> best) const;
  /// Removes one; UserError where that is not possible.
  void remove(int64_t step) const;

  /// The newest step there is.
  std::optional<int64_t> newest() const;
  /// Reads the checkpoint of a model of `parameters` numbers. DamagedCheckpoint where it is absent, incomplete or
  /// changed; UserError where it is whole, but of another version of the engine or of a model of another size.
  StoredCheckpoint read(int64_t step, int64_t parameters) const;
  /// Only the parameters; errors as those of read().
  void read_parameters(int64_t step, at::Tensor& parameters) const;

 private:
  RunDirectory run_;
};

}  // namespace tearless::engine
