// How much memory to reserve for a run, by its resource class. A resource class is a key of the caller's: runs with the
// same key need the same memory (same device kind, model and batch sizes), of a GPU or of the machine.
//
// Used is the first that is known:
//   1. what the user declared, as it stands, unless more was measured;
//   2. the measured peak of earlier runs × kPeakMargin;
//   3. the training program's estimate × kEstimateMargin, unless a run that has not ended uses more.
// A run that ran out of memory beside others raises the need of its resource class: what was known was too little.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tearless::harness {

class MemoryNeeds {
 public:
  static constexpr double kPeakMargin = 1.1;      // peaks differ with the order of batches
  static constexpr double kEstimateMargin = 1.3;  // allocator and libraries are not in the estimate
  static constexpr double kGrowth = 1.5;          // of what was reserved when it did not suffice

  struct Answer {
    std::optional<int64_t> bytes;  // unset: nothing is known
    std::string why;               // "8.0 GiB measured, with a margin of 10 %"
  };

  /// What is said of a run before it has run.
  struct Said {
    std::optional<int64_t> declared;  // by the user
    std::optional<int64_t> estimate;  // of the training program
  };

  /// The peak of a run that ended by itself. The largest counts.
  void learn_peak(const std::string& resource_class, int64_t bytes);

  /// What a run uses that has not ended, or used before it failed: its peak may be higher. The largest counts.
  void learn_use(const std::string& resource_class, int64_t bytes);

  /// A run ran out of memory. `reserved` is what it had reserved. `shared`: beside other runs; a run that had the
  /// device to itself needs more than the device has, and no reservation helps it.
  void ran_out(const std::string& resource_class, int64_t reserved, bool shared);

  /// The largest peak of a resource class's runs that ended by themselves.
  std::optional<int64_t> peak_of(const std::string& resource_class) const;

  /// How much to reserve for a run of a resource class.
  Answer of(const std::string& resource_class, const Said& said = {}) const;

 private:
  struct Known {
    std::optional<int64_t> peak;
    int64_t used = 0;    // the most that any run used, also one that has not ended
    int64_t raised = 0;  // the least to reserve after a run ran out of memory; 0: none did
  };
  std::map<std::string, Known> classes_;
};

}  // namespace tearless::harness
