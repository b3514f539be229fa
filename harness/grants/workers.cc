#include "harness/grants/workers.h"

#include <algorithm>
#include <utility>

#include "base/files.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// Seconds without growth.
constexpr double kSilent = 60;           // nothing more is granted for it
constexpr double kForget = 24 * 3600.0;  // its file is removed

}  // namespace

Workers::Workers(fs::path folder, std::function<double()> now) : folder_(std::move(folder)), now_(std::move(now)) {
  make_folders(folder_);
}

std::map<std::string, WorkerNews> Workers::read() {
  for (const fs::path& file : entries_of(folder_)) {
    if (file.extension() == ".jsonl")
      workers_.try_emplace(file.stem(), Worker{.tail = WorkerTail(file), .grew_at = now_()});
  }
  std::map<std::string, WorkerNews> all;
  for (auto& [name, worker] : workers_) {
    WorkerNews& news = all[name] = worker.tail.read();
    if (news.grew) worker.grew_at = now_();
    if (news.facts) worker.facts = news.facts;
    worker.has_said_bye |= !news.bye.empty();
  }
  return all;
}

void Workers::read_again() {
  for (auto& [name, worker] : workers_) worker.tail = WorkerTail(file_of(name));
}

const Workers::Worker* Workers::find(const std::string& name) const {
  const auto found = workers_.find(name);
  return found == workers_.end() ? nullptr : &found->second;
}

std::set<std::string> Workers::present() const {
  std::set<std::string> names;
  for (const auto& [name, worker] : workers_) {
    if (worker.facts && !worker.has_said_bye) names.insert(name);
  }
  return names;
}

std::vector<const WorkerFacts*> Workers::alive() const {
  std::vector<const WorkerFacts*> alive;
  for (const std::string& name : present()) {
    if (!is_silent(name)) alive.push_back(facts_of(name));
  }
  return alive;
}

const WorkerFacts* Workers::facts_of(const std::string& name) const {
  const Worker* worker = find(name);
  return worker && worker->facts ? &*worker->facts : nullptr;
}

std::string Workers::host_of(const std::string& name) const {
  const WorkerFacts* facts = facts_of(name);
  return facts ? facts->host : "";
}

std::optional<double> Workers::last_sign_of(const std::string& name) const {
  const Worker* worker = find(name);
  return worker ? std::optional(worker->grew_at) : std::nullopt;
}

bool Workers::is_silent(const std::string& name) const {
  const Worker* worker = find(name);
  return !worker || now_() - worker->grew_at >= kSilent;
}

bool Workers::is_gone(const std::string& name, double since) const {
  const Worker* worker = find(name);
  return (worker && worker->has_said_bye) || now_() - (worker ? worker->grew_at : since) > kGone;
}

void Workers::forget_all_but(const std::set<std::string>& awaited) {
  std::erase_if(workers_, [&](const auto& entry) {
    const auto& [name, worker] = entry;
    const bool is_over = worker.has_said_bye || now_() - worker.grew_at > kForget;
    if (awaited.contains(name) || !is_over) return false;
    remove_file(file_of(name));
    return true;
  });
}

}  // namespace tearless::harness
