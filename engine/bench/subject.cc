#include "engine/bench/subject.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "engine/task/classify.h"
#include "engine/task/digits.h"
#include "engine/task/translate.h"

namespace tearless::engine {
namespace {

constexpr int32_t kFirstWord = kUnk + 1;

/// The sizes of batches: for each, the rows of each side of its examples.
using BenchLengths = std::vector<std::vector<std::vector<int32_t>>>;

TokenLines random_lines(const std::vector<int64_t>& words, bool with_eos, int64_t vocab_size,
                        const RandomStream& stream) {
  TokenLines lines;
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<int32_t> line;
    for (int64_t w = 0; w < words[i]; ++w) {
      const uint32_t bits = stream.draw(static_cast<uint32_t>(w), 0, static_cast<uint32_t>(i), 0);
      line.push_back(kFirstWord + static_cast<int32_t>(bits % static_cast<uint32_t>(vocab_size - kFirstWord)));
    }
    if (with_eos) line.push_back(kEos);
    lines.add(line);
  }
  return lines;
}

/// The numbers of the examples of batches of these sizes.
std::vector<std::vector<int32_t>> numbered(const std::vector<int64_t>& sizes) {
  std::vector<std::vector<int32_t>> batches;
  int32_t next = 0;
  for (const int64_t size : sizes) {
    batches.emplace_back(static_cast<size_t>(size));
    for (int32_t& example : batches.back()) example = next++;
  }
  return batches;
}

std::vector<std::vector<int32_t>> numbered_sentences(const BenchLengths& lengths) {
  std::vector<int64_t> sizes;
  for (const auto& batch : lengths) sizes.push_back(static_cast<int64_t>(batch.size()));
  return numbered(sizes);
}

/// Column `side` of all examples, minus `without` rows each.
std::vector<int64_t> column(const BenchLengths& lengths, size_t side, int64_t without) {
  std::vector<int64_t> all;
  for (const auto& batch : lengths) {
    for (const auto& example : batch) all.push_back(example.at(side) - without);
  }
  return all;
}

Prepared made_up_pairs(const TrainOptions& train, int64_t vocab_size, const BenchLengths& lengths) {
  Prepared pairs;
  pairs.vocabulary.in_target.assign(static_cast<size_t>(vocab_size), 1);
  pairs.vocabulary.pieces.resize(static_cast<size_t>(vocab_size));
  pairs.train = {
      random_lines(column(lengths, 0, 1), true, vocab_size, RandomStream(train.seed_for_order(), "bench.source")),
      random_lines(column(lengths, 1, 1), false, vocab_size, RandomStream(train.seed_for_order(), "bench.target"))};
  return pairs;
}

std::shared_ptr<const LabelledTokens> made_up_sentences(const TrainOptions& train, int64_t vocab_size,
                                                        const BenchLengths& lengths) {
  constexpr int32_t kClasses = 2;
  auto data = std::make_shared<LabelledTokens>();
  data->vocabulary.resize(static_cast<size_t>(vocab_size));
  data->classes.resize(kClasses);
  data->train.lines =
      random_lines(column(lengths, 0, 0), false, vocab_size, RandomStream(train.seed_for_order(), "bench.source"));
  for (int32_t i = 0; i < data->train.lines.size(); ++i) data->train.labels.push_back(i % kClasses);
  return data;
}

Digits made_up_images(const TrainOptions& train, const BenchLengths& lengths) {
  constexpr int64_t kSide = 28;
  constexpr uint32_t kDigits = 10;
  Digits digits{.height = kSide, .width = kSide, .train = {}, .dev = {}, .test = {}};
  const RandomStream stream(train.seed_for_order(), "bench.pixels");
  for (const int64_t images : column(lengths, 0, 0)) {
    for (int64_t i = 0; i < images; ++i) {
      const auto image = static_cast<uint32_t>(digits.train.labels.size());
      for (uint32_t p = 0; p < kSide * kSide; ++p) {
        digits.train.pixels.push_back(static_cast<uint8_t>(stream.draw(p, 0, image, 0)));
      }
      digits.train.labels.push_back(static_cast<int32_t>(image % kDigits));
    }
  }
  return digits;
}

/// One batch of examples of 24 rows a side.
BenchLengths equal_examples(int64_t tokens, size_t sides) {
  constexpr int32_t kRows = 24;
  const auto count = std::max<size_t>(1, static_cast<size_t>(tokens) / (kRows * sides));
  return {std::vector(count, std::vector(sides, kRows))};
}

/// Those in `file`, with as many sides as `otherwise`, which is taken where no file is named.
BenchLengths lengths_in(const std::filesystem::path& file, BenchLengths otherwise) {
  if (file.empty()) return otherwise;
  const size_t sides = otherwise.at(0).at(0).size();
  BenchLengths lengths;
  try {
    const nlohmann::json batches = nlohmann::json::parse(read_file(file)).at("batches");
    if (sides == 2) {
      lengths = batches.get<BenchLengths>();
    } else {
      for (const auto& batch : batches.get<std::vector<std::vector<int32_t>>>()) {
        lengths.emplace_back();
        for (const int32_t rows : batch) lengths.back().push_back({rows});
      }
    }
  } catch (const nlohmann::json::exception& error) {
    fail("{}: not a list of sentence lengths ({}); expected {{\"batches\": [[{}, …], …]}}", file.string(), error.what(),
         sides == 2 ? "[source rows, target rows]" : "rows");
  }
  if (lengths.empty()) fail("{}: \"batches\" is empty", file.string());
  for (const auto& batch : lengths) {
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
  return lengths;
}

}  // namespace

BenchSubject make_bench_subject(const TaskKind& task, const TrainOptions& train, const ExecutionOptions& execution,
                                int64_t vocab_size, const std::filesystem::path& file) {
  if (const auto* translate = dynamic_cast<const TranslateKind*>(&task)) {
    const BenchLengths lengths = lengths_in(file, equal_examples(translate->options.batch.tokens, 2));
    auto own =
        std::make_unique<Translate>(translate->options, train, execution, made_up_pairs(train, vocab_size, lengths));
    Translate& trained = *own;
    return {std::move(own), trained.train_on(numbered_sentences(lengths)), [&trained] {
              BenchSubject::Decoded decoded;
              for (const auto& output : trained.translations(trained.prepared().train)) {
                ++decoded.sentences;
                decoded.tokens += static_cast<int64_t>(output.size());
              }
              return decoded;
            }};
  }
  if (const auto* classify = dynamic_cast<const ClassifyKind*>(&task)) {
    const BenchLengths lengths = lengths_in(file, equal_examples(classify->options.batch.tokens, 1));
    auto own =
        std::make_unique<Classify>(classify->options, train, execution, made_up_sentences(train, vocab_size, lengths));
    const int64_t batches = own->train_on(numbered_sentences(lengths));
    return {std::move(own), batches};
  }
  if (const auto* digits = dynamic_cast<const DigitsKind*>(&task)) {
    const BenchLengths lengths = lengths_in(file, {{{static_cast<int32_t>(digits->options.batch.images)}}});
    auto own = std::make_unique<DigitsTask>(digits->options, train, execution, made_up_images(train, lengths));
    const int64_t batches = own->train_on(numbered(column(lengths, 0, 0)));
    return {std::move(own), batches};
  }
  fail("bench is not for task = \"{}\"", task.name);
}

}  // namespace tearless::engine
