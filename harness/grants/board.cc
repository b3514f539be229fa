#include "harness/grants/board.h"

#include <fmt/format.h>
#include <poll.h>

#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::string_view kMagic = "tearless-board";
constexpr int kVersion = 1;
constexpr size_t kReserved = 64 << 10;  // bytes: about 250 grants and 1,000 workers
constexpr int kLooks = 3;
constexpr int kBetweenLooks = 100;  // milliseconds

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
    return json::parse(body).get<Board>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

void write_board(const fs::path& file, const Board& board) {
  const std::string body = json(board).dump();
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
