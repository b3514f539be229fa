// Checkpoints. A checkpoint is complete or absent, and is used only if its checksums match.
//
//   checkpoints/step-N/state.bin      parameters and the optimiser's buffers: fp32, little-endian, one after another;
//                                     then the carried state of the task, if it has any
//   checkpoints/step-N/manifest.json  {"format", "run", "step", "state": …, "files": {"state.bin": SHA-256}}, as
//                                     sealed JSON (base/sealed_json.h); "run" is the run's id
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/run_directory.h"

namespace tearless::engine {

/// The tensors of a checkpoint.
struct TrainedState {
  at::Tensor parameters;                 // [P]
  std::vector<at::Tensor> optimiser;     // OptimiserState::buffers, [P] each
  std::vector<at::Tensor> carried = {};  // Trainable::carried(), contiguous

  /// All of them, in the order of state.bin.
  std::vector<at::Tensor> all() const;
  /// With memory of their own, on the same device.
  TrainedState copy() const;
  /// Their size in state.bin.
  size_t bytes() const;
  size_t carried_bytes() const;
};

/// A checkpoint that was read and verified.
struct StoredCheckpoint {
  nlohmann::json state;  // the small values
  std::string bytes;     // the content of state.bin

  /// Copies them to the tensors of `buffers`, whose sizes must be those of the model that wrote the checkpoint.
  void copy_to(const TrainedState& buffers) const;
};

/// A checkpoint, or a file that it depends on, is missing or not as written. The run can continue from an older one.
class DamagedCheckpoint : public UserError {
 public:
  using UserError::UserError;
};

/// Whether an evaluation may leave a checkpoint of `bytes` to a later one, and keep in memory what that needs. `share`:
/// ExecutionOptions::checkpoint_share.
bool checkpoints_may_wait(double share, size_t bytes);
/// Whether an evaluation is to write a checkpoint of `bytes`, `since` seconds after the end of the last one, which took
/// `took`: where checkpoints then take at most `share` of the time.
bool checkpoint_is_due(double share, size_t bytes, double since, double took);

class Checkpoints {
 public:
  explicit Checkpoints(const RunDirectory& run) : run_(run) {}

  /// Publishes checkpoints/step-N; returns false if it exists already. `state`: the small values.
  bool write(int64_t step, const TrainedState& buffers, const nlohmann::json& state) const;
  /// Removes all checkpoints but the newest `keep` and those of the steps `needed`, and temporary folders that a crash
  /// left.
  void prune(int64_t keep, const std::vector<int64_t>& needed) const;
  /// Removes one checkpoint. Throws UserError if that fails.
  void remove(int64_t step) const;

  /// The step of the newest checkpoint.
  std::optional<int64_t> newest() const;
  /// Reads and verifies the checkpoint of a training with these buffers, which stay as they are. Throws
  /// DamagedCheckpoint if it is absent, incomplete or changed; UserError if it is intact but of another version of the
  /// engine, another run or other sizes.
  StoredCheckpoint read(int64_t step, const TrainedState& buffers) const;
  /// Reads the mean of the parameters of these steps into `buffers`, in fp32 and in the order of the steps
  /// (docs/spec/training.md §6.7). One checkpoint is in memory at a time. Throws as read() does; the parameters are
  /// then undefined. REQUIRES: `steps` is not empty (std::logic_error).
  void read_mean(const std::vector<int64_t>& steps, TrainedState& buffers) const;
  /// Reads the parameters only, of a training whose optimiser has `buffers`, also if an older version wrote them.
  /// Throws as read() does.
  void read_parameters(int64_t step, at::Tensor& parameters, int64_t buffers, size_t carried_bytes) const;

 private:
  /// As read(), whatever the size, of a format not older than `oldest_format`.
  StoredCheckpoint verified(int64_t step, int oldest_format) const;

  RunDirectory run_;
};

}  // namespace tearless::engine
