// A Launcher whose attempts are made by workers: processes on any machines that see the workspace's folder
// (`tearless worker`). It writes grants and the board, reads what workers write, and publishes results.
//
// The life of a granted attempt:
//   1. start(): a number is taken (mkdir), the grant written, and put on the board.
//   2. A worker claims it. Or stop() does, before a worker: then it never began.
//   3. The worker reports the end, and the files that it names are seen here. A result is published; ended.json says
//      that the attempt is over; on_end is called. So the scheduler finds DONE in the run's folder, as always.
//   4. If the worker is gone (its file has not grown for 600 s, or for 60 s and its cluster says that its job has
//      ended, or it has said bye), the attempt is given up: it is lost, unless it has left a result. Its worker may be
//      alive. It then trains on in its own folder, until it sees ended.json.
// Where it is the machine that may be at fault (blame.h), the end is that of an attempt that was stopped: it costs no
// try, and workers of that machine do not claim the next one.
// A service that was killed between any two steps: adopt() of the next one finds grant.json without ended.json, and
// continues from what the files say.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/grants/blame.h"
#include "harness/grants/board.h"
#include "harness/grants/machines.h"
#include "harness/grants/worker_file.h"
#include "harness/grants/workers.h"
#include "harness/runs/launcher.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

class WorkerLauncher : public Launcher {
 public:
  /// The machines of an executor; null if it has none that can be asked for.
  using MachinesOf = std::function<std::unique_ptr<Machines>(const std::string& executor)>;

  /// Makes queue/ in the workspace. `now`: seconds of a steady clock. `machines_of` is called once for each executor
  /// but kWorkers, when it is first needed.
  WorkerLauncher(const Workspace& workspace, std::function<double()> now, MachinesOf machines_of = {});

  std::optional<Refusal> refusal_of(const Needs& needs) const override;
  void start(const Launch& launch) override;
  bool adopt(const std::string& id, const std::filesystem::path& folder, const Needs& needs) override;
  void stop(const std::string& id, Stop how, int grace_seconds) override;
  std::string where(const std::string& id) const override;
  Standing standing_of(const std::string& id) const override;
  double look_every(const std::string& id) const override;
  void expect(const std::map<Needs, int64_t>& waiting) override;
  std::vector<std::string> notes() const override;
  void poll() override;

 private:
  struct Attempt {
    RunDirectory run;
    int64_t number = 0;
    Needs needs = {};
    double granted_at = 0;    // or adopted
    std::string worker = {};  // "" while nobody has claimed it
    double claimed_at = 0;    // when that was seen
    int64_t checkpoint_before = 0;
    bool gets_on = false;               // as Blame has it; or a service before this one has seen its claim
    std::set<std::string> not_on = {};  // hosts whose workers are not to claim it
    bool taken_back = false;
    std::optional<StopOrder> stop = {};
    std::optional<AttemptReport> report = {};
    double reported_at = 0;
  };

  void hear_workers();
  void look_for_claims();
  void note_claim(Attempt& attempt, const std::string& worker);
  static bool is_of(const Attempt& attempt, const std::string& worker);
  Machines* machines_for(const std::string& executor) const;
  /// What became of the job of the attempt's worker, if that is silent and its cluster knows.
  std::optional<Machines::Fate> fate_of(const Attempt& attempt) const;
  int64_t memory_above(const Needs& needs) const;
  /// The workers that are there and may take it.
  int64_t takers_of(const Needs& needs) const;
  /// Why there is none, one phrase.
  std::string why_nobody(const Needs& needs) const;
  /// Of its secrets those that the newest worker of its executor had not. The next job of a cluster would lack them
  /// too.
  std::set<std::string> lacked_secrets(const Needs& needs) const;
  bool is_open(const Attempt& attempt) const { return attempt.worker.empty() && !attempt.taken_back; }
  /// True if its worker has not reported its end and gives no sign of life.
  bool is_silent(const Attempt& attempt) const;
  /// True if a worker that is alive may claim it.
  bool has_taker(const Attempt& attempt) const;
  void note_blame();
  Blame& blame_of(const Attempt& attempt);
  void recall_blame();
  void keep_blame();
  std::vector<std::string> hosts_left_out(const std::string& executor) const;
  std::set<std::string> needed_soon() const;
  void write_board_if_due();

  // In worker_launcher_ends.cc.
  /// What on_end is to be told of an attempt that is over now; nullopt if it is not.
  std::optional<End> end_of(const std::string& id, Attempt& attempt);
  static std::string unseen_file_of(const Attempt& attempt);
  /// Why what the attempt has left is not taken, a sentence (trust.h); or "".
  std::string distrusted(const Attempt& attempt) const;
  /// Ends a grant that has left no result.
  End end_without_result(const std::string& id, Attempt& attempt, double ended_at);
  bool blames_machine(const std::string& id, const Attempt& attempt, FailureClass failure, double ended_at);
  std::string lacks_time(const Attempt& attempt, double ended_at) const;
  void end_without_time(const Attempt& attempt, const std::string& why);
  bool made_checkpoint(const Attempt& attempt) const;

  Workspace workspace_;
  std::function<double()> now_;
  MachinesOf machines_of_;
  mutable std::map<std::string, std::unique_ptr<Machines>> machines_;  // by executor
  std::string fault_;  // why nothing can be granted here, one phrase; or ""
  Workers workers_;
  std::map<std::string, Attempt> attempts_;                                // by run
  std::map<Needs, int64_t> claims_;                                        // since the last poll
  std::map<Needs, int64_t> last_claims_;                                   // between the two polls before
  std::map<std::string, std::set<std::string>> newest_secrets_;            // those of the newest worker, by executor
  std::map<std::string, Blame> blame_;                                     // by executor
  std::map<std::string, std::map<std::string, Blame::LeftOut>> left_out_;  // likewise, then by host; at the last poll
  bool is_blame_new_ = false;                                              // it is to be kept for a later service
  int64_t beat_ = 0;
  std::set<std::string> seen_, needed_;  // the workers that the last board names
  bool changed_ = true;                  // the board is to be written
  double written_at_ = 0, looked_at_ = 0;
};

}  // namespace tearless::harness
