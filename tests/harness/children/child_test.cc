// What a child is given, and a conversation with one.
#include "harness/children/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "base/sys.h"
#include "tests/support/error_of.h"
#include "tests/support/faults.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::child_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

int wait_for(pid_t pid) {
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

class ChildTest : public testing::Test {
 protected:
  // The standard output of a child with these arguments.
  std::string output_of(ChildRequest request) const {
    const int out = ::open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    request.standard_output = out;
    EXPECT_EQ(wait_for(spawn(request)), 0);
    ::close(out);
    return test::read_text(folder_ / "out");
  }
  std::string said_by(const std::string& script) const { return output_of({.arguments = {"/bin/bash", "-c", script}}); }

  test::TempFolder folder_;
};

// Shells take the last of two variables with one name, most other programs the first.
TEST_F(ChildTest, AVariableThatIsReplacedIsInTheEnvironmentOnce) {
  ::setenv("TEARLESS_CHILD_TEST", "of the parent", /*overwrite=*/1);
  const std::string environment = output_of(
      {.arguments = {"/usr/bin/env"}, .environment = {{"TEARLESS_CHILD_TEST", "of the child"}, {"ADDED", ""}}});
  ::unsetenv("TEARLESS_CHILD_TEST");
  EXPECT_THAT(environment, HasSubstr("TEARLESS_CHILD_TEST=of the child\n"));
  EXPECT_THAT(environment, HasSubstr("ADDED=\n"));
  EXPECT_THAT(environment, HasSubstr("PATH="));
  EXPECT_THAT(environment, Not(HasSubstr("of the parent")));
}

TEST_F(ChildTest, AVariableWithoutAValueIsLeftOut) {
  ::setenv("TEARLESS_CHILD_TEST", "of the parent", /*overwrite=*/1);
  const std::string environment =
      output_of({.arguments = {"/usr/bin/env"},
                 .environment = {{"TEARLESS_CHILD_TEST", std::nullopt}, {"TEARLESS_NEVER_SET", std::nullopt}}});
  ::unsetenv("TEARLESS_CHILD_TEST");
  EXPECT_THAT(environment, Not(HasSubstr("TEARLESS_CHILD_TEST")));
  EXPECT_THAT(environment, HasSubstr("PATH="));
}

TEST_F(ChildTest, ArgumentsArriveAsTheyAre) {
  EXPECT_EQ(output_of({.arguments = {"/usr/bin/printf", "[%s]", "", "a b", "\"q\"", "\\", "é\n"}}),
            "[][a b][\"q\"][\\][é\n]");
}

TEST_F(ChildTest, StandardInputAndErrorAreThoseOfTheRequest) {
  test::write_text(folder_ / "in", "of the file\n");
  const int in = ::open((folder_ / "in").c_str(), O_RDONLY | O_CLOEXEC);
  const int errors = ::open((folder_ / "errors").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(
      output_of(
          {.arguments = {"/bin/sh", "-c", "cat; echo wrong >&2"}, .standard_input = in, .standard_error = errors}),
      "of the file\n");
  ::close(in);
  ::close(errors);
  EXPECT_EQ(test::read_text(folder_ / "errors"), "wrong\n");
}

TEST_F(ChildTest, HandlesSignalsByDefaultAndBlocksThoseOfTheRequest) {
  const auto mask = [&](const std::string& line, std::vector<int> blocked) {
    const std::string text =
        output_of({.arguments = {"/bin/grep", line, "/proc/self/status"}, .blocked_signals = std::move(blocked)});
    return std::stoull(text.substr(line.size() + 1), nullptr, 16);
  };
  sigset_t usr1, before;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
  const auto ignored = ::signal(SIGPIPE, SIG_IGN);
  const auto blocked_by_default = mask("SigBlk:", {}), blocked_on_request = mask("SigBlk:", {SIGTERM, SIGHUP});
  const auto ignored_by_child = mask("SigIgn:", {});
  sigset_t own;
  ::pthread_sigmask(SIG_SETMASK, &before, &own);
  ::signal(SIGPIPE, ignored);
  EXPECT_EQ(blocked_by_default, 0u);
  EXPECT_EQ(blocked_on_request, 1u << (SIGTERM - 1) | 1u << (SIGHUP - 1));
  // No program can set 32 and 33, which the C library keeps; some container runtimes start programs that ignore them.
  EXPECT_EQ(ignored_by_child & 0x7fffffff, 0u);
  EXPECT_TRUE(::sigismember(&own, SIGUSR1)) << "the parent's mask is as before";
  EXPECT_FALSE(::sigismember(&own, SIGTERM));
}

TEST_F(ChildTest, LeadsASessionOfItsOwnOnRequest) {
  const std::string session = "read -r -a words < /proc/self/stat; [ ${words[5]} = $$ ] && echo own || echo ours";
  EXPECT_EQ(output_of({.arguments = {"/bin/bash", "-c", session}, .own_session = true}), "own\n");
  EXPECT_EQ(said_by(session), "ours\n");
}

TEST_F(ChildTest, HasNoOtherDescriptorsOnRequest) {
  const int kept = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  ASSERT_GT(kept, STDERR_FILENO);
  const std::string look = "[ -e /proc/self/fd/" + std::to_string(kept) + " ] && echo open || echo closed";
  EXPECT_EQ(output_of({.arguments = {"/bin/bash", "-c", look}, .closes_others = true}), "closed\n");
  EXPECT_EQ(said_by(look), "open\n");
  ::close(kept);
}

TEST_F(ChildTest, ThatCannotBeStartedIsAnErrorAndLeavesNothingBehind) {
  EXPECT_EQ(test::error_of([] { spawn({.arguments = {"/nowhere/program"}}); }),
            "cannot start /nowhere/program: No such file or directory");
  EXPECT_EQ(test::error_of([] { spawn({.arguments = {"/etc/passwd"}}); }),
            "cannot start /etc/passwd: Permission denied");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST_F(ChildTest, IsAPointOfTheFaultLayerAtWhichItMayFail) {
  test::Faults faults(folder_.path());
  faults.plan().kinds = fault::kFork;
  faults.plan().roles = fault::kEverybody;
  faults.plan().action = fault::kFail;
  faults.plan().error = EAGAIN;
  faults.plan().first = faults.plan().last = 1;
  EXPECT_EXIT(
      {
        faults.begin_here();
        const std::string first = test::error_of([] { spawn({.arguments = {"/bin/true"}}); });
        ::_exit(first == "cannot start /bin/true: Resource temporarily unavailable" &&
                        wait_for(spawn({.arguments = {"/bin/true"}})) == 0
                    ? 0
                    : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(faults.hits(), 1);
}

TEST_F(ChildTest, ThatHasNotReadTheFaultPlanDiesWithEverybody) {
  test::Faults faults(folder_.path());
  faults.kill_at(2, fault::kEverybody);
  EXPECT_EXIT(
      {
        faults.begin_here();
        spawn({.arguments = {"/bin/sleep", "600"}});
        sys::mkdir((folder_ / "inner").c_str());
        ::_exit(2);
      },
      testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(faults.plan().processes, 2);
  EXPECT_TRUE(test::eventually([&] { return faults.alive().empty(); }));
}

// --- conversations ---------------------------------------------------------------------------------------------------

// What `script` answers to these lines.
std::vector<std::string> answers_of(const std::string& script, std::vector<std::string> lines, int* status = nullptr) {
  std::vector<std::string> answers;
  size_t sent = 0;
  const int ended = converse(
      {"/bin/bash", "-c", script}, [&] { return sent < lines.size() ? std::optional(lines[sent++]) : std::nullopt; },
      [&](std::string_view line) { answers.emplace_back(line); });
  if (status) *status = ended;
  return answers;
}

TEST(Conversation, SendsLinesAndReceivesLinesTheLastOneWithoutItsEndToo) {
  EXPECT_EQ(answers_of("cat; printf end", {"a", "", "b"}), (std::vector<std::string>{"a", "", "b", "end"}));
  EXPECT_EQ(answers_of("cat", {}), std::vector<std::string>());
  EXPECT_EQ(answers_of(":", {"a"}), std::vector<std::string>());
}

TEST(Conversation, MoreThanPipesHoldDoesNotBlockWhoeverReadsFirst) {
  const std::vector<std::string> lines(3000, std::string(1000, 'x'));
  EXPECT_EQ(answers_of("cat", lines), lines);
  EXPECT_EQ(answers_of("all=$(cat); echo \"$all\"", lines), lines) << "it answers when all is asked";
  EXPECT_EQ(answers_of("yes | head -n 100000; cat > /dev/null", lines).size(), 100'000u) << "it answers unasked";
}

TEST(Conversation, ItsResultIsHowTheProgramEnded) {
  int status = -1;
  answers_of("exit 7", std::vector<std::string>(100'000, "a line that nobody reads"), &status);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7) << "and no SIGPIPE";
  answers_of("exec 0<&- 1>&-; sleep 0.1; kill -9 $$", {"a"}, &status);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(Conversation, EndsTheProgramIfAnAnswerIsRefused) {
  const test::TempFolder folder;
  const std::string pid_file = (folder / "pid").string();
  EXPECT_THROW(
      converse(
          {"/bin/bash", "-c", "echo $$ > " + pid_file + "; echo no; exec sleep 1000"},
          [] { return std::optional<std::string>(); }, [](std::string_view) { throw std::runtime_error("refused"); }),
      std::runtime_error);
  const std::string pid = test::read_text(pid_file);
  EXPECT_FALSE(fs::exists("/proc/" + pid.substr(0, pid.find('\n'))));
}

}  // namespace
}  // namespace tearless::harness::child_test
