// Leave to make one attempt on a run, and who has taken it. The files of a grant are in attempts/<n>/, whose number
// RunDirectory::make_attempt() has taken for the service:
//
//   grant.json    what the attempt is: settings, program, environment, where its state comes from; sealed
//   claim.<who>   the name of a worker that wants it, a line
//   claimed       a hard link to one of these: who has it
//   ended.json    the service has finished with the attempt, and, if nobody else could record it, why it ended; sealed
//
// Two things are exclusive whatever happens to services, workers and clocks: a number (mkdir), and a claim (link). All
// else can only waste time.
//
// Trap: NFS may answer EEXIST to a link() that it has carried out (the first answer was lost). So the answer is not
// read: the claim is ours if both names are one inode.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/run_directory.h"
#include "harness/grants/run_files.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/launcher.h"
#include "harness/runs/states.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

struct Grant {
  std::string id = {};  // of the run
  int64_t attempt = 0;
  std::string settings, local;  // texts of run.toml and local.toml
  TrainingProgram program;      // `path` is relative to the workspace where it lies in it
  Needs needs;
  std::map<std::string, RunFiles> origins = {};  // what it reads of other runs
  int64_t from = 0;  // the attempt in whose work folder the newest state is; 0: the run's own folder
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Grant, id, attempt, settings, local, needs, origins, from)

/// Writes grant.json, durably. REQUIRES: attempts/<n> is there.
void write_grant(const RunDirectory& run, const Grant& grant);

/// Nullopt if it is not there, damaged, or cut: its settings must have the run's id.
std::optional<Grant> read_grant(const RunDirectory& run, int64_t attempt);

/// True for one caller on any machine, and for that one again; durable. `who` names one process, or the service.
bool claim_grant(const RunDirectory& run, int64_t attempt, std::string_view who);

/// By this name the service claims a grant that it takes back.
inline constexpr const char* kService = "service";

/// Where the newest state of the run is before attempt `number`: the number of the newest attempt before it whose work
/// folder has a checkpoint, or 0 if that is an attempt on the service's machine, whose state is in the run's own
/// folder. Without any checkpoint that of the newest attempt: a program may keep its state elsewhere. Not the highest
/// step: of two attempts the later one knows which checkpoints are damaged.
int64_t newest_state_before(const RunDirectory& run, int64_t number);

}  // namespace tearless::harness
