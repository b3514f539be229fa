// The board: what the service tells the workers of a workspace. One file, queue/board:
//
//   tearless-board 1 <bytes of body> <SHA-256 of body>\n
//   {"beat": 712, "seen": ["n1-0a1b2c3d", …], "stay": ["n1-0a1b2c3d", …],
//    "grants": [{"id", "attempt", "needs", "not_on": [host, …], "memory_above"}, …],
//    "stops": [{"id", "attempt", "how": "request" | "stall" | "now", "grace": 30}, …]}
//   what is left of earlier, longer boards
//
// It is overwritten in place, not renamed: a network file system checks a file that exists at each open(), but may
// believe for a minute that a new name is not there, or that an old one means the old file. Two traps follow:
//   1. A reader may see half of the old and half of the new board. It then sees a wrong checksum, and reads again.
//   2. A full disk must not stop it. So the first board is followed by blanks, and a later one needs no new space.
// A worker acts on what is on the board, never on what is not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json_members.h"
#include "harness/runs/launcher.h"

namespace tearless::harness {

/// An attempt that a worker may claim.
struct OpenGrant {
  std::string id;  // of the run
  int64_t attempt = 0;
  Needs needs = {};
  std::set<std::string> not_on = {};  // hosts whose workers are to leave it to others
  int64_t memory_above = 0;           // as Machines::memory_above()
};
TEARLESS_JSON(OpenGrant, (id, attempt, needs), (not_on, memory_above))

NLOHMANN_JSON_SERIALIZE_ENUM(Stop, {{Stop::kOnRequest, "request"}, {Stop::kStalled, "stall"}, {Stop::kAtOnce, "now"}})

/// An attempt that its worker is to end.
struct StopOrder {
  std::string id;
  int64_t attempt = 0;
  Stop how = Stop::kOnRequest;
  int grace = 0;  // seconds
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StopOrder, id, attempt, how, grace)

struct Board {
  int64_t beat = 0;                 // raised at each write
  std::set<std::string> seen = {};  // the workers whose files the service sees
  std::set<std::string> stay = {};  // those of them that are to wait for runs, though they have none
  std::vector<OpenGrant> grants = {};
  std::vector<StopOrder> stops = {};
};
TEARLESS_JSON(Board, (beat, seen, grants, stops), (stay))

/// MachineError or UserError if it cannot be written.
void write_board(const std::filesystem::path& file, const Board& board);

/// Nullopt if there is none, or if it is torn or damaged at three looks, 100 ms apart.
std::optional<Board> read_board(const std::filesystem::path& file);

}  // namespace tearless::harness
