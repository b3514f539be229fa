#include "harness/grants/blame.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

namespace tearless::harness {
namespace {

constexpr size_t kAccusers = 2;

}  // namespace

bool Blame::note_failure(const std::string& run, const std::string& host, std::set<std::string> others, bool is_sound,
                         double now) {
  sound_.erase(host);
  if (const auto before = failures_.find(run); before != failures_.end() && !before->second.is_forgiven) {
    if (before->second.host != host) before->second.accuses = false;
    return false;
  }
  others.insert(sound_.begin(), sound_.end());
  others.erase(host);
  for (const auto& [name, bad] : left_out(now)) others.erase(name);
  if (others.empty()) return false;
  failures_[run] = {.host = host, .at = now, .accuses = !is_sound};
  return true;
}

void Blame::note_progress(const std::string& run, const std::string& host) {
  if (const auto before = failures_.find(run); before != failures_.end()) before->second.is_forgiven = true;
  if (host.empty()) return;
  for (auto& [accuser, failure] : failures_) failure.accuses = failure.accuses && failure.host != host;
  sound_.insert(host);
}

std::set<std::string> Blame::not_on(const std::string& run, double now) const {
  std::set<std::string> hosts;
  for (const auto& [host, bad] : left_out(now)) hosts.insert(host);
  const auto failure = failures_.find(run);
  if (failure != failures_.end() && now - failure->second.at < kKeptOff) hosts.insert(failure->second.host);
  return hosts;
}

std::map<std::string, Blame::LeftOut> Blame::left_out(double now) const {
  std::map<std::string, std::vector<double>> accused;
  std::map<std::string, LeftOut> hosts;
  for (const auto& [run, failure] : failures_) {
    if (!failure.accuses) continue;
    accused[failure.host].push_back(failure.at);
    hosts[failure.host].runs.push_back(run);
  }
  for (auto& [host, times] : accused) {
    std::ranges::sort(times, std::ranges::greater());
    const double newest = times.front();
    const bool is_out =
        times.size() >= kAccusers && newest - times[kAccusers - 1] < kLeftOut && now < newest + kLeftOut;
    hosts.at(host).until = newest + kLeftOut;
    if (!is_out) hosts.erase(host);
  }
  return hosts;
}

nlohmann::json Blame::to_json(double now) const {
  nlohmann::json failures = nlohmann::json::array();
  for (const auto& [run, failure] : failures_) {
    failures.push_back({{"run", run},
                        {"host", failure.host},
                        {"ago", now - failure.at},
                        {"accuses", failure.accuses},
                        {"forgiven", failure.is_forgiven}});
  }
  return {{"failures", failures}, {"sound", sound_}};
}

Blame Blame::from_json(const nlohmann::json& json, double ago, double now) {
  Blame blame;
  blame.sound_ = json.at("sound");
  for (const nlohmann::json& failure : json.at("failures")) {
    blame.failures_[failure.at("run")] = {.host = failure.at("host"),
                                          .at = now - ago - failure.at("ago").get<double>(),
                                          .accuses = failure.at("accuses"),
                                          .is_forgiven = failure.at("forgiven")};
  }
  return blame;
}

}  // namespace tearless::harness
