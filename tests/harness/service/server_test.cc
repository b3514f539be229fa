// The socket with clients that behave badly: nobody waits for them, and nothing is lost.
#include "harness/service/server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.h"
#include "harness/service/client.h"
#include "harness/service/socket_path.h"
#include "harness/store/writer.h"
#include "tests/support/connection.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::server_test {
namespace {

using test::error_of;
using testing::HasSubstr;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

class ServerTest : public testing::Test {
 public:
  ~ServerTest() override { stop(); }

 protected:
  ServerTest() : workspace_(folder_.path()), path_(socket_path(workspace_)) {
    serve({.clients = 8, .patience = milliseconds(200)});
  }

  void serve(Server::Limits limits) {
    listen(limits);
    start();
  }
  void listen(Server::Limits limits) {
    stop();
    server_ = std::make_unique<Server>(
        io_, path_,
        [this](const Request& request) {
          ++answered_;
          return nlohmann::json{{"request", request.name}, {"large", std::string(large_, 'x')}};
        },
        limits);
    note_socket(workspace_, path_);
  }
  void start() {
    io_.restart();
    work_.emplace(io_.get_executor());
    thread_ = std::thread([this] { io_.run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    work_.reset();
    io_.stop();
    thread_.join();
    server_.reset();
  }
  nlohmann::json status() { return ask_service(workspace_, {.name = "status"}).value(); }

  test::TempFolder folder_;
  Workspace workspace_;
  fs::path path_;
  boost::asio::io_context io_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::atomic<int> answered_ = 0;
  std::atomic<size_t> large_ = 0;
};

TEST_F(ServerTest, AClientGetsItsAnswer) { EXPECT_EQ(status().at("request"), "status"); }

TEST_F(ServerTest, WithoutAServiceThereIsNoAnswer) {
  stop();
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_EQ(ask_service(workspace_, {.name = "status"}), std::nullopt);
}

TEST_F(ServerTest, ASocketThatAKilledServiceLeftIsNoServiceAndIsReplaced) {
  stop();
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  ASSERT_TRUE(fs::exists(path_));
  EXPECT_EQ(ask_service(workspace_, {.name = "status"}), std::nullopt);
  serve({});
  EXPECT_EQ(status().at("request"), "status");
}

TEST_F(ServerTest,
       LeavesTheSocketOfAnotherServiceThatTookItsPlace) {  // its folder was deleted and made again
  boost::asio::io_context io;
  const Server second(io, path_, [](const Request&) { return nlohmann::json(); }, {});
  stop();
  EXPECT_TRUE(fs::exists(path_));
}

TEST_F(ServerTest, OnlyTheUserMayConnect) {
  struct stat info {};
  ASSERT_EQ(::lstat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::lstat(path_.parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(ServerTest, GarbageGetsASentenceAndTheNextClientIsServed) {
  test::Connection raw(path_);
  raw.send("GET / HTTP/1.1\r\n");
  EXPECT_THAT(raw.hear(), HasSubstr("a request is one line with a JSON object"));
  EXPECT_EQ(answered_, 0);
  EXPECT_EQ(status().at("request"), "status");
}

TEST_F(ServerTest, ARequestWithoutAnEndIsDropped) {
  test::Connection slow(path_);
  slow.send("{\"request\": ");
  EXPECT_EQ(status().at("request"), "status") << "nobody waits for the slow one";
  EXPECT_EQ(slow.hear(), "");  // returns when the server has lost patience
}

TEST_F(ServerTest, ARequestThatIsTooLongIsRefused) {
  test::Connection raw(path_);
  std::thread writer([&] { raw.send(std::string(kMaxLineLength + 4096, 'x')); });
  EXPECT_THAT(raw.hear(), testing::AnyOf(HasSubstr("too long"), testing::IsEmpty()));
  writer.join();
  EXPECT_EQ(status().at("request"), "status");
}

TEST_F(ServerTest, AClientThatVanishesDisturbsNobody) {
  for (int i = 0; i < 50; ++i) {
    test::Connection raw(path_);
    if (i % 2 == 0) raw.send("{\"request\": \"status\"}\n");
  }
  EXPECT_EQ(status().at("request"), "status");
}

TEST_F(ServerTest, AClientThatDoesNotTakeItsAnswerIsDropped) {
  large_ = 4 << 20;  // more than the kernel buffers
  test::Connection raw(path_);
  raw.send("{\"request\": \"status\"}\n");
  EXPECT_TRUE(test::eventually([&] { return raw.is_hung_up(); }));
  EXPECT_EQ(answered_, 1);
  EXPECT_LT(raw.hear().size(), large_.load());
}

TEST_F(ServerTest, TooManyClientsAreRefusedAndLaterOnesServed) {
  serve({.clients = 2, .patience = milliseconds(500)});
  {
    test::Connection first(path_), second(path_);
    first.send("{");
    second.send("{");
    test::Connection third(path_);
    EXPECT_THAT(third.hear(), HasSubstr("too many"));
    EXPECT_TRUE(third.send("{\"request\": \"status\"}\n")) << "the connection is not reset";
    EXPECT_THAT(error_of([&] { status(); }), HasSubstr("too many"));
  }
  EXPECT_TRUE(test::eventually([&] { return error_of([&] { status(); }).empty(); }));
}

TEST_F(ServerTest, AClientThatLeavesInTheMiddleOfItsAnswerDisturbsNobody) {
  large_ = 4 << 20;  // more than the kernel buffers
  {
    test::Connection raw(path_);
    raw.send("{\"request\": \"status\"}\n");
    EXPECT_TRUE(test::eventually([&] { return answered_ == 1; }));
  }
  large_ = 0;
  EXPECT_EQ(status().at("request"), "status");
}

TEST_F(ServerTest, WithoutDescriptorsTheServerRestsAndClientsWait) {
  listen({});
  test::Connection client(path_);
  client.send("{\"request\": \"status\"}\n");
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int next = ::dup(STDOUT_FILENO);
  ::close(next);
  const rlimit none = {.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  io_.restart();
  EXPECT_LE(io_.run_for(milliseconds(500)), 10u) << "it does not try again at once";
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(answered_, 0);
  start();
  EXPECT_THAT(client.hear(), HasSubstr("status"));
}

TEST_F(ServerTest, AFolderThatOthersMayWriteToIsRefused) {
  const fs::path shared = folder_.path() / "shared";
  fs::create_directories(shared);
  fs::permissions(shared, fs::perms::all);
  const char* before = std::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before ? before : "";
  ::setenv("XDG_RUNTIME_DIR", shared.c_str(), 1);
  EXPECT_NE(socket_path(workspace_).parent_path(), shared);
  fs::permissions(shared, fs::perms::owner_all);
  EXPECT_EQ(socket_path(workspace_).parent_path(), shared);
  before ? ::setenv("XDG_RUNTIME_DIR", kept.c_str(), 1) : ::unsetenv("XDG_RUNTIME_DIR");
}

}  // namespace
}  // namespace tearless::harness::server_test
