// What one machine has written or seen of a run, and another must see before it continues: on a network disk files
// appear late, in any order, and first in part. A worker waits for the runs that a derived run reads, whose program
// would else refuse it for good; the service waits for all that a worker has left.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/run_directory.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

struct RunFiles {
  std::string done;                           // SHA-256 of DONE
  std::map<std::string, int64_t> bytes = {};  // of the other files of result and state, by their paths in the folder
  bool operator==(const RunFiles&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunFiles, done, bytes)

/// REQUIRES: the run has a DONE.
RunFiles files_of(const RunDirectory& run);

/// The first file that is not there as it was, or not as DONE says; "" if all are.
std::string unseen_file(const RunDirectory& run, const RunFiles& files);

/// The run from which one with these settings derives, that from which this one does, and so on; by their ids.
/// REQUIRES: each has a DONE.
std::map<std::string, RunFiles> origins_of(const Workspace& workspace, std::string settings);

}  // namespace tearless::harness
