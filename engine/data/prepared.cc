#include "engine/data/prepared.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "base/words.h"
#include "engine/data/corpus.h"
#include "engine/data/text_lines.h"
#include "engine/data/token_file.h"

namespace tearless::engine {
namespace fs = std::filesystem;
namespace {

fs::path token_file(const std::string& key) { return prepared_folder(key) / "tokens.bin"; }

/// Encodes the training text before the vocabulary is known: pieces get provisional numbers in order of appearance.
class PieceCounter {
 public:
  TokenLines encode(const std::vector<std::string>& lines, const Prepared& corpus, Side side) {
    TokenLines out;
    std::vector<int32_t> ids;
    for (const std::string& line : lines) {
      ids.clear();
      for (std::string& piece : corpus.subwords_of(side).encode(line, side)) {
        const int32_t id = number(std::move(piece));
        Piece& counted = *pieces_[static_cast<size_t>(id)];
        ++counted.second.count;
        if (side == Side::kTarget) counted.second.in_target = true;
        ids.push_back(id);
      }
      out.add(ids);
    }
    return out;
  }

  void add_unseen(std::vector<std::string> pieces) {
    for (std::string& piece : pieces) number(std::move(piece));
  }

  /// The vocabulary of the pieces that occur `min_count` times or more, and the final number of each provisional one,
  /// UNK for the others. Throws UserError if none is left.
  std::pair<Vocabulary, std::vector<int32_t>> finish(int64_t min_count) const {
    std::vector<const Piece*> order;
    for (const Piece* piece : pieces_) {
      if (min_count <= 1 || piece->second.count >= min_count) order.push_back(piece);
    }
    if (order.empty())
      fail("text.min_count = {} leaves no piece: all of the training text are rarer; lower it", min_count);
    std::sort(order.begin(), order.end(), [](const Piece* a, const Piece* b) {
      return a->second.count != b->second.count ? a->second.count > b->second.count : a->first < b->first;
    });
    Vocabulary vocabulary{{"<pad>", "<bos>", "<eos>", "<unk>"}, {0, 0, 1, 1}};
    std::vector<int32_t> final_number(pieces_.size(), kUnk);
    for (const Piece* piece : order) {
      final_number[static_cast<size_t>(piece->second.id)] = static_cast<int32_t>(vocabulary.size());
      vocabulary.pieces.push_back(piece->first);
      vocabulary.in_target.push_back(piece->second.in_target);
    }
    return {std::move(vocabulary), std::move(final_number)};
  }

 private:
  struct Use {
    int32_t id;
    int64_t count = 0;
    bool in_target = false;
  };
  using Piece = std::pair<const std::string, Use>;

  int32_t number(std::string piece) {
    const auto id = static_cast<int32_t>(pieces_.size());
    const auto [it, is_new] = uses_.try_emplace(std::move(piece), Use{id});
    if (is_new) pieces_.push_back(&*it);
    return it->second.id;
  }

