// `tearless serve` with real processes and a client on plain sockets.
#include <gmock/gmock.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "harness/runs/attempt_files.h"
#include "tests/harness/run_fixture.h"
#include "tests/harness/serve/http_client.h"

namespace tearless::harness {
namespace {

using test::Connection;
using test::HttpAnswer;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kLocal = "Host: localhost\r\n";

class ServeTest : public RunTest {
 public:
  void start(std::vector<std::string> options = {}, const std::string& workspace = "results") {
    std::vector<std::string> words = {"serve", "--port", "0", "--workspace", workspace, "--changes-seconds", "0.02"};
    words.insert(words.end(), options.begin(), options.end());
    server_ = std::make_unique<test::Background>(command(words));
    ASSERT_TRUE(test::eventually([&] { return server_->output().ends_with("\n"); }));
    const std::string address = server_->output();
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(address, parts, std::regex("http://127\\.0\\.0\\.1:(\\d+)/\\?token=([0-9a-f]{32})\n")))
        << address;
    port_ = static_cast<uint16_t>(std::stoi(parts[1]));
    token_ = parts[2];
    const std::string cookie = ask("GET", "/?token=" + token_, kLocal).headers["set-cookie"];
    cookie_ = "Cookie: " + cookie.substr(0, cookie.find(';')) + "\r\n";
  }

  HttpAnswer ask(const std::string& method, const std::string& target, const std::string& headers) const {
    Connection connection(port_);
    connection.send(method + " " + target + " HTTP/1.1\r\n" + headers + "\r\n");
    return connection.answer();
  }
  // As the browser that opened the address.
  HttpAnswer get(const std::string& target, const std::string& more = "") const {
    return ask("GET", target, kLocal + cookie_ + more);
  }

  std::string a_run() const { return runs().front().root().filename(); }
  std::string the_sweep() const {
    std::string sweep;
    for (const auto& folder : fs::directory_iterator(folder_ / "results/sweeps")) sweep = folder.path().filename();
    return sweep;
  }

  std::unique_ptr<test::Background> server_;
  uint16_t port_ = 0;
  std::string token_, cookie_;
};

// One sentence, and nothing of the workspace.
void expect_refused(const HttpAnswer& answer, int status, const std::string& said) {
  EXPECT_EQ(answer.status, status) << answer.bytes;
  EXPECT_THAT(answer.body, AllOf(HasSubstr(said), Not(HasSubstr("grid")), Not(HasSubstr("<"))));
  EXPECT_EQ(std::ranges::count(answer.body, '\n'), 1) << answer.body;
}

// The text of the first <pre>.
std::string preformatted_in(const std::string& page) {
  const size_t begin = page.find("<pre>") + 5;
  std::string text = page.substr(begin, page.find("</pre>") - begin);
  for (const auto& [escape, sign] : {std::pair("&lt;", "<"), {"&amp;", "&"}}) {
    for (size_t at; (at = text.find(escape)) != std::string::npos;) text.replace(at, std::strlen(escape), sign);
  }
  return text;
}

std::vector<std::string> pages_of(const std::string& sweep, const std::string& run) {
  return {"/",
          "/sweep/" + sweep,
          "/run/" + run,
          "/runs?id=" + run,
          "/log?run=" + run,
          "/diff?a=" + run + "&b=" + run,
          "/page.css",
          "/icon.svg",
          "/live.js",
          "/events",
          "/curve?run=" + run + "&metric=train.loss"};
}

// --- who is let in ---------------------------------------------------------------------------------------------------

TEST_F(ServeTest, TheTokenGivesACookieThatNoScriptReadsAndTheCookieGivesThePages) {
  ok({"run", "grid.toml"});
  start();
  HttpAnswer first = ask("GET", "/?token=" + token_, kLocal);
  EXPECT_EQ(first.status, 303);
  EXPECT_EQ(first.headers["location"], "/");
  EXPECT_THAT(first.headers["set-cookie"], AllOf(HasSubstr("; HttpOnly"), HasSubstr("; SameSite=Lax")));
  EXPECT_THAT(first.bytes, Not(HasSubstr(token_)));
  const HttpAnswer page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, AllOf(HasSubstr("A fake grid"), Not(HasSubstr(token_))));
}

