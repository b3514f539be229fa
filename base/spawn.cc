#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "base/sys.h"

namespace tearless {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  std::set<std::string> replaced;
  for (const auto& [name, value] : added) {
    replaced.insert(name);
    all.push_back(name + "=" + value);
  }
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!replaced.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  return all;
}

}  // namespace

pid_t spawn(const SpawnRequest& request) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t all, blocked;
  ::sigfillset(&all);
  ::sigemptyset(&blocked);
  for (const int signal : request.blocked_signals) ::sigaddset(&blocked, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &blocked);
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                             (request.own_session ? POSIX_SPAWN_SETSID : 0)));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (request.standard_input >= 0) ::posix_spawn_file_actions_adddup2(&actions, request.standard_input, STDIN_FILENO);
  if (request.standard_output >= 0)
    ::posix_spawn_file_actions_adddup2(&actions, request.standard_output, STDOUT_FILENO);

  if (request.standard_error >= 0) ::posix_spawn_file_actions_adddup2(&actions, request.standard_error, STDERR_FILENO);

  if (request.closes_others) ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);

  std::vector<std::string> arguments = request.arguments;
  std::vector<std::string> environment = environment_with(request.environment);
  pid_t pid = -1;
  const int error = sys::posix_spawn(&pid, arguments[0].c_str(), &actions, &attributes, pointers_to(arguments).data(),
                                     pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) throw MachineError(fmt::format("cannot start {}: {}", arguments[0], std::strerror(error)));
  return pid;
}

}  // namespace tearless