  std::unordered_map<std::string, Use> uses_;
  std::vector<Piece*> pieces_;  // by provisional number
};

TokenLines encode_lines(std::span<const std::string> lines, const Prepared& corpus, Side side,
                        const PieceNumbers& numbers) {
  TokenLines out;
  std::vector<int32_t> ids;
  for (const std::string& line : lines) {
    ids.clear();
    for (const std::string& piece : corpus.subwords_of(side).encode(line, side)) ids.push_back(numbers.of(piece));
    if (side == Side::kSource) ids.push_back(kEos);
    out.add(ids);
  }
  return out;
}

/// Replaces provisional numbers by final ones and, on the source side, appends EOS to each line.
TokenLines renumbered(const TokenLines& lines, const std::vector<int32_t>& final_number, Side side) {
  TokenLines out;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < lines.size(); ++i) {
    ids.clear();
    for (const int32_t id : lines[i]) ids.push_back(final_number[static_cast<size_t>(id)]);
    if (side == Side::kSource) ids.push_back(kEos);
    out.add(ids);
  }
  return out;
}

void refuse_overlong(const TokenLines& tokens, std::span<const std::string> lines, const std::string& file) {
  for (int64_t i = 0; i < tokens.size(); ++i) {
    if (tokens.length(i) <= static_cast<int64_t>(kMaxEvaluatedTokens)) continue;
    fail("{}:{} has {} words, {} subwords, and a line of dev or test may have {} subwords; {}", file, i + 1,
         split_words(lines[static_cast<size_t>(i)]).size(), tokens.length(i), kMaxEvaluatedTokens, kOverlongAdvice);
  }
}

void refuse_overlong(const ParallelTokens& tokens, const ParallelText& text, const std::vector<std::string>& files) {
  refuse_overlong(tokens.source, text.source, files.at(0));
  refuse_overlong(tokens.target, text.target, files.at(1));
}

Prepared build(const DataOptions& data, const DataFiles& files, const TextOptions& text, const Say& say) {
  const ParallelText whole = read_parallel(files.sets[0]);
  const size_t all_pairs = whole.source.size();
  const ParallelText train = training_pairs(whole, text.max_words, data);
  ParallelText dev = read_parallel(files.sets[1]);
  ParallelText test = read_parallel(files.sets[2]);
  const std::vector<const ParallelText*> sets = {&whole, &dev, &test};
  for (size_t i = 0; i < sets.size(); ++i) refuse_subword_marks(text.kind, *sets[i], files.sets[i].files());
  say(fmt::format("preparing {}: {} of {} training pairs, {} dev, {} test; learning subwords ({})", data.name,
                  train.source.size(), all_pairs, dev.source.size(), test.source.size(),
                  kTextKindNames[static_cast<size_t>(text.kind)]));

  Prepared out;
  if (text.learns_per_side()) {
    out.source_subwords = learn_subwords(text, {train.source, {}});
    out.subwords = learn_subwords(text, {{}, train.target});
  } else {
    out.subwords = learn_subwords(text, train);
  }
  const bool joint = text.vocabulary == VocabularyKind::kJoint;
  PieceCounter counter, of_source;
  const TokenLines source = (joint ? counter : of_source).encode(train.source, out, Side::kSource);
  const TokenLines target = counter.encode(train.target, out, Side::kTarget);
  // A vocabulary has all pieces of its model, unless it is one side's and the model both sides'.
  if (joint || out.source_subwords) counter.add_unseen(out.subwords->spare_pieces());
  if (out.source_subwords) (joint ? counter : of_source).add_unseen(out.source_subwords->spare_pieces());
  auto [vocabulary, final_number] = counter.finish(text.min_count);
  out.vocabulary = std::move(vocabulary);
  std::vector<int32_t> source_number = final_number;
  if (!joint) {
    auto [source_vocabulary, numbers] = of_source.finish(text.min_count);
    out.vocabulary.source_pieces = std::move(source_vocabulary.pieces);
    source_number = std::move(numbers);
  }
  out.train = {renumbered(source, source_number, Side::kSource), renumbered(target, final_number, Side::kTarget)};

  const PieceNumbers source_numbers(out.vocabulary.pieces_of(Side::kSource)), numbers(out.vocabulary.pieces);
  const auto encode = [&](const ParallelText& pairs) {
    return ParallelTokens{encode_lines(pairs.source, out, Side::kSource, source_numbers),
                          encode_lines(pairs.target, out, Side::kTarget, numbers)};
  };
  out.dev = encode(dev);
  out.test = encode(test);
  refuse_overlong(out.dev, dev, files.sets[1].files());
  refuse_overlong(out.test, test, files.sets[2].files());
  out.dev_reference = reference_lines(std::move(dev.target), text.kind);
  out.test_reference = reference_lines(std::move(test.target), text.kind);
  return out;
}

/// The cached corpus, or nothing; if the entry is damaged, `damage` says how.
std::optional<Prepared> load(const std::string& key, TextKind kind, std::string& damage) {
  if (!is_prepared(key)) return std::nullopt;
  try {
    return read_token_file(token_file(key), kind);
  } catch (const std::exception& error) {
    damage = error.what();
    return std::nullopt;
  }
}

void publish(const Prepared& prepared, const std::string& key) {
  const fs::path folder = prepared_folder(key);
  const fs::path temporary = folder.string() + ".partial";  // the lock is held, so one name suffices
  for (const fs::path& old : {temporary, folder}) remove_recursively(old);
  make_folders(temporary);
  write_atomically(temporary / "tokens.bin", token_file_bytes(prepared));
  publish_folder(temporary, folder);
}

}  // namespace

