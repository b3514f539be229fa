#include "harness/grants/board.h"

#include <fmt/format.h>
#include <poll.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "harness/grants/needs_json.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::string_view kMagic = "tearless-board";
constexpr int kVersion = 1;
constexpr size_t kReserved = 64 << 10;  // bytes: about 250 grants and 1,000 workers
constexpr int kLooks = 3;
constexpr int kBetweenLooks = 100;  // milliseconds

constexpr std::pair<Stop, const char*> kStops[] = {
    {Stop::kOnRequest, "request"}, {Stop::kStalled, "stall"}, {Stop::kAtOnce, "now"}};

json json_of(const Board& board) {
  json body = {{"beat", board.beat}, {"seen", board.seen}, {"grants", json::array()}, {"stops", json::array()}};
  if (!board.stay.empty()) body["stay"] = board.stay;
  for (const OpenGrant& grant : board.grants) {
    body["grants"].push_back({{"id", grant.id}, {"attempt", grant.attempt}, {"needs", json_of(grant.needs)}});
    if (!grant.not_on.empty()) body["grants"].back()["not_on"] = grant.not_on;
    if (grant.memory_above > 0) body["grants"].back()["memory_above"] = grant.memory_above;
  }
  for (const StopOrder& stop : board.stops) {
    const char* how = "";
    for (const auto& [kind, name] : kStops) how = kind == stop.how ? name : how;
    body["stops"].push_back({{"id", stop.id}, {"attempt", stop.attempt}, {"how", how}, {"grace", stop.grace_seconds}});
  }
  return body;
}

Board board_from(const json& body) {
  Board board{.beat = body.at("beat"), .seen = body.at("seen"), .stay = body.value("stay", std::set<std::string>())};
  for (const json& grant : body.at("grants")) {
    board.grants.push_back(
        {.id = grant.at("id"), .attempt = grant.at("attempt"), .needs = needs_from(grant.at("needs"))});
    if (grant.contains("not_on")) grant["not_on"].get_to(board.grants.back().not_on);
    board.grants.back().memory_above = grant.value("memory_above", int64_t{0});
  }
  for (const json& stop : body.at("stops")) {
    StopOrder order{.id = stop.at("id"), .attempt = stop.at("attempt"), .grace_seconds = stop.at("grace")};
    for (const auto& [kind, name] : kStops) {
      if (stop.at("how") == name) order.how = kind;
    }
    board.stops.push_back(std::move(order));
  }
  return board;
}

// Nullopt for a text that is torn, damaged, or of a later version.
std::optional<Board> parsed(const std::string& text) {
  const size_t end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream header(text.substr(0, end));
  std::string magic, hash;
  int version = 0;
  size_t bytes = 0;
  header >> magic >> version >> bytes >> hash;
  if (!header || magic != kMagic || version != kVersion || text.size() - end - 1 < bytes) return std::nullopt;
  const std::string body = text.substr(end + 1, bytes);
  if (sha256(body) != hash) return std::nullopt;
  try {
    return board_from(json::parse(body));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

void write_board(const fs::path& file, const Board& board) {
  const std::string body = json_of(board).dump();
  const std::string text = fmt::format("{} {} {} {}\n{}\n", kMagic, kVersion, body.size(), sha256(body), body);
  if (fs::exists(file)) return overwrite_in_place(file, text);
  make_folders(file.parent_path());
  replace_unsynced(file, text + std::string(kReserved, ' '));
}

std::optional<Board> read_board(const fs::path& file) {
  for (int look = 1;; ++look) {
    try {
      const std::optional<std::string> text = read_if_there(file);
      if (!text) return std::nullopt;
      if (std::optional<Board> board = parsed(*text)) return board;
    } catch (const UserError&) {  // such as a file handle that has become stale
    }
    if (look == kLooks) return std::nullopt;
    ::poll(nullptr, 0, kBetweenLooks);
  }
}

}  // namespace tearless::harness
