#include "harness/schedule/foreground.h"

#include <fmt/format.h>
#include <sched.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <utility>

#include "harness/schedule/local_launcher.h"
#include "harness/schedule/screen.h"
#include "harness/store/sweep_directory.h"

namespace tearless::harness {
namespace {

namespace asio = boost::asio;
constexpr auto kTick = std::chrono::milliseconds(1000);
constexpr double kPlainSummaryEvery = 60;  // seconds, if the output is not a terminal

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The cores that this process may use. Under taskset or a container's CPU set, fewer than the machine has.
int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

Slots slots_of(const Foreground& foreground, const Probe& probe) {
  std::vector<std::string> devices;
  for (const ProgramDevice& device : probe.devices) {
    if (device.kind == "cuda") devices.push_back(device.uuid);
  }
  return Slots(usable_cores(), foreground.jobs, devices, foreground.runs_per_gpu);
}

std::string sentence_of(const SchedulerEvent& event) {
  std::string sentence =
      event.id.empty() ? event.what : fmt::format("{}  {}  {}", event.id.substr(0, 8), event.label, event.what);
  if (!event.text.empty()) sentence += ": " + event.text;
  return sentence;
}

// True under nohup: the sweep is then to go on when the terminal closes.
bool ignores_hangup() {
  struct sigaction inherited {};
  return ::sigaction(SIGHUP, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
}

class Loop {
 public:
  Loop(const Foreground& foreground, Store& store, const Probe& probe)
      : foreground_(foreground),
        screen_(stdout),
        signals_(io_, SIGINT, SIGTERM),
        timer_(io_),
        launcher_(io_, std::filesystem::read_symlink("/proc/self/exe"), foreground.program, probe,
                  foreground.grace_seconds),
        scheduler_(store, foreground.workspace, launcher_, slots_of(foreground, probe), foreground.options,
                   steady_seconds, [this](const SchedulerEvent& event) { on_event(event); }) {}

  Ending run(std::vector<Job> jobs) {
    total_ = jobs.size();
    started_ = last_summary_ = steady_seconds();
    if (!ignores_hangup()) signals_.add(SIGHUP);
    await_signal();
    scheduler_.begin(std::move(jobs));
    tick();
    while (!scheduler_.finished() && interrupts_ < 2) io_.run_one();
    screen_.clear();
    return {.interrupted = interrupts_ > 0, .paused = scheduler_.paused()};
  }

 private:
  void tick() {
    scheduler_.tick();
    screen_.draw(scheduler_.progress(), summary());
    if (!screen_.is_live() && steady_seconds() - last_summary_ > kPlainSummaryEvery) {
      screen_.print(summary());
      last_summary_ = steady_seconds();
    }
    timer_.expires_after(kTick);
    timer_.async_wait([this](boost::system::error_code error) {
      if (!error) tick();
    });
  }

  void await_signal() {
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (error) return;
      if (++interrupts_ == 1) {
        scheduler_.stop();  // before printing: after SIGHUP the terminal is gone
        screen_.print(
            fmt::format("Stopping {} at their next checkpoint, within {} s (Ctrl-C again: exit, and let them finish)",
                        scheduler_.progress().size(), foreground_.grace_seconds));
      }
      await_signal();
    });
  }

  void on_event(const SchedulerEvent& event) {
    log_event(foreground_.workspace, foreground_.sweep, event.what, {{"run", event.id}, {"text", event.text}});
    screen_.print(sentence_of(event));
  }

  std::string summary() const {
    const size_t running = scheduler_.progress().size();
    return fmt::format("{}/{} ended, {} running, {} waiting · {} so far, about {} to go", scheduler_.finished_jobs(),
                       total_, running, scheduler_.waiting(), duration_text(steady_seconds() - started_),
                       duration_text(scheduler_.seconds_left()));
  }

  const Foreground& foreground_;
  Screen screen_;
  asio::io_context io_;
  asio::signal_set signals_;
  asio::steady_timer timer_;
  LocalLauncher launcher_;
  Scheduler scheduler_;
  size_t total_ = 0;
  double started_ = 0, last_summary_ = 0;
  int interrupts_ = 0;
};

}  // namespace

Ending run_in_foreground(const Foreground& foreground, Store& store, std::vector<Job> jobs) {
  return Loop(foreground, store, foreground.program.probe()).run(std::move(jobs));
}

}  // namespace tearless::harness
