#include "harness/store/ownership.h"

#include <fmt/format.h>
#include <poll.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"
#include "base/words.h"
#include "harness/store/workspace_format.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr double kBeatEvery = 5;  // seconds
constexpr int kLooks = 15;        // a second apart

fs::path beat_of(const Workspace& workspace) { return workspace.root() / "index.beat"; }

// Not while index.json cannot be read: a network disk may fail for a while.
bool is_lost(const Workspace& workspace) {
  std::error_code unreachable;
  const bool is_there = fs::exists(workspace.root() / kIndexClaim, unreachable);
  if (!is_there) return !unreachable;
  return !machine_of_index(workspace).empty() && !is_own_index(workspace);
}

}  // namespace

Ownership::Ownership(const Workspace& workspace) : workspace_(workspace) {}

bool Ownership::holds(double now) {
  if (!workspace_.is_apart()) return true;
  if (is_lost(workspace_)) return false;
  if (beats_ > 0 && now - beat_at_ < kBeatEvery) return true;
  overwrite_in_place(beat_of(workspace_), fmt::format("{:20}\n", ++beats_));
  beat_at_ = now;
  return true;
}

void take_over(const Workspace& workspace, const std::function<void(const std::string&)>& before) {
  const std::string root = workspace.root().string();
  if (!workspace.is_apart()) {
    fail("{} is on a disk of this machine, where no other one can have its index; start the daemon without --take-over",
         root);
  }
  if (is_own_index(workspace) || !fs::exists(workspace.root() / kIndexClaim)) return;
  if (has_writer(workspace)) fail("a tearless of this machine works in {}; stop it first", workspace.index().string());
  const std::string machine = machine_of_index(workspace);
  before(fmt::format("looks for {} seconds whether a service on {} works in {}", kLooks, machine, root));
  const std::optional<std::string> beat = read_if_there(beat_of(workspace));
  for (int look = 0; look < kLooks; ++look) {
    ::poll(nullptr, 0, 1000);
    if (read_if_there(beat_of(workspace)) == beat) continue;
    fail("{} is in use by a service on {}; stop it there: tearless stop --workspace {}", root, machine,
         shell_word(root));
  }
  give_up_index(workspace);
}

}  // namespace tearless::harness