TEST_F(ServeTest, EachStartHasAnotherToken) {
  ok({"run", "grid.toml"});
  start();
  const std::string before = token_;
  start();
  EXPECT_NE(token_, before);
}

TEST_F(ServeTest, WithoutTheCookieNoPageIsShown) {
  ok({"run", "grid.toml"});
  start();
  std::string forged = cookie_;
  forged[forged.size() - 3] = forged[forged.size() - 3] == '0' ? '1' : '0';
  for (const std::string& page : pages_of(the_sweep(), a_run())) {
    expect_refused(ask("GET", page, kLocal), 403, "tearless serve");
    expect_refused(ask("GET", page, kLocal + forged), 403, "tearless serve");
    expect_refused(ask("GET", page, kLocal + ("Cookie: " + token_ + "\r\n")), 403, "tearless serve");
  }
  expect_refused(ask("GET", "/?token=" + std::string(32, '0'), kLocal), 403, "tearless serve");
  expect_refused(ask("GET", "/?token=", kLocal), 403, "tearless serve");
  expect_refused(ask("GET", "/sweep/" + the_sweep() + "?token=" + token_, kLocal), 403, "tearless serve");
}

TEST_F(ServeTest, TheCookieIsFoundAmongOthers) {
  ok({"run", "grid.toml"});
  start();
  const std::string own = cookie_.substr(8, cookie_.size() - 10);
  EXPECT_EQ(ask("GET", "/", kLocal + ("Cookie: a=b; " + own + ";c=d\r\n")).status, 200);
  EXPECT_EQ(ask("GET", "/", kLocal + ("Cookie: a=" + own + "\r\n")).status, 403);
}

TEST_F(ServeTest, AHostThatIsNotThisMachineIsRefusedEvenWithTheCookie) {
  ok({"run", "grid.toml"});
  start();
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "localhost:", "",
                           "localhost:80evil", "[::1]evil", "127.0.0.2", "0.0.0.0"}) {
    expect_refused(ask("GET", "/", std::string("Host: ") + host + "\r\n" + cookie_), 421, "ssh -L");
    expect_refused(ask("GET", "/?token=" + token_, std::string("Host: ") + host + "\r\n"), 421, "ssh -L");
  }
  expect_refused(ask("GET", "/", cookie_), 421, "ssh -L");
  expect_refused(ask("GET", "/", std::string(kLocal) + "Host: evil.example\r\n" + cookie_), 421, "ssh -L");
  for (const char* host : {"localhost", "localhost:9999", "127.0.0.1", "127.0.0.1:1", "[::1]:8765", "[::1]"}) {
    EXPECT_EQ(ask("GET", "/", std::string("Host: ") + host + "\r\n" + cookie_).status, 200) << host;
  }
}

TEST_F(ServeTest, ItListensOnTheLoopbackAddressOfIPv4Alone) {
  ok({"run", "grid.toml"});
  start();
  std::vector<std::string> places;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line, number, local, remote, state; std::getline(lines, line);) {
      std::istringstream(line) >> number >> local >> remote >> state;
      char port[8];
      std::snprintf(port, sizeof port, ":%04X", port_);
      if (local.ends_with(port) && state == "0A") places.push_back(local.substr(0, local.find(':')));
    }
  }
  EXPECT_EQ(places, std::vector<std::string>{"0100007F"});
}

// --- what is refused -------------------------------------------------------------------------------------------------

TEST_F(ServeTest, OtherMethodsThanGetAndHeadAreRefused) {
  ok({"run", "grid.toml"});
  start();
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "FETCH"}) {
    HttpAnswer answer = ask(method, "/", kLocal + cookie_);
    expect_refused(answer, 405, "GET and HEAD");
    EXPECT_EQ(answer.headers["allow"], "GET, HEAD");
  }
  HttpAnswer head = ask("HEAD", "/", kLocal + cookie_);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.headers["content-length"], std::to_string(get("/").body.size()));
}

