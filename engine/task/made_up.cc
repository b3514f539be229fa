#include "engine/task/made_up.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

MadeUpSizes equal_examples(int64_t tokens, size_t sides) {
  constexpr int32_t kRows = 24;
  const auto count = std::max<size_t>(1, static_cast<size_t>(tokens) / (kRows * sides));
  return {std::vector(count, std::vector(sides, kRows))};
}

MadeUpSizes sizes_in(const std::filesystem::path& file, MadeUpSizes otherwise) {
  if (file.empty()) return otherwise;
  const size_t sides = otherwise.at(0).at(0).size();
  MadeUpSizes sizes;
  try {
    const nlohmann::json batches = nlohmann::json::parse(read_file(file)).at("batches");
    if (sides > 1) {
      sizes = batches.get<MadeUpSizes>();
    } else {
      for (const auto& batch : batches.get<std::vector<std::vector<int32_t>>>()) {
        sizes.emplace_back();
        for (const int32_t rows : batch) sizes.back().push_back({rows});
      }
    }
  } catch (const nlohmann::json::exception& error) {
    fail("{}: not a list of sentence lengths ({}); expected {{\"batches\": [[{}, …], …]}}", file.string(), error.what(),
         sides > 1 ? "[source rows, target rows]" : "rows");
  }
  if (sizes.empty()) fail("{}: \"batches\" is empty", file.string());
  for (const auto& batch : sizes) {
    if (batch.empty()) fail("{}: a batch has no sentences", file.string());
    for (const auto& rows : batch) {
      if (rows.size() != sides) {
        fail("{}: a sentence has {} lengths; of this task each has {}", file.string(), rows.size(), sides);
      }
      if (const int32_t least = *std::min_element(rows.begin(), rows.end()); least < 1) {
        fail("{}: a sentence has {} rows; each needs at least 1", file.string(), least);
      }
    }
  }
  return sizes;
}

std::vector<int64_t> column(const MadeUpSizes& sizes, size_t side, int64_t without) {
  std::vector<int64_t> all;
  for (const auto& batch : sizes) {
    for (const auto& example : batch) all.push_back(example.at(side) - without);
  }
  return all;
}

std::vector<std::vector<int32_t>> numbered(const std::vector<int64_t>& counts) {
  std::vector<std::vector<int32_t>> batches;
  int32_t next = 0;
  for (const int64_t count : counts) {
    batches.emplace_back(static_cast<size_t>(count));
    for (int32_t& example : batches.back()) example = next++;
  }
  return batches;
}

std::vector<std::vector<int32_t>> numbered(const MadeUpSizes& sizes) {
  std::vector<int64_t> counts;
  for (const auto& batch : sizes) counts.push_back(std::ssize(batch));
  return numbered(counts);
}

TokenLines random_lines(const std::vector<int64_t>& words, bool with_eos, int64_t vocab_size,
                        const RandomStream& stream) {
  TokenLines lines;
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<int32_t> line;
    for (int64_t w = 0; w < words[i]; ++w) {
      const uint32_t bits = stream.draw(static_cast<uint32_t>(w), 0, static_cast<uint32_t>(i), 0);
      line.push_back(kFirstPiece + static_cast<int32_t>(bits % static_cast<uint32_t>(vocab_size - kFirstPiece)));
    }
    if (with_eos) line.push_back(kEos);
    lines.add(line);
  }
  return lines;
}

}  // namespace tearless::engine
