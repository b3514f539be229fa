#include "harness/devices/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tearless::harness {
namespace {

std::string throughput_text(double throughput) {
  if (throughput >= 999'950) return fmt::format("{:.1f}M", throughput / 1e6);
  return throughput >= 1000 ? fmt::format("{:.1f}k", throughput / 1e3) : fmt::format("{:.3g}", throughput);
}

}  // namespace

void Sharing::observe(const SharingObservation& observation) {
  if (!(observation.seconds > 0) || !(observation.updates >= 0) || observation.runs < 1) return;
  Samples& samples = classes_[observation.resource_class][observation.runs];
  samples.push_back({.seconds = observation.seconds, .updates = observation.updates});
  if (samples.size() > kMaxObservations) samples.pop_front();
}

nlohmann::json Sharing::observations_of(const std::string& resource_class) const {
  auto observations = nlohmann::json::array();
  if (const auto found = classes_.find(resource_class); found != classes_.end()) {
    for (const auto& [runs, samples] : found->second) {
      for (const Sample& sample : samples) observations.push_back({runs, sample.seconds, sample.updates});
    }
  }
  return observations;
}

void Sharing::restore(const std::string& resource_class, const nlohmann::json& observations) {
  std::vector<SharingObservation> all;
  for (const nlohmann::json& each : observations) {
    all.push_back({.resource_class = resource_class, .runs = each.at(0), .seconds = each.at(1), .updates = each.at(2)});
  }
  classes_.erase(resource_class);
  for (const SharingObservation& each : all) observe(each);
}

Sharing::Mean Sharing::mean_of(const Samples& samples) {
  double seconds = 0, updates = 0, squares = 0;
  for (const Sample& sample : samples) {
    seconds += sample.seconds;
    updates += sample.updates;
  }
  Mean mean;
  mean.throughput = updates / seconds;
  for (const Sample& sample : samples) {
    const double difference = sample.updates / sample.seconds - mean.throughput;
    squares += difference * difference;
  }
  const auto count = static_cast<double>(samples.size());
  if (samples.size() > 1) mean.error = std::sqrt(squares / (count - 1) / count);
  mean.enough = samples.size() >= kMaxObservations ||
                (samples.size() >= kMinObservations && mean.error <= kExact * mean.throughput);
  return mean;
}

Sharing::Answer Sharing::runs_per_device(const std::string& resource_class, int most) const {
  most = std::max(most, 1);
  std::map<int, Mean> means;  // of the numbers that need no more observations
  if (const auto found = classes_.find(resource_class); found != classes_.end()) {
    for (const auto& [runs, samples] : found->second) {
      const Mean mean = mean_of(samples);
      if (runs <= most && mean.enough) means[runs] = mean;
    }
  }

  // The numbers that were measured without a gap, up to the first that the search still needs.
  double best = 0;
  int next = 0;  // the number to measure; 0: the search has ended
  for (int runs = 1; runs <= most; ++runs) {
    const auto mean = means.find(runs);
    if (mean == means.end()) {
      next = runs;
      break;
    }
    best = std::max(best, mean->second.throughput);
    if (runs == 1) continue;
    const Mean& before = means.at(runs - 1);
    // By its standard error more than was measured: an unlucky measurement must not end the search.
    const double gain = mean->second.throughput - before.throughput + std::hypot(mean->second.error, before.error);
    if (mean->second.throughput + (most - runs) * gain < (1 + kWorthTrying) * best) break;
  }

  Answer answer;
  if (next > 0) {
    answer = {.runs = next, .searching = true, .why = ""};
  } else {
    for (const auto& [runs, mean] : means) best = std::max(best, mean.throughput);
    const auto chosen = std::find_if(means.begin(), means.end(),
                                     [&](const auto& mean) { return mean.second.throughput >= (1 - kAsGood) * best; });
    answer.runs = chosen->first;
  }

  std::string sums;
  for (const auto& [runs, mean] : means) {
    sums += sums.empty() ? "" : ", ";
    sums += fmt::format("{} {} {}{}", runs, sums.empty() ? (runs == 1 ? "run makes" : "runs make") : "make",
                        throughput_text(mean.throughput), sums.empty() ? " updates/s" : "");
  }
  if (sums.empty()) sums = "not measured yet";
  answer.why = fmt::format("{}{} per GPU{}: {}", answer.searching ? "trying " : "", answer.runs,
                           answer.runs == most ? ", as many as its memory takes" : "", sums);
  return answer;
}

}  // namespace tearless::harness