TEST_F(ServeTest, AnAddressThatNoPageLinksToIsRefused) {
  ok({"run", "grid.toml"});
  test::write_text(folder_ / "results/secret.txt", "secret");
  start();
  for (const char* target :
       {"/../results/secret.txt", "/%2e%2e/secret.txt", "/run/%2E%2E%2Fsecret.txt", "/run/..", "/run/.",
        "http://127.0.0.1/", "*", "//%zz", "/run/%0", "/run/%00", "/run/%ff", "/run/a%0ab", "/run/%2fetc%2fpasswd"}) {
    expect_refused(get(target), 400, "begin at /");
  }
  for (const char* target :
       {"/secret.txt", "/results/secret.txt", "/run/", "/run", "/run/zzzzzzzzzzzzzzzz", "/run/1'%20OR%201=1--",
        "/run/0123456789abcdef", "/sweep/'%3B%20DROP%20TABLE%20runs%3B--", "/sweep/last", "/runs", "/runs?id=all",
        "/log?run=0123456789abcdef", "/log?run=failed", "/diff?a=last&b=all", "/diff?a=grid.toml&b=grid.toml",
        "/curve?run=x&metric=y", "/curve", "/run/<script>"}) {
    const HttpAnswer answer = get(target);
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_THAT(answer.body,
                AllOf(Not(HasSubstr("A fake grid")), Not(HasSubstr("<script>")), Not(HasSubstr("secret</"))))
        << target;
  }
  EXPECT_EQ(get("/").status, 200);
  EXPECT_EQ(tearless({"verify"}).code, 0);
}

