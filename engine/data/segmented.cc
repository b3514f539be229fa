#include "engine/data/segmented.h"

#include "base/words.h"

namespace tearless::engine {

std::vector<std::string> Segmented::encode(std::string_view line, Side) const {
  const auto words = split_words(line);
  return {words.begin(), words.end()};
}

std::string Segmented::join(std::span<const std::string> pieces) const { return join_continued(pieces); }

std::string join_continued(std::span<const std::string> pieces) {
  std::string line;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].ends_with("@@")) {
      line.append(pieces[i], 0, pieces[i].size() - 2);
    } else {
      line += pieces[i];
      if (i + 1 < pieces.size()) line += ' ';
    }
  }
  return line;
}

}  // namespace tearless::engine
