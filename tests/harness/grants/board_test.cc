// The board: overwritten in place while others read it.
#include "harness/grants/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/files.h"
#include "tests/support/paths.h"

namespace tearless::harness::board_test {
namespace {

namespace fs = std::filesystem;

Board board(int64_t beat, int grants) {
  Board made{.beat = beat, .seen = {"n1-00000001", "n2-00000002"}};
  for (int i = 0; i < grants; ++i) {
    const Needs needs{.device = "cuda",
                      .threads = i,
                      .resource_class = "a b",
                      .memory_bytes = 12,
                      .declared = true,
                      .alone = i == 1,
                      .executor = "workers"};
    made.grants.push_back({std::to_string(beat), i, needs, {"n" + std::to_string(i)}, i});
  }
  made.stops = {{"a", 1, Stop::kOnRequest, 30}, {"b", 2, Stop::kStalled, 5}, {"c", 3, Stop::kAtOnce, 0}};
  return made;
}

TEST(Board, IsReadAsItWasWritten) {
  const test::TempFolder folder;
  EXPECT_FALSE(read_board(folder / "queue/board")) << "there is none";
  write_board(folder / "queue/board", board(7, 3));
  const Board read = *read_board(folder / "queue/board");
  EXPECT_EQ(read.beat, 7);
  EXPECT_THAT(read.seen, testing::ElementsAre("n1-00000001", "n2-00000002"));
  ASSERT_EQ(read.grants.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read.grants[i].id, "7");
    EXPECT_EQ(read.grants[i].attempt, i);
    EXPECT_THAT(read.grants[i].not_on, testing::ElementsAre("n" + std::to_string(i)));
    EXPECT_EQ(read.grants[i].memory_above, i);
    EXPECT_EQ(read.grants[i].needs, board(7, 3).grants[i].needs);
  }
  ASSERT_EQ(read.stops.size(), 3u);
  EXPECT_EQ(read.stops[1].id, "b");
  EXPECT_EQ(read.stops[1].attempt, 2);
  EXPECT_EQ(read.stops[1].how, Stop::kStalled);
  EXPECT_EQ(read.stops[0].how, Stop::kOnRequest);
  EXPECT_EQ(read.stops[2].how, Stop::kAtOnce);
  EXPECT_EQ(read.stops[0].grace, 30);
}

TEST(Board, ItsFormStaysAndHasWhatIsNotAsUsualAlone) {
  const Needs full{.device = "cuda",
                   .threads = 2,
                   .resource_class = "c",
                   .memory_bytes = 5,
                   .declared = true,
                   .alone = true,
                   .executor = "e",
                   .kind = "k",
                   .secrets = {"S"}};
  const std::string usual =
      R"({"alone":false,"declared":false,"device":"cpu","executor":"","resource_class":"","threads":1})";
  const std::string needs =
      R"({"alone":true,"declared":true,"device":"cuda","executor":"e","kind":"k","memory_bytes":5,"resource_class":"c","secrets":["S"],"threads":2})";
  const Board board{
      .beat = 1,
      .seen = {"w"},
      .stay = {"w"},
      .grants = {{.id = "a", .attempt = 2, .needs = full, .not_on = {"h"}, .memory_above = 3}, {.id = "b"}},
      .stops = {{.id = "c", .attempt = 4, .how = Stop::kStalled, .grace = 5}}};
  const std::string text = R"({"beat":1,"grants":[{"attempt":2,"id":"a","memory_above":3,"needs":)" + needs +
                           R"(,"not_on":["h"]},{"attempt":0,"id":"b","needs":)" + usual +
                           R"(}],"seen":["w"],"stay":["w"],"stops":[{"attempt":4,"grace":5,"how":"stall","id":"c"}]})";
  EXPECT_EQ(nlohmann::json(board).dump(), text);
  EXPECT_EQ(nlohmann::json(nlohmann::json::parse(text).get<Board>()).dump(), text);
  EXPECT_EQ(nlohmann::json(Board()).dump(), R"({"beat":0,"grants":[],"seen":[],"stops":[]})");
  EXPECT_THROW(nlohmann::json::parse(R"({"beat":0,"grants":[],"seen":[]})").get<Board>(), nlohmann::json::exception);
}

TEST(Board, AShorterOneThatFollowsIsReadAlone) {
  const test::TempFolder folder;
  write_board(folder / "board", board(1, 50));
  write_board(folder / "board", board(2, 1));
  EXPECT_EQ(read_board(folder / "board")->beat, 2);
  EXPECT_EQ(read_board(folder / "board")->grants.size(), 1u);
}

TEST(Board, KeepsItsFileAndNeedsNoNewSpace) {
  const test::TempFolder folder;
  write_board(folder / "board", board(1, 0));
  const test::TempFolder others;
  fs::create_hard_link(folder / "board", others / "same");
  const auto bytes = fs::file_size(folder / "board");
  write_board(folder / "board", board(2, 250));
  EXPECT_EQ(fs::file_size(folder / "board"), bytes) << "what a full disk would refuse";
  EXPECT_EQ(read_board(others / "same")->beat, 2) << "in place: a name that is replaced may stay unseen elsewhere";
}

TEST(Board, ADamagedOneIsNone) {
  const test::TempFolder folder;
  write_board(folder / "board", board(1, 2));
  const std::string whole = test::read_text(folder / "board");
  const size_t end = whole.find_last_not_of(' ');
  for (size_t at = 0; at < end; at += 97) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    test::write_text(folder / "board", damaged);
    EXPECT_FALSE(read_board(folder / "board")) << at;
  }
  test::write_text(folder / "board", whole.substr(0, end - 1));
  EXPECT_FALSE(read_board(folder / "board")) << "its size is stale";
}

TEST(Board, AReaderNeverSeesHalfABoard) {
  const test::TempFolder folder;
  write_board(folder / "board", board(0, 1));
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    for (int64_t beat = 1; beat <= 2000; ++beat)
      write_board(folder / "board", board(beat, static_cast<int>(beat % 40)));
    ended = true;
  });
  int64_t newest = 0, looks = 0;
  while (!ended) {
    const std::optional<Board> read = read_board(folder / "board");
    if (!read) continue;
    ++looks;
    EXPECT_GE(read->beat, newest);
    newest = read->beat;
    ASSERT_EQ(std::ssize(read->grants), read->beat == 0 ? 1 : read->beat % 40);
    for (const OpenGrant& grant : read->grants) ASSERT_EQ(grant.id, std::to_string(read->beat));
  }
  writer.join();
  EXPECT_EQ(read_board(folder / "board")->beat, 2000);
  std::printf("%lld whole boards were read beside the writer\n", static_cast<long long>(looks));
}

}  // namespace
}  // namespace tearless::harness::board_test