TEST_F(ServeTest, WhatIsNoRequestIsRefusedAndTheServerGoesOn) {
  ok({"run", "grid.toml"});
  start();
  for (const char* text : {"nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n",
                           "\r\n\r\n\r\n\r\n", "GET / HTTP/1.1\r\nHost localhost\r\n\r\n"}) {
    Connection connection(port_);
    connection.send(text);
    expect_refused(connection.answer(), 400, "no request");
  }
  expect_refused(get("/", "Content-Length: 5\r\n"), 400, "begin at /");
  expect_refused(get("/", "Transfer-Encoding: chunked\r\n"), 400, "begin at /");
  {
    Connection connection(port_);
    connection.send("GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    connection.send(std::string(1 << 20, 'x'));
    const HttpAnswer answer = connection.answer();
    if (answer.status != 0) expect_refused(answer, 431, "16384 bytes");
  }
  {
    Connection connection(port_);
    connection.send("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
    expect_refused(connection.answer(), 431, "16384 bytes");
  }
  EXPECT_EQ(get("/").status, 200);
}

TEST_F(ServeTest, AConnectionTooManyIsToldSoAndHangingOnesAreClosed) {
  ok({"run", "grid.toml"});
  start({"--connections", "2", "--request-seconds", "0.5"});
  Connection silent(port_), slow(port_);
  slow.send("GET / HTTP/1.1\r\nHost: loc");
  HttpAnswer refused;
  EXPECT_TRUE(test::eventually([&] { return (refused = get("/")).status == 503; }));
  expect_refused(refused, 503, "connections are open");
  for (Connection* hanging : {&silent, &slow}) {
    EXPECT_EQ(hanging->read_until(""), "");
    EXPECT_TRUE(hanging->is_closed());
  }
  EXPECT_TRUE(test::eventually([&] { return get("/").status == 200; }));
}

TEST_F(ServeTest, AHeaderThatComesInDropsIsNotWaitedForLongerThanOthers) {
  ok({"run", "grid.toml"});
  start({"--request-seconds", "0.5"});
  Connection drops(port_);
  drops.send("GET / HTTP/1.1\r\n");
  drops.wait_at_most(0.1);
  EXPECT_TRUE(test::eventually([&] {
    drops.send("X: y\r\n");
    return drops.read_until("").empty() && drops.is_closed();
  }));
}

TEST_F(ServeTest, AThousandConnectionsThatHangLeaveTheServerAlive) {
  ok({"run", "grid.toml"});
  start({"--request-seconds", "0.5"});
  {
    std::vector<Connection> hanging;
    for (int i = 0; i < 900; ++i) {
      hanging.emplace_back(port_);
      hanging.back().send("GET / HTTP/1.1\r\n");
    }
  }
  EXPECT_TRUE(test::eventually([&] { return get("/").status == 200; }));
}

// --- what an answer has ----------------------------------------------------------------------------------------------

TEST_F(ServeTest, EachAnswerForbidsWhatThePagesDoNotHave) {
  ok({"run", "grid.toml"});
  start();
  for (const std::string& page : pages_of(the_sweep(), a_run())) {
    if (page == "/events") continue;
    HttpAnswer answer = get(page);
    ASSERT_EQ(answer.status, 200) << page;
    EXPECT_THAT(answer.headers["content-security-policy"],
                AllOf(HasSubstr("default-src 'self'"), HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe"))));
    EXPECT_EQ(answer.headers["x-content-type-options"], "nosniff");
    EXPECT_EQ(answer.headers["referrer-policy"], "no-referrer");
    EXPECT_EQ(answer.headers["cross-origin-resource-policy"], "same-origin");
    EXPECT_FALSE(answer.headers.contains("access-control-allow-origin"));
    if (!answer.headers["content-type"].starts_with("text/html")) continue;
    EXPECT_FALSE(
        std::regex_search(answer.body, std::regex("<style| style=|<script(?! src)| on[a-z]+=|javascript:|//[a-z]+\\.")))
        << page;
  }
}

TEST_F(ServeTest, AnUnchangedPageIsNotSentAgain) {
  ok({"run", "grid.toml"});
  start();
  const std::string tag = get("/").headers["etag"];
  const HttpAnswer again = get("/", "If-None-Match: " + tag + "\r\n");
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(get("/", "If-None-Match: \"0\"\r\n").status, 200);
  write_other_grid();
  ok({"run", "other.toml"});
  EXPECT_EQ(get("/", "If-None-Match: " + tag + "\r\n").status, 200);
}

// --- what pages say --------------------------------------------------------------------------------------------------

TEST_F(ServeTest, PagesSayWhatTheCommandsPrint) {
  ok({"run", "grid.toml"});
  start();
  const std::string run = a_run(), other = runs().back().root().filename();
  EXPECT_EQ(preformatted_in(get("/run/" + run).body), ok({"explain", run}).output);
  EXPECT_EQ(preformatted_in(get("/log?run=" + run).body), ok({"log", run}).output);
  EXPECT_EQ(preformatted_in(get("/diff?a=" + run + "&b=" + other).body), ok({"diff", run, other}).output);
  write_other_grid();
  ok({"run", "other.toml"});
  const nlohmann::json sweeps = nlohmann::json::parse(ok({"--json", "status"}).output)["sweeps"];
  const std::string newest = sweeps[0]["id"], first = sweeps[1]["id"];
  const std::string start_page = get("/").body;
  for (const std::string& id : {newest, first}) EXPECT_THAT(start_page, HasSubstr("/sweep/" + id));
  EXPECT_THAT(start_page, HasSubstr("4 of 4 ended"));
  EXPECT_EQ(preformatted_in(get("/diff?a=" + first + "&b=" + newest).body), ok({"diff", first, newest}).output);
  EXPECT_EQ(get("/diff?a=" + first + "&b=" + run).status, 404);
  EXPECT_EQ(preformatted_in(get("/runs?id=" + run + "&id=" + other).body), ok({"explain", run}).output);
  EXPECT_THAT(get("/runs?id=" + run + "&id=" + other).body, HasSubstr("/run/" + other));
}

// Cells and claims lead to their runs.
TEST_F(ServeTest, ASweepHasItsTablesClaimsFiguresAndRuns) {
  test::write_text(folder_ / "grid.toml", test::read_text(folder_ / "grid.toml") +
                                              "[[claim]]\ntext = \"a is better\"\nbetter = [\"a\", \"b\"]\n"
                                              "[[figure]]\ncaption = \"Loss by update\"\ny = \"train.loss\"\n");
  ok({"run", "grid.toml"});
  start();
  const std::string page = get("/sweep/" + the_sweep()).body;
  for (const char* part : {"<section id=\"tables\">", "<section id=\"claims\">", "<section id=\"figures\">",
                           "<section id=\"runs\">", "a is better", "<svg ", "4 done", "4 of 4 ended"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  // A cell of the table, as the command prints it.
  const std::string markdown = ok({"table", "last", "--format", "markdown"}).output;
  std::smatch cell;
  ASSERT_TRUE(std::regex_search(markdown, cell, std::regex("[0-9.]+ ± [0-9.]+")));
  const size_t at = page.find(cell.str());
  ASSERT_NE(at, std::string::npos) << cell.str();
  const size_t link = page.rfind("href=\"/runs?id=", at);
  ASSERT_NE(link, std::string::npos);
  std::string address = page.substr(link + 6, page.find('"', link + 6) - link - 6);
  address.replace(address.find("&amp;"), 5, "&");
  EXPECT_EQ(get(address).status, 200);
  EXPECT_THAT(get(address).body, HasSubstr("<h1>2 runs</h1>"));
  for (const RunDirectory& run : runs()) EXPECT_THAT(page, HasSubstr("/run/" + run.root().filename().string()));
}

TEST_F(ServeTest, RunsAreListedByStateAndAPageAtATime) {
  write_grid("\"succeed\", \"diverge\"", 0);
  tearless({"run", "grid.toml"});
  start();
  const nlohmann::json all = nlohmann::json::parse(tearless({"--json", "runs", "last"}).output);
  const std::string page = get("/sweep/" + the_sweep() + "?state=diverged").body;
  const std::string table = page.substr(page.find("run-table"));
  size_t diverged = 0;
  for (const auto& run : all) {
    const bool is_shown = table.find("/run/" + run["run"].get<std::string>()) != std::string::npos;
    EXPECT_EQ(is_shown, run["state"] == "diverged") << run;
    diverged += is_shown;
  }
  EXPECT_EQ(diverged, 4);
  for (const char* number : {"0", "99", "-1", "x", "999999999999999999999"}) {
    EXPECT_EQ(get("/sweep/" + the_sweep() + "?page=" + number).status, 200) << number;
  }
}

TEST_F(ServeTest, EachRunOfALargeSweepIsOnOneOfItsPages) {
  test::write_text(folder_ / "grid.toml", "seeds = 250\n[axis]\n\"model.kind\" = [\"a\"]\n");
  queue("grid.toml");
  start();
  std::string sweep;
  const nlohmann::json status = nlohmann::json::parse(ok({"--json", "status"}).output);
  for (const auto& one : status["sweeps"]) {
    if (one["runs"].size() == 250) sweep = one["id"];
  }
  const auto shown = [&](const std::string& page) {
    const std::string html = get("/sweep/" + sweep + page).body;
    std::set<std::string> runs;
    static const std::regex kLink("/run/([0-9a-f]{16})");
    const std::string table = html.substr(html.find("run-table"));
    for (std::sregex_iterator link(table.begin(), table.end(), kLink), end; link != end; ++link)
      runs.insert((*link)[1]);
    return runs;
  };
  std::set<std::string> first = shown(""), second = shown("?page=2");
  EXPECT_EQ(first.size(), 200);
  EXPECT_EQ(second.size(), 50);
  EXPECT_EQ(shown("?page=3"), second) << "the last one";
  EXPECT_EQ(shown("?page=1"), first);
  EXPECT_EQ(shown("?state=queued&page=2"), second);
  EXPECT_THAT(get("/sweep/" + sweep).body, HasSubstr("page=2"));
  first.merge(second);
  EXPECT_EQ(first.size(), 250);
}

TEST_F(ServeTest, ACurveHasThePointsThatTheRunReported) {
  ok({"run", "grid.toml"});
  start();
  std::vector<double> x, y;
  for (const MetricLine& line : read_metrics(runs().front(), 0).lines) {
    if (line.name != "train.loss") continue;
    x.push_back(static_cast<double>(line.step));
    y.push_back(line.value);
  }
  HttpAnswer answer = get("/curve?run=" + a_run() + "&metric=train.loss");
  EXPECT_EQ(answer.headers["content-type"], "application/json");
  const nlohmann::json curve = nlohmann::json::parse(answer.body);
  EXPECT_EQ(curve["x"].get<std::vector<double>>(), x);
  EXPECT_EQ(curve["y"].get<std::vector<double>>(), y);
  EXPECT_GT(x.size(), 3);
  EXPECT_EQ(nlohmann::json::parse(get("/curve?run=" + a_run() + "&metric=no.such").body)["x"].size(), 0);
}

TEST_F(ServeTest, ALongCurveHasFewPointsAmongThemItsEndsAndExtremes) {
  test::write_text(folder_ / "grid.toml", "[set]\n\"fake.updates\" = 520\n[axis]\n\"model.kind\" = [\"a\"]\n");
  ok({"run", "grid.toml"});
  start();
  std::map<double, double> reported;
  for (const MetricLine& line : read_metrics(runs().front(), 0).lines) {
    if (line.name == "train.loss") reported[static_cast<double>(line.step)] = line.value;
  }
  ASSERT_EQ(reported.size(), 520);
  const nlohmann::json curve = nlohmann::json::parse(get("/curve?run=" + a_run() + "&metric=train.loss").body);
  const auto x = curve["x"].get<std::vector<double>>(), y = curve["y"].get<std::vector<double>>();
  EXPECT_LE(x.size(), 500);
  EXPECT_GE(x.size(), 100);
  EXPECT_EQ(x.front(), reported.begin()->first);
  EXPECT_EQ(x.back(), reported.rbegin()->first);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], reported.at(x[i])) << x[i];
  const auto extremes = std::minmax_element(reported.begin(), reported.end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(std::ranges::min(y), extremes.first->second);
  EXPECT_EQ(std::ranges::max(y), extremes.second->second);
}

TEST_F(ServeTest, OfALongLogTheLastWholeLinesAreShown) {
  ok({"run", "grid.toml"});
  std::string log = "the beginning\n";
  for (int i = 0; i < 50'000; ++i) log += "line " + std::to_string(i) + " é\n";
  test::write_text(runs().front().attempt(1) / "log.txt", log + "\x1b[31mthe end");
  start();
  const std::string text = preformatted_in(get("/log?run=" + a_run()).body);
  EXPECT_THAT(text, AllOf(testing::StartsWith("line "), HasSubstr("line 49999 é\n"), HasSubstr("the end"),
                          Not(HasSubstr("the beginning")), Not(HasSubstr("\x1b"))));
  EXPECT_GT(text.size(), 200'000);
  EXPECT_LT(text.size(), 260'000);
}

TEST_F(ServeTest, TextsOfAGridAreNoMarkup) {
  std::string grid = test::read_text(folder_ / "grid.toml");
  grid.replace(grid.find("A fake grid"), 11, "<script>alert(1)</script>");
  grid.replace(grid.find("\"a\""), 3, "\"<i>a&\"");
  test::write_text(folder_ / "grid.toml", "note = '<b onload=x>'\n" + grid);
  ok({"run", "grid.toml"});
  start();
  for (const std::string& page : pages_of(the_sweep(), a_run())) {
    if (page == "/events" || page == "/live.js") continue;
    EXPECT_THAT(get(page).body, AllOf(Not(HasSubstr("<script>alert")), Not(HasSubstr("<i>")), Not(HasSubstr("<b "))));
  }
  EXPECT_THAT(get("/").body, HasSubstr("&lt;b onload=x&gt;"));
}

TEST_F(ServeTest, NothingOfTheWorkspaceIsChanged) {
  ok({"run", "grid.toml"});
  // All but the index of SQLite's log, in which each reader notes what it reads.
  const auto files = [&] {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "results")) {
      const fs::path& file = entry.path();
      if (entry.is_regular_file() && file.extension() != ".db-shm") bytes[file] = test::read_text(file);
    }
    return bytes;
  };
  const auto before = files();
  start();
  for (const std::string& page : pages_of(the_sweep(), a_run())) {
    if (page == "/events") continue;
    EXPECT_EQ(get(page).status, 200) << page;
  }
  server_.reset();
  EXPECT_EQ(files(), before);
}

TEST_F(ServeTest, AnArchiveIsShown) {
  ok({"run", "grid.toml"});
  const std::string run = a_run(), sweep = the_sweep();
  ok({"copy", "results.tar.gz", "--results"});
  start({}, "results.tar.gz");
  EXPECT_THAT(get("/").body, AllOf(HasSubstr("A fake grid"), HasSubstr("results.tar.gz"), Not(HasSubstr(".cache"))));
  EXPECT_EQ(get("/sweep/" + sweep).status, 200);
  EXPECT_THAT(get("/run/" + run).body, AllOf(HasSubstr("/sweep/" + sweep), Not(HasSubstr("/log?run="))));
  const HttpAnswer log = get("/log?run=" + run);
  EXPECT_EQ(log.status, 404);
  EXPECT_THAT(log.body, HasSubstr("copy of results alone"));
}

TEST_F(ServeTest, AWorkspaceThatIsDeletedAndMadeAgainIsSaidInASentence) {
  ok({"run", "grid.toml"});
  start();
  const std::string sweep = the_sweep();
  fs::rename(folder_ / "results", folder_ / "elsewhere");
  for (const char* page : {"/", "/run/0123456789abcdef", "/curve?run=0123456789abcdef&metric=train.loss"}) {
    const HttpAnswer gone = get(page);
    EXPECT_EQ(gone.status, 503) << page;
    EXPECT_THAT(gone.body, AllOf(HasSubstr("<p>"), Not(HasSubstr("A fake grid"))));
  }
  fs::rename(folder_ / "elsewhere", folder_ / "results");
  EXPECT_EQ(get("/").status, 200);
  fs::remove(folder_ / "results/tearless.db");
  const HttpAnswer lost = get("/");
  EXPECT_EQ(lost.status, 503);
  EXPECT_THAT(lost.body, HasSubstr("tearless rebuild"));
  ok({"rebuild"});
  EXPECT_EQ(get("/sweep/" + sweep).status, 200);
}

TEST_F(ServeTest, BeforeAnythingWasRunAPageSaysSo) {
  start();
  const HttpAnswer page = get("/");
  EXPECT_EQ(page.status, 503);
  EXPECT_THAT(page.body, HasSubstr("nothing has been run"));
  EXPECT_FALSE(fs::exists(folder_ / "results"));
}

// --- changes ---------------------------------------------------------------------------------------------------------

TEST_F(ServeTest, WhoListensIsToldOfAChangeAndOfNothingElse) {
  ok({"run", "grid.toml"});
  start();
  Connection events(port_);
  events.send("GET /events HTTP/1.1\r\n" + (kLocal + cookie_) + "\r\n");
  EXPECT_THAT(events.read_until("retry: 2000\n\n"), AllOf(HasSubstr("200 OK"), HasSubstr("text/event-stream")));
  events.wait_at_most(0.5);  // twenty looks
  EXPECT_THAT(events.read_until("data: "), Not(HasSubstr("data: ")));
  write_other_grid();
  ok({"run", "other.toml"});
  events.wait_at_most(60);
  EXPECT_THAT(events.read_until("data: changed\n\n"), HasSubstr("data: changed\n\n"));
  EXPECT_FALSE(events.is_closed());
}

TEST_F(ServeTest, WhoListensIsToldOfADatabaseThatWasReplaced) {
  ok({"run", "grid.toml"});
  start();
  Connection events(port_);
  events.send("GET /events HTTP/1.1\r\n" + (kLocal + cookie_) + "\r\n");
  events.read_until("retry: 2000\n\n");
  ok({"rebuild"});
  EXPECT_THAT(events.read_until("data: changed\n\n"), HasSubstr("data: changed\n\n"));
}

TEST_F(ServeTest, ARunThatIsUnderWayIsShownWithItsProgressAndItsCurve) {
  has_daemon_ = true;
  write_grid("\"succeed\"", 200);
  ok({"submit", "grid.toml"});
  start();
  RunDirectory run("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&run));
  const std::string address = "/run/" + run.root().filename().string();
  std::string page;
  EXPECT_TRUE(test::eventually([&] {
    page = get("/").body;
    const size_t running = page.find("<section id=\"running\">");
    return running != std::string::npos && page.find(address, running) < page.find("<section id=\"sweeps\">") &&
           page.find("live-curves") != std::string::npos;
  })) << page;
  EXPECT_THAT(page, AllOf(HasSubstr(" of 12"), HasSubstr("running"), HasSubstr("train.loss")));
}

TEST_F(ServeTest, AServiceThatDoesNotAnswerIsSaidAndWhatIsRecordedIsShown) {
  has_daemon_ = true;
  write_grid("\"succeed\"", 200);
  ok({"submit", "grid.toml"});
  start();
  EXPECT_TRUE(test::eventually([&] { return get("/").body.find("works here") != std::string::npos; }));
  const pid_t service = service_pid();
  ASSERT_GT(service, 0);
  ::kill(service, SIGSTOP);
  EXPECT_TRUE(test::eventually([&] { return get("/").body.find("works here") == std::string::npos; }));
  const HttpAnswer page = get("/");
  ::kill(service, SIGCONT);
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, AllOf(HasSubstr("A fake grid"), HasSubstr(std::to_string(service))));
}

// Else the service that ends could not leave its database as one file.
TEST_F(ServeTest, WhenNobodyLooksTheDatabaseIsClosed) {
  ok({"run", "grid.toml"});
  start();
  const auto has_it_open = [&] {
    for (const auto& file : fs::directory_iterator("/proc/" + std::to_string(server_->pid()) + "/fd")) {
      std::error_code gone;
      if (fs::read_symlink(file.path(), gone).string().find("tearless.db") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_FALSE(has_it_open());
  get("/");
  EXPECT_TRUE(has_it_open());
  EXPECT_TRUE(test::eventually([&] { return !has_it_open(); }));
  EXPECT_EQ(get("/").status, 200);
}

// --- its beginning and its end ---------------------------------------------------------------------------------------

TEST_F(ServeTest, APortThatIsTakenIsOneSentence) {
  start();
  const test::Finished second = tearless({"serve", "--port", std::to_string(port_)});
  EXPECT_EQ(second.code, 2);
  EXPECT_EQ(second.output, "");
  EXPECT_EQ(second.errors, "tearless: port " + std::to_string(port_) +
                               " of 127.0.0.1 is taken; name another one: --port N (0: any that is free)\n");
  for (const char* port : {"-1", "65536", "http"}) EXPECT_EQ(tearless({"serve", "--port", port}).code, 2);
}

TEST_F(ServeTest, ASignalEndsItAlsoWhileSomebodyListens) {
  for (const int signal : {SIGTERM, SIGINT}) {
    start();
    Connection events(port_), hanging(port_);
    events.send("GET /events HTTP/1.1\r\n" + (kLocal + cookie_) + "\r\n");
    events.read_until("retry: 2000\n\n");
    server_->signal(signal);
    EXPECT_EQ(server_->wait().code, 0);
  }
}

}  // namespace
}  // namespace tearless::harness
