// A plan of faults (base/fault.h) that a test makes, hands to programs, and reads afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fault.h"

namespace tearless::test {

class Faults {
 public:
  /// Makes the plan as a file in `folder`. At first it only counts.
  explicit Faults(const std::filesystem::path& folder);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  fault::FaultPlan& plan() { return *plan_; }
  /// From now on this process acts by the plan, too: once in its life, so in a child of a test.
  void begin_here() const;
  /// What a program needs in its environment to act by the plan.
  std::map<std::string, std::string> environment() const;

  /// At point `number` the victims are killed: roles, or kCallingProcess.
  void kill_at(int64_t number, uint32_t victims);
  /// Calls of these kinds fail from the `first`-th to the `last`-th.
  void fail(uint32_t kinds, int error, int64_t first, int64_t last);
  /// From now on calls succeed again.
  void end() const { plan_->action = fault::kCount; }
  /// When a program first comes into `phase` ("starting", "preparing" …) it is sent `signal`; asked: after its
  /// supervisor was asked to stop it.
  void signal_at(const std::string& phase, int signal, bool asked);
  /// From now on what is made durable is copied to `folder`.
  void keep_shadow(const std::filesystem::path& folder);

  int64_t points() const { return plan_->points; }
  int64_t hits() const { return plan_->hits; }
  /// Processes that have acted by the plan and are still there, "PID COMMAND" each.
  std::vector<std::string> alive() const;
  void kill_all() const;

 private:
  std::filesystem::path file_;
  fault::FaultPlan* plan_ = nullptr;
};

/// Runs `scene` in an empty folder, in a child process, since a process has one plan for its life. Returns a folder
/// with what a power cut would leave of the scene's: names and bytes that were synced. Both lie in `folder`.
std::filesystem::path after_power_cut(const std::filesystem::path& folder,
                                      const std::function<void(const std::filesystem::path& root)>& scene);

/// What is done in a folder, and the file by which others know that it is done.
struct DonePart {
  std::function<void(const std::filesystem::path&root)> before, act;  // what `before` makes is durable
  std::filesystem::path last;                                         // relative to root
};
/// Does it again and again, each time with a power cut at the next point of `act`, and calls `check` with what is left.
/// Of names that were not synced, disks keep which they like: here that of `last`, once it was made, and no other.
/// Returns the number of points.
int64_t at_each_power_cut(const DonePart& part,
                          const std::function<void(const std::filesystem::path& left, int64_t point)>& check);

}  // namespace tearless::test
