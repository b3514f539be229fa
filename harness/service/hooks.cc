#include "harness/service/hooks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "base/sys.h"
#include "harness/children/child.h"

namespace tearless::harness {
namespace {

constexpr size_t kMaxHooks = 4;            // at the same time
constexpr int kPatienceAtTheEnd = 10'000;  // milliseconds
constexpr int kBetweenPolls = 20;          // milliseconds

std::string end_of_hook(int status) {
  return WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                             : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

Hooks::Hooks(std::string command, std::filesystem::path output, Failure failure)
    : command_(std::move(command)), output_(std::move(output)), failure_(std::move(failure)) {}

void Hooks::add(EndEvent event) {
  if (!command_.empty()) waiting_.push_back(std::move(event));
}

void Hooks::tick() {
  notice_ends();
  while (!waiting_.empty() && running_.size() < kMaxHooks) {
    EndEvent next = std::move(waiting_.front());
    waiting_.pop_front();
    start(std::move(next));
  }
}

void Hooks::finish() {
  for (int waited = 0; waited < kPatienceAtTheEnd; waited += kBetweenPolls) {
    tick();
    if (running_.empty()) return;
    ::poll(nullptr, 0, kBetweenPolls);
  }
  for (const EndEvent& event : waiting_) failure_(event, "was not started: earlier ones have not ended");
  waiting_.clear();
}

void Hooks::start(EndEvent event) {
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = sys::open_for_writing(output_.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  try {
    const pid_t pid = spawn({.arguments = {"/bin/sh", "-c", command_},
                             .environment = {{"TEARLESS_EVENT", event.event},
                                             {"TEARLESS_ID", event.id},
                                             {"TEARLESS_SWEEP", event.sweep},
                                             {"TEARLESS_STATE", event.state},
                                             {"TEARLESS_REASON", event.reason}},
                             .standard_input = input,
                             .standard_output = output,
                             .standard_error = output,
                             .own_session = true});
    running_.push_back({pid, std::move(event)});
  } catch (const UserError& error) {
    failure_(event, error.what());
  }
  ::close(input);
  if (output >= 0) ::close(output);
}

void Hooks::notice_ends() {
  std::erase_if(running_, [&](const Started& hook) {
    int status = 0;
    if (sys::waitpid(hook.pid, &status, WNOHANG) == 0) return false;
    if (status != 0) failure_(hook.event, end_of_hook(status));
    return true;
  });
}

}  // namespace tearless::harness
