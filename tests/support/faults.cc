#include "tests/support/faults.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>

#include "base/process_name.h"
#include "tests/support/paths.h"

namespace tearless::test {
namespace fs = std::filesystem;
using fault::FaultPlan;

Faults::Faults(const fs::path& folder) : file_(folder / "faults") {
  const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(FaultPlan)) != 0) throw std::runtime_error("cannot make a plan of faults");
  void* mapped = ::mmap(nullptr, sizeof(FaultPlan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map a plan of faults");
  plan_ = new (mapped) FaultPlan{};
  plan_->kinds = fault::kEveryKind & ~static_cast<uint32_t>(fault::kPhase);
  plan_->roles = fault::kEverybody;
}

Faults::~Faults() { ::munmap(plan_, sizeof(FaultPlan)); }

void Faults::begin_here() const {
  ::setenv(fault::kPlanVariable, file_.c_str(), 1);
  fault::begin(fault::kHarness);
}

std::map<std::string, std::string> Faults::environment() const { return {{fault::kPlanVariable, file_.string()}}; }

void Faults::kill_at(int64_t number, uint32_t victims) {
  plan_->first = plan_->last = number;
  plan_->victims = victims;
  plan_->action = fault::kDie;
}

void Faults::fail(uint32_t kinds, int error, int64_t first, int64_t last) {
  plan_->kinds = kinds;
  plan_->error = error;
  plan_->first = first;
  plan_->last = last;
  plan_->action = fault::kFail;
}

void Faults::signal_at(const std::string& phase, int signal, bool asked) {
  std::copy(phase.begin(), phase.end(), plan_->phase);
  plan_->kinds = fault::kPhase;
  plan_->roles = fault::kProgram;
  plan_->error = signal;
  plan_->first = plan_->last = 1;
  plan_->action = asked ? fault::kAsk : fault::kSignal;
}

void Faults::keep_shadow(const fs::path& folder) {
  fs::create_directories(folder);
  const std::string name = folder.string();
  if (name.size() >= sizeof plan_->shadow) throw std::runtime_error("the shadow's name is too long");
  std::copy(name.begin(), name.end(), plan_->shadow);
}

std::vector<std::string> Faults::alive() const {
  std::vector<std::string> processes;
  for (int i = 0; i < std::min(plan_->processes.load(), FaultPlan::kMaxProcesses); ++i) {
    const FaultPlan::Process& entry = plan_->process[i];
    if (!ProcessName{entry.pid, entry.start_ticks, boot_id()}.is_alive()) continue;
    std::ifstream file(fmt::format("/proc/{}/cmdline", entry.pid.load()));
    if (!file) continue;  // it has ended since
    std::string command(std::istreambuf_iterator<char>(file), {});
    std::replace(command.begin(), command.end(), '\0', ' ');
    processes.push_back(fmt::format("{} {}", entry.pid.load(), command));
  }
  return processes;
}

void Faults::kill_all() const {
  for (int i = 0; i < std::min(plan_->processes.load(), FaultPlan::kMaxProcesses); ++i) {
    const FaultPlan::Process& entry = plan_->process[i];
    if (ProcessName{entry.pid, entry.start_ticks, boot_id()}.is_alive()) ::kill(entry.pid, SIGKILL);
  }
}

fs::path after_power_cut(const fs::path& folder, const std::function<void(const fs::path& root)>& scene) {
  const fs::path root = folder / "root", shadow = folder / "shadow", left = folder / "left";
  fs::create_directories(root);
  Faults faults(folder);
  faults.keep_shadow(shadow);
  EXPECT_EXIT(
      {
        faults.begin_here();
        scene(root);
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "");
  fault::power_cut(shadow, root, left);
  return left;
}

int64_t at_each_power_cut(const DonePart& part, const std::function<void(const fs::path& left, int64_t point)>& check) {
  int64_t before = 0, points = 0;
  for (int64_t point = 0; point <= points; ++point) {  // the first round counts them
    const TempFolder folder;
    const fs::path root = folder / "root", shadow = folder / "shadow", left = folder / "left";
    fs::create_directories(root);
    Faults faults(folder.path());
    faults.keep_shadow(shadow);
    if (point > 0) faults.kill_at(before + point, fault::kCallingProcess);
    const pid_t child = ::fork();
    if (child == 0) {
      faults.begin_here();
      part.before(root);
      for (const auto& entry : fs::recursive_directory_iterator(root)) {
        if (!entry.is_symlink()) fault::synced(entry.path());
      }
      fault::synced(root);
      std::ofstream(folder / "before") << faults.points();
      part.act(root);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    if (point == 0) {
      std::ifstream(folder / "before") >> before;
      points = faults.points() - before;
    }
    fault::power_cut(shadow, root, left);
    struct stat info {};
    if (::stat((root / part.last).c_str(), &info) == 0 && !fs::exists(left / part.last)) {
      const fs::path bytes = shadow / ("bytes-" + std::to_string(info.st_ino));
      if (fs::exists((left / part.last).parent_path()) && fs::exists(bytes)) fs::copy_file(bytes, left / part.last);
    }
    check(left, point);
  }
  return points;
}

}  // namespace tearless::test
