#include "harness/schedule/data_watch.h"

#include <utility>

namespace tearless::harness {

void DataWatch::add(const InputFiles& files, FileStamps refused, const std::vector<std::string>& runs) {
  Watched& watched = watched_[files];
  watched.seen = watched.refused = std::move(refused);
  watched.runs.insert(watched.runs.end(), runs.begin(), runs.end());
}

std::vector<std::string> DataWatch::changed() {
  std::vector<std::string> runs;
  for (auto entry = watched_.begin(); entry != watched_.end();) {
    Watched& watched = entry->second;
    const FileStamps now = stamps_of(entry->first);
    const bool is_written = now != std::exchange(watched.seen, now);
    if (now == watched.refused || is_written) {
      ++entry;
      continue;
    }
    runs.insert(runs.end(), watched.runs.begin(), watched.runs.end());
    entry = watched_.erase(entry);
  }
  return runs;
}

}  // namespace tearless::harness
