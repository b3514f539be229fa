// How many runs of a resource class share one GPU: the number with the highest sum of measured throughput, within what
// memory allows. A resource class is a key of the caller's: runs with the same key are equally fast on one kind of GPU.
//
// The number is found by trying: one run, then two, and so on. Runs slow each other down, and each further run adds
// less than the one before it. So the gain of the last step, made again by every further run that memory allows, is
// the most that these can add; the search ends when that promises less than kWorthTrying. Chosen is the smallest
// number whose sum is within kAsGood of the best: fewer runs end sooner and need less memory. Recent observations
// replace old ones, so a number that becomes worse is left.
//
//   updates/s
//      21k |         3   4     4 adds nothing to 3: the search ends
//      18k |     2             3 is chosen
//      10k | 1
//          +-------------- runs per GPU
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace tearless::harness {

/// What `runs` runs of a resource class did while they, and nothing else, ran on one GPU.
struct SharingObservation {
  std::string resource_class;
  int runs = 1;
  double seconds = 0;  // > 0; a minute or more, so that it includes evaluations and checkpoints
  double updates = 0;  // of all these runs together
};

class Sharing {
 public:
  static constexpr double kWorthTrying = 0.02;  // of the best sum
  static constexpr double kAsGood = 0.025;      // of the best sum
  static constexpr double kExact = 0.01;        // standard error of a mean throughput that needs no more observations
  static constexpr size_t kMinObservations = 3;
  static constexpr size_t kMaxObservations = 12;  // of a number of runs; older ones are dropped

  struct Answer {
    int runs = 1;            // on one GPU
    bool searching = false;  // true: this number is to be measured next
    std::string why;         // one sentence with the measured sums
  };

  /// Ignores observations without duration or without runs.
  void observe(const SharingObservation& observation);

  /// What was observed of a resource class, and its inverse. nlohmann::json::exception for anything else.
  nlohmann::json observations_of(const std::string& resource_class) const;
  void restore(const std::string& resource_class, const nlohmann::json& observations);

  /// How many runs of a resource class to place on one GPU. `most` is how many its memory takes; below 1 it counts
  /// as 1.
  Answer runs_per_device(const std::string& resource_class, int most) const;

 private:
  struct Sample {
    double seconds = 0, updates = 0;
  };
  struct Mean {
    double throughput = 0;  // updates/s, the sum over the runs
    double error = 0;       // standard error of it
    bool enough = false;    // it needs no more observations
  };
  using Samples = std::deque<Sample>;

  static Mean mean_of(const Samples& samples);

  std::map<std::string, std::map<int, Samples>>
      classes_;  // resource class → number of runs → observations, oldest first
};

}  // namespace tearless::harness
