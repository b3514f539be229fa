// The launcher of this machine and that of workers, as one. start() goes by Needs::executor, all else to the one that
// has the attempt.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/runs/launcher.h"

namespace tearless::harness {

class Launchers : public Launcher {
 public:
  /// `make_workers` is called when the first run needs it: only a workspace that has such runs has queue/.
  Launchers(std::unique_ptr<Launcher> local, std::function<std::unique_ptr<Launcher>()> make_workers);

  std::optional<Refusal> refusal_of(const Needs& needs) const override { return launcher_for(needs).refusal_of(needs); }
  /// On this machine, a run continues from the state that a worker has left.
  void start(const Launch& launch) override;
  /// A granted attempt is the workers', also where its worker is on this machine.
  bool adopt(const std::string& id, const std::filesystem::path& folder, const Needs& needs) override;
  void stop(const std::string& id, Stop how, int grace_seconds) override;
  void abandon() override { local_->abandon(); }  // workers find the board of the other service
  std::string where(const std::string& id) const override { return having(id).where(id); }
  Standing standing_of(const std::string& id) const override { return having(id).standing_of(id); }
  std::vector<DeviceFacts> devices() const override { return local_->devices(); }
  double look_every(const std::string& id) const override { return having(id).look_every(id); }
  void expect(const std::map<Needs, int64_t>& waiting) override;
  std::vector<std::string> notes() const override;
  void poll() override;

 private:
  Launcher& launcher_for(const Needs& needs) const { return needs.executor.empty() ? *local_ : workers(); }
  Launcher& having(const std::string& id) const { return *owners_.at(id); }
  Launcher& workers() const;
  void listen_to(Launcher& launcher) const;

  std::unique_ptr<Launcher> local_;
  std::function<std::unique_ptr<Launcher>()> make_workers_;
  mutable std::unique_ptr<Launcher> workers_;
  mutable std::map<std::string, Launcher*> owners_;  // of attempts, by run
};

}  // namespace tearless::harness
