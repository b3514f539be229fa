#include "harness/service/start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/files.h"
#include "base/output.h"
#include "base/print.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "harness/children/child.h"
#include "harness/service/client.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

constexpr int kBetweenWaits = 50;    // milliseconds
constexpr int kMaxWaits = 40;        // tries until a service that is starting or ending answers or is gone
constexpr int kLooksInSilence = 20;  // at a service that ends, before a sentence says so
constexpr int kMaxStarts = 10;       // of services that were killed before they answered

std::string everything_from(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::read(fd, buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

// Its output comes through a pipe until it answers, and goes to its log from then on: the pipe then ends with
// kServiceReady. Without that it was killed, or another service was quicker, and the caller looks again; or it says why
// it cannot start.
void start(const Workspace& workspace, const ServiceStart& how) {
  ChildRequest request{.arguments = {fs::read_symlink("/proc/self/exe").string(), "daemon", "--workspace",
                                     workspace.root().string(), "--detached"},
                       .closes_others = true,
                       .own_session = true};
  if (!how.stays) request.arguments.emplace_back("--until-idle");
  for (const std::string& argument : how.arguments.value_or(std::vector<std::string>{})) {
    request.arguments.push_back(argument);
  }
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) fail("cannot start a service: {}", std::strerror(errno));
  request.standard_input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  request.standard_output = request.standard_error = pipe[1];
  const pid_t pid = spawn(request);
  ::close(request.standard_input);
  ::close(pipe[1]);
  std::string said = everything_from(pipe[0]);
  ::close(pipe[0]);
  if (said.ends_with(kServiceReady)) {
    said.resize(said.size() - kServiceReady.size());
    if (!said.empty()) print_error(printable_lines(said.substr(0, said.size() - 1)));
    return;
  }
  int status = 0;
  while (sys::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 0) return;
  constexpr std::string_view kPrefix = "tearless: ";
  if (said.starts_with(kPrefix)) said.erase(0, kPrefix.size());
  while (said.ends_with('\n')) said.pop_back();
  fail("{}", said);
}

bool must_give_way(const ServiceFacts& facts, const ServiceStart& how) {
  if (facts.stays) return false;
  if (how.stays) return true;
  return !facts.busy && (facts.build != build_stamp() || (how.arguments && *how.arguments != facts.arguments));
}

}  // namespace

fs::path service_log(const Workspace& workspace) { return workspace.root() / "service.log"; }

std::optional<ServiceFacts> facts_of_service(const Workspace& workspace) {
  const std::optional<json> answer = ask_service(workspace, {.name = "status"});
  if (!answer) return std::nullopt;
  try {
    return answer->get<ServiceFacts>();
  } catch (const json::exception&) {
    fail("a service of another build works in {}; to change to this one: tearless stop{}, then the command again",
         workspace.root().string(), workspace_option(workspace.root()));
  }
}

std::optional<ServiceFacts> facts_of_own_service(const Workspace& workspace) {
  require_own(workspace);
  for (int waits = 0; waits < kMaxWaits; ++waits) {
    if (auto facts = facts_of_service(workspace)) return facts;
    if (!has_writer(workspace)) return std::nullopt;
    ::poll(nullptr, 0, kBetweenWaits);
  }
  const std::optional<Writer> writer = last_writer(workspace);
  if (!writer || !writer->is_service)
    fail("a rebuild or repair of {} is under way; try again", workspace.root().string());
  fail("the service of {} (process {}) takes no requests; {} may say why", workspace.root().string(),
       writer->process.pid, service_log(workspace).string());
}

ServiceFacts require_service(const Workspace& workspace, const ServiceStart& how) {
  require_own(workspace);
  for (int starts = 0, waits = 0, looks = 0; starts < kMaxStarts;) {
    if (const auto facts = facts_of_service(workspace)) {
      if (!facts->ends && !must_give_way(*facts, how)) return *facts;
      if (++looks == kLooksInSilence) {
        notice(fmt::format("waits for the service (process {}) to end: it was asked to, and its runs stop first",
                           facts->pid));
      }
      if (!facts->ends) ask_service(workspace, {.name = "stop", .flags = {how.stays ? "hand_over" : "if_idle"}});
      waits = 0;
    } else if (!has_writer(workspace) || ++waits > kMaxWaits) {
      ++starts;
      start(workspace, how);
      continue;
    }
    ::poll(nullptr, 0, kBetweenWaits);
  }
  fail("no service of {} stays alive; {} may say why", workspace.root().string(), service_log(workspace).string());
}

json request(const Workspace& workspace, const Request& asked, const ServiceStart& how) {
  for (int tries = 0; tries < kMaxStarts; ++tries) {
    require_service(workspace, how);
    if (std::optional<json> answer = ask_service(workspace, asked)) return std::move(*answer);
  }
  fail("the services of {} end before they answer; {} may say why", workspace.root().string(),
       service_log(workspace).string());
}

void end_idle_service(const Workspace& workspace) {
  const std::optional<json> answer = ask_service(workspace, {.name = "stop", .flags = {"if_idle"}});
  if (!answer || !answer->value("done", false)) return;
  for (int tries = 0; tries < kMaxWaits && has_writer(workspace); ++tries) {
    ::poll(nullptr, 0, kBetweenWaits);
  }
}

}  // namespace tearless::harness