std::string Prepared::to_text(std::span<const int32_t> ids, Side side) const {
  std::vector<std::string> spelled;
  for (const int32_t id : ids) {
    if (id == kPad || id == kBos || id == kEos) continue;
    spelled.push_back(vocabulary.pieces_of(side).at(static_cast<size_t>(id)));
  }
  return subwords_of(side).join(spelled);
}

ParallelTokens Prepared::encode_source(std::span<const std::string> lines) const {
  TokenLines empty;
  empty.offsets.assign(lines.size() + 1, 0);
  return {encode_lines(lines, *this, Side::kSource, PieceNumbers(vocabulary.pieces_of(Side::kSource))),
          std::move(empty)};
}

ParallelTokens encode_file(const Prepared& corpus, TextKind kind, std::span<const std::string> lines,
                           const std::string& file) {
  refuse_subword_marks(kind, lines, file);
  ParallelTokens tokens = corpus.encode_source(lines);
  refuse_overlong(tokens.source, lines, file);
  return tokens;
}

std::vector<std::string> reference_lines(std::vector<std::string> lines, TextKind kind) {
  if (kind == TextKind::kSegmented) {
    const Segmented segmented;
    for (std::string& line : lines) line = segmented.join(segmented.encode(line, Side::kTarget));
  }
  return lines;
}

std::string preparation_key(const DataOptions& data, const TextOptions& text) {
  require(!data.train_sha256.empty() && !data.dev_sha256.empty() && !data.test_sha256.empty(),
          "prepared data: a key without the checksums of the files");
  DataOptions described_data = data;
  TextOptions described_text = text;
  const std::string settings = canonical_settings(Identity::kResult, [&](SettingsVisitor& v) {
    v.table("data", described_data);
    v.table("text", described_text);
  });
  return sha256(fmt::format("format = {}\n{}", kTokenFileFormat, settings)).substr(0, 32);
}

fs::path prepared_folder(const std::string& key) {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  fs::path cache = variable("TEARLESS_CACHE");
  if (cache.empty() && !variable("XDG_CACHE_HOME").empty()) cache = fs::path(variable("XDG_CACHE_HOME")) / "tearless";
  if (cache.empty() && !variable("HOME").empty()) cache = fs::path(variable("HOME")) / ".cache" / "tearless";
  if (cache.empty()) fail("there is no folder for prepared corpora; set TEARLESS_CACHE, XDG_CACHE_HOME or HOME");
  return cache / "prepared" / key;
}

bool is_prepared(const std::string& key) {
  std::error_code unreachable;  // treated as absent; creating the folder reports the error
  return fs::exists(token_file(key), unreachable);
}

std::optional<VocabularySizes> prepared_vocabulary_sizes(const std::string& key) {
  return token_file_vocabulary_sizes(token_file(key));
}

Prepared prepare(DataOptions data, const TextOptions& text, const Say& say) {
  const DataFiles files = data_files(data);
  files.check();
  const std::string key = preparation_key(data, text);
  std::string damage;
  if (auto found = load(key, text.kind, damage)) return std::move(*found);

  make_folders(prepared_folder(key).parent_path());
  const LockFile lock = LockFile::acquire(prepared_folder(key).string() + ".lock");
  damage.clear();
  if (auto found = load(key, text.kind, damage)) return std::move(*found);  // another run prepared it meanwhile
  if (!damage.empty()) {
    say(fmt::format("{} is damaged ({}); preparing the corpus again", token_file(key).string(), damage));
  }
  files.require();
  Prepared prepared = build(data, files, text, say);
  publish(prepared, key);
  return prepared;
}

}  // namespace tearless::engine
