#include "base/process_name.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <fstream>

namespace tearless {
namespace {

struct ProcessStat {
  char state = 0;
  int64_t start_ticks = 0;
};

std::optional<ProcessStat> stat_of(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // proc(5): "pid (command) state …". The command may contain spaces and brackets, so fields count from its last ')'.
  const size_t command_end = line.rfind(')');
  if (command_end == std::string::npos || command_end + 2 >= line.size()) return std::nullopt;
  ProcessStat stat{.state = line[command_end + 2]};
  constexpr int kStartTicks = 22;  // number of the field "starttime", from 1
  size_t position = command_end;
  for (int field = 2; field < kStartTicks && position != std::string::npos; ++field) {
    position = line.find(' ', position + 1);
  }
  if (position == std::string::npos) return std::nullopt;
  std::from_chars(line.data() + position + 1, line.data() + line.size(), stat.start_ticks);
  return stat;
}

}  // namespace

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::optional<int64_t> process_start_ticks(int64_t pid) {
  const std::optional<ProcessStat> stat = stat_of(pid);
  if (!stat) return std::nullopt;
  return stat->start_ticks;
}

ProcessName ProcessName::own() {
  return {
      .pid = ::getpid(), .start_ticks = process_start_ticks(::getpid()).value_or(0), .boot_id = tearless::boot_id()};
}

bool ProcessName::is_alive() const {
  if (boot_id != tearless::boot_id()) return false;
  const std::optional<ProcessStat> stat = stat_of(pid);
  return stat && stat->start_ticks == start_ticks && stat->state != 'Z' && stat->state != 'X';
}

bool ProcessName::is_stopped() const {
  const std::optional<ProcessStat> stat = stat_of(pid);
  return stat && stat->start_ticks == start_ticks && stat->state == 'T' && is_alive();
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace tearless
