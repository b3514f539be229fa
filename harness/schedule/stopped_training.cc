#include "harness/schedule/stopped_training.h"

#include <signal.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/time.h"
#include "harness/devices/machine.h"
#include "harness/runs/progress.h"
#include "harness/runs/verdict.h"
#include "harness/schedule/local_launcher.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

constexpr auto kLookAtMetrics = std::chrono::milliseconds(5);

class TrainingWithStops {
 public:
  explicit TrainingWithStops(StoppedTraining training)
      : training_(std::move(training)),
        run_(training_.launch.folder),
        launcher_(io_, {.tearless = fs::read_symlink("/proc/self/exe"),
                        .capacity = {.cores = cores_of_process(), .devices = training_.devices},
                        .ends_with_launcher = true}),
        signals_(io_, SIGINT, SIGTERM),
        timer_(io_) {
    launcher_.on_end = [this](const std::string&, const std::string& fault) { attempt_ended(fault); };
  }

  TrainingEnd run() {
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (error) return;
      end_.interrupted = true;
      launcher_.stop(training_.launch.id, Stop::kAtOnce, 0);
    });
    try {
      start();
      await_metrics();
      while (!ended_) io_.run_one();
    } catch (const UserError&) {
      launcher_.stop(training_.launch.id, Stop::kAtOnce, 0);
      throw;
    }
    return std::move(end_);
  }

 private:
  void start() {
    reached_before_ = reached_;
    requested_ = false;
    last_sign_ = steady_seconds();
    launcher_.start(training_.launch);
  }

  void await_metrics() {
    timer_.expires_after(kLookAtMetrics);
    timer_.async_wait([this](boost::system::error_code error) {
      if (error || ended_) return;
      read_new_metrics();
      if (!requested_ && is_stop_due()) request_stop();
      if (!stalled_ && is_stalled()) {
        stalled_ = true;
        launcher_.stop(training_.launch.id, Stop::kAtOnce, 0);
      }
      await_metrics();
    });
  }

  void read_new_metrics() {
    const MetricsRead read = read_metrics(run_, metrics_bytes_);
    for (const MetricLine& line : read.lines) reached_ = std::max(reached_, line.step);
    std::error_code absent;
    const auto log_bytes = fs::file_size(run_.attempt(run_.newest_attempt()) / "log.txt", absent);
    if (read.to != metrics_bytes_ || log_bytes != log_bytes_) last_sign_ = steady_seconds();
    metrics_bytes_ = read.to;
    log_bytes_ = log_bytes;
    training_.on_progress(read.lines, end_.stops.size());
  }

  // A killed attempt leaves metrics behind that the next one makes again: only an update that none has reached yet
  // shows that the next one has got there.
  bool is_stop_due() const {
    const size_t next = end_.stops.size();
    return next < training_.stops.size() && reached_ >= training_.stops[next].update && reached_ > reached_before_;
  }

  void request_stop() {
    requested_ = true;
    if (!training_.stops[end_.stops.size()].kill) {
      return launcher_.stop(training_.launch.id, Stop::kOnRequest, training_.launch.program.grace_seconds);
    }
    const auto supervisor = supervisor_of(run_, run_.newest_attempt());
    if (!supervisor) return;  // it has just ended
    const std::set<int64_t> pids = processes_by_session()[supervisor->pid];
    for (const int64_t pid : pids) {
      if (pid != supervisor->pid) sys::kill(static_cast<pid_t>(pid), SIGKILL);
    }
  }

  bool is_stalled() const {
    return training_.stall_seconds > 0 && steady_seconds() - last_sign_ > training_.stall_seconds;
  }

  void attempt_ended(const std::string& fault) {
    read_new_metrics();
    if (end_.interrupted) return finish();
    if (!fault.empty()) return finish(fault);
    if (const std::optional<Verdict> done = verdict_of_done(run_)) {
      return finish(done->state == RunState::kFailed ? done->reason : "");
    }
    const Verdict verdict = verdict_of_exit(run_, run_.newest_attempt());
    if (stalled_) return finish("no sign of life for " + duration_text(training_.stall_seconds));
    const size_t next = end_.stops.size();
    const FailureClass expected = requested_ && training_.stops[next].kill ? FailureClass::kKilled
                                  : requested_                             ? FailureClass::kStopped
                                                                           : FailureClass::kNone;
    if (verdict.failure != expected) return finish(verdict.reason);
    end_.stops.push_back(training_.stops[next]);
    end_.stops.back().resumed_from = run_.newest_checkpoint();
    start();
  }

  void finish(std::string failure = "") {
    end_.failure = std::move(failure);
    ended_ = true;
    signals_.cancel();
    timer_.cancel();
  }

  StoppedTraining training_;
  RunDirectory run_;
  boost::asio::io_context io_;
  LocalLauncher launcher_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  TrainingEnd end_;
  bool ended_ = false;
  bool requested_ = false;  // this attempt was asked to stop, or killed
  bool stalled_ = false;
  int64_t reached_ = 0;         // the highest update of which a metric was seen
  int64_t reached_before_ = 0;  // likewise, before this attempt
  int64_t metrics_bytes_ = 0;   // read so far
  uintmax_t log_bytes_ = 0;
  double last_sign_ = 0;
};

}  // namespace

// The standard's distributions differ from library to library, so the draw is written out.
std::vector<TrainingStop> draw_stops(const RunDirectory& run, int count, int64_t seed) {
  std::set<int64_t> steps;
  for (const MetricLine& line : read_metrics(run, 0).lines) {
    if (line.step > 0) steps.insert(line.step);
  }
  if (!steps.empty()) steps.erase(std::prev(steps.end()));
  std::vector<int64_t> updates(steps.begin(), steps.end());
  std::mt19937_64 random(static_cast<uint64_t>(seed) ^ fnv1a32(run.id()));
  const size_t drawn = std::min(updates.size(), static_cast<size_t>(count));
  for (size_t i = 0; i < drawn; ++i) std::swap(updates[i], updates[i + random() % (updates.size() - i)]);
  updates.resize(drawn);
  std::sort(updates.begin(), updates.end());
  std::vector<TrainingStop> stops;
  for (const int64_t update : updates) stops.push_back({.update = update, .kill = stops.size() % 2 == 1});
  return stops;
}

TrainingEnd train_with_stops(StoppedTraining training) { return TrainingWithStops(std::move(training)).run(); }

}  // namespace tearless::harness
