// derived.kind = "corpus": each count is that of a count made here of the same lines, whatever became of the training.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <sstream>

#include "base/error.h"
#include "engine/data/batches.h"
#include "engine/data/raw_files.h"
#include "engine/run/attempt.h"
#include "tests/engine/run/small_digits.h"
#include "tests/engine/run/small_runs.h"
#include "tests/engine/run/small_text.h"
#include "tests/engine/run/small_treebank.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"

namespace tearless::engine::corpus_counts_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using tearless::test::error_of;
using test::read_text;
using test::Settings;
using test::with;
using test::write_text;
using testing::AllOf;
using testing::HasSubstr;

using Words = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

const Settings kCounts = {{"derived.kind", "corpus"}, {"derived.name", "counts"}};

Settings one_update() {
  return {{"model.encoder_layers", 1}, {"model.decoder_layers", 1}, {"model.d_model", 8},
          {"model.d_ff", 8},           {"model.heads", 1},          {"train.max_updates", 1},
          {"train.epoch_updates", 9},  {"decode.max_length", 2},    {"train.schedule.warmup_updates", 1}};
}

class CorpusCounts : public testing::Test {
 protected:
  RunDirectory trained(const Settings& settings, bool smoke = false) const {
    RunDirectory run = runs_.made(runs_.asked(settings, {}, smoke));
    attempt_run(run.root());
    return run;
  }
  /// What the derived run leaves of a run that was trained, without its name. Its names must be those that check tells.
  json counted(const Settings& settings, bool smoke = false) const {
    const json answer = runs_.asked(settings, {kCounts}, smoke);
    const RunDirectory run = runs_.made(answer);
    EXPECT_EQ(attempt_run(run.root()), kExitDone);
    json counts = json::object();
    std::set<std::string> names;
    const json scores = json::parse(read_text(run.scores()));
    for (const auto& [name, value] : scores.items()) {
      names.insert(name);
      EXPECT_TRUE(name.starts_with("counts.")) << name;
      counts[name.substr(7)] = value.get<int64_t>();
    }
    EXPECT_EQ(answer.at("scores").get<std::set<std::string>>(), names);
    return counts;
  }

  const test::InMemory in_memory_;
  test::SmallRuns runs_;
};

Words words_of(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

struct Side {
  int64_t words = 0, subwords = 0;
  std::map<std::string, int> pieces;
  std::vector<int64_t> lengths;  // of sentences, in subwords
};

/// The counts of both sides, with `others`.
json with_sides(const Side& source, const Side& target, json others) {
  others.update({{"train.source_words", source.words},
                 {"train.target_words", target.words},
                 {"train.words", source.words + target.words},
                 {"train.source_subwords", source.subwords},
                 {"train.target_subwords", target.subwords},
                 {"train.subwords", source.subwords + target.subwords},
                 {"source_types", source.pieces.size()},
                 {"target_types", target.pieces.size()}});
  return others;
}

Side side_of(const Words& lines, const std::function<Words(const std::string&)>& pieces_of,
             const std::function<int64_t(const Words&)>& count_words) {
  Side side;
  for (const std::string& line : lines) {
    int64_t length = 0;
    for (const std::string& word : words_of(line)) {
      for (const std::string& piece : pieces_of(word)) ++length, ++side.pieces[piece];
    }
    side.words += count_words(words_of(line));
    side.subwords += length;
    side.lengths.push_back(length);
  }
  return side;
}

/// Of sentences by their source length, all different. EOS and BOS are counted.
int64_t batches_of(const Side& source, const Side& target, int64_t tokens, bool sum) {
  std::map<int64_t, int64_t> by_source;
  for (size_t i = 0; i < source.lengths.size(); ++i) by_source[source.lengths[i] + 1] = target.lengths[i] + 1;
  EXPECT_EQ(by_source.size(), source.lengths.size());
  int64_t batches = 1, size = 0, longest_source = 0, longest_target = 0;
  for (const auto& [s, t] : by_source) {
    const int64_t longer_source = std::max(longest_source, s), longer_target = std::max(longest_target, t);
    if (size > 0 &&
        (size + 1) * (sum ? longer_source + longer_target : std::max(longer_source, longer_target)) > tokens) {
      ++batches;
      size = 1;
      longest_source = s;
      longest_target = t;
    } else {
      ++size;
      longest_source = longer_source;
      longest_target = longer_target;
    }
  }
  return batches;
}

// One merge is learned, of l and o: a word is its letters, of which each l before an o is one piece with it.
TEST_F(CorpusCounts, OfBpeAreThoseOfTheLinesThatAreTrainedOn) {
  const Pairs used = {{"low low", "hlot lov"},
                      {"slow  lown", "lou"},  // two spaces
                      {"lowe lom flow glow", "ab"},
                      {"a", "lolol lob loc"}};
  const Pairs unused = {{"", "lol"}, {"a b c d e", "f"}, {"f", "a b c d e"}, {"lol", " "}};
  Pairs train = used;
  train.insert(train.begin() + 2, unused.begin(), unused.end());
  runs_.write("train", train);
  runs_.write("dev", {{"low", "lot"}, {"", ""}, {"a b c d e f", "lol"}});
  runs_.write("test", {{"low", "lot"}, {"zebra", "lot"}});

  const auto pieces_of = [](const std::string& word) {
    Words pieces;
    for (size_t i = 0; i < word.size(); ++i) {
      const bool merged = word[i] == 'l' && i + 2 < word.size() && word[i + 1] == 'o';
      pieces.push_back(merged ? "lo" : word.substr(i, 1));
      i += merged;
      if (i + 1 < word.size()) pieces.back() += "@@";
    }
    return pieces;
  };
  const auto count = [](const Words& words) { return std::ssize(words); };
  Words sources, targets;
  for (const auto& [source, target] : used) sources.push_back(source), targets.push_back(target);
  const Side source = side_of(sources, pieces_of, count), target = side_of(targets, pieces_of, count);
  std::map<std::string, int> joint = source.pieces;
  joint.insert(target.pieces.begin(), target.pieces.end());

  std::set<int64_t> sizes;
  for (const int64_t tokens : {20, 30, 60}) {
    const Settings settings =
        with(with(test::corpus_settings(), one_update()),
             {{"text.kind", "bpe"}, {"text.merges", 1}, {"text.max_words", 4}, {"train.batch.tokens", tokens}});
    trained(settings);
    const int64_t batches = batches_of(source, target, tokens, /*sum=*/false);
    sizes.insert(batches);
    EXPECT_EQ(counted(settings), with_sides(source, target,
                                            {{"train.sentences", 4},
                                             {"dev.sentences", 3},
                                             {"test.sentences", 2},
                                             {"source_vocabulary", joint.size() + 4},
                                             {"target_vocabulary", joint.size() + 4},
                                             {"train.batches", batches}}));
  }
  EXPECT_EQ(sizes.size(), 3u);
}

// Each side has a vocabulary of its own, without the pieces that occur once: some of them begin a word.
TEST_F(CorpusCounts, OfSegmentedTextAreOfTheWordsThatWereCut) {
  const Pairs used = {{"a@@ b c", "x y"}, {"a@@ d", "x@@ x"}, {"c", "x@@ y@@ x y"}, {"rare@@ b a@@ b", "z@@ y"}};
  Pairs train = used;
  train.insert(train.begin() + 1, {"a@@ b a@@ b c", "x y"});  // five words as the file has them
  runs_.write("train", train);
  for (const char* set : {"dev", "test"}) runs_.write(set, {{"a@@ b", "x"}});

  const auto pieces_of = [](const std::string& word) { return Words{word}; };
  const auto count = [](const Words& words) {
    return std::ranges::count_if(words, [](const std::string& word) { return !word.ends_with("@@"); });
  };
  Words sources, targets;
  for (const auto& [source, target] : used) sources.push_back(source), targets.push_back(target);
  Side source = side_of(sources, pieces_of, count), target = side_of(targets, pieces_of, count);
  for (Side* side : {&source, &target}) std::erase_if(side->pieces, [](const auto& piece) { return piece.second < 2; });
  EXPECT_FALSE(source.pieces.contains("rare@@"));

  const Settings settings = with(with(test::corpus_settings(), one_update()), {{"text.kind", "segmented"},
                                                                               {"text.max_words", 4},
                                                                               {"text.min_count", 2},
                                                                               {"text.vocabulary", "per_side"},
                                                                               {"model.tied_embeddings", "none"},
                                                                               {"train.batch.count", "padded_sum"},
                                                                               {"train.batch.tokens", 20}});
  trained(settings);
  const int64_t batches = batches_of(source, target, 20, /*sum=*/true);
  EXPECT_NE(batches, batches_of(source, target, 20, /*sum=*/false));
  EXPECT_EQ(counted(settings), with_sides(source, target,
                                          {{"train.sentences", 4},
                                           {"dev.sentences", 1},
                                           {"test.sentences", 1},
                                           {"source_vocabulary", source.pieces.size() + 4},
                                           {"target_vocabulary", target.pieces.size() + 4},
                                           {"train.batches", batches}}));
}

/// A small corpus of segmented text, whose lines differ in the length of one side alone.
Settings ties(const test::SmallRuns& runs) {
  Pairs train;
  for (int i = 1; i <= 16; ++i) {
    train.emplace_back("a b", "x");
    for (int k = 1; k < (i + 1) / 2; ++k) train.back().second += " y";
  }
  runs.write("train", train);
  for (const char* set : {"dev", "test"}) runs.write(set, {{"a", "x"}});
  return with(with(test::corpus_settings(), one_update()), {{"text.kind", "segmented"}, {"train.batch.tokens", 27}});
}

TEST_F(CorpusCounts, BatchesAreThoseOfTheFirstPassOfTheRun) {
  const Settings settings = ties(runs_);
  std::set<int64_t> found;
  for (const int seed : {1, 2, 3, 4, 5, 6, 7}) {
    const Settings own = with(settings, {{"train.seed", 9}, {"train.order_seed", seed}});
    const RunOptions options = runs_.options(own);
    const TranslateOptions& task = test::translation(options);
    const Prepared corpus = prepare(task.data, task.text, [](const std::string&) {});
    trained(own);
    const int64_t batches = std::ssize(cut_batches(corpus.train, task.batch, static_cast<uint32_t>(seed), /*pass=*/0));
    EXPECT_EQ(counted(own).at("train.batches"), batches) << seed;
    found.insert(batches);
  }
  EXPECT_GT(found.size(), 1u) << "these seeds cut the corpus alike: choose others";
}

TEST_F(CorpusCounts, OfASmokeRunAreThoseOfTheWholeCorpus) {
  const Settings settings = ties(runs_);
  trained(settings);
  trained(settings, /*smoke=*/true);
  EXPECT_NE(runs_.asked(settings, {kCounts}).at("id"), runs_.asked(settings, {kCounts}, /*smoke=*/true).at("id"));
  EXPECT_EQ(counted(settings, /*smoke=*/true), counted(settings));
}

TEST_F(CorpusCounts, OfLabelledLinesHaveOneSide) {
  runs_.write_labelled("train", {{"A film a", 0}, {"a good  film", 1}, {"one two three four", 1}, {"a bore", 0}});
  runs_.write_labelled("dev", {{"a", 0}, {"a b c d e", 1}});
  runs_.write_labelled("test", {{"good", 1}});
  for (const auto& [tokens, batches] : std::map<int64_t, int64_t>{{9, 1}, {8, 2}, {5, 3}}) {
    const Settings settings = with(test::labelled_settings(), {{"model.layers", 1},
                                                               {"model.d_model", 8},
                                                               {"model.d_ff", 8},
                                                               {"model.heads", 1},
                                                               {"text.max_words", 3},
                                                               {"train.max_updates", 1},
                                                               {"train.batch.tokens", tokens}});
    trained(settings);
    // Of the words of three sentences, a and film occur twice.
    EXPECT_EQ(counted(settings), (json{{"train.sentences", 3},
                                       {"dev.sentences", 2},
                                       {"test.sentences", 1},
                                       {"train.words", 8},
                                       {"types", 2},
                                       {"vocabulary", 6},
                                       {"train.batches", batches}}));
  }
}

// With one split for each seed each run counts its own.
TEST_F(CorpusCounts, AreOfTheSplitOfTheRun) {
  std::string lines;
  for (int i = 0; i < 12; ++i) {
    lines += "a";
    for (int k = 0; k < i * i; ++k) lines += " b";
    lines += "\n";
  }
  for (const char* name : {"bad", "good"}) write_text(runs_.folder() / (std::string("all.") + name), lines);
  const Settings split = with(test::labelled_settings(), {{"data.form", "class_files"},
                                                          {"data.train", "all"},
                                                          {"data.dev_count", 5},
                                                          {"data.test_count", 6},
                                                          {"model.layers", 1},
                                                          {"model.d_model", 8},
                                                          {"model.d_ff", 8},
                                                          {"model.heads", 1},
                                                          {"train.max_updates", 1}});
  std::set<int64_t> words;
  for (const int seed : {1, 2}) {
    const Settings own = with(split, {{"train.seed", seed}, {"data.split_seed", "train.seed"}});
    const Settings same = with(split, {{"data.split_seed", seed}});
    trained(own);
    trained(same);
    const json counts = counted(own);
    EXPECT_EQ(counts.at("train.sentences"), 13);
    EXPECT_EQ(counts.at("train.words"), counted(same).at("train.words"));
    words.insert(counts.at("train.words").get<int64_t>());
  }
  EXPECT_EQ(words.size(), 2u);
}

TEST_F(CorpusCounts, OfImagesAreImagesAndBatches) {
  test::write_digits(runs_.folder());
  for (const auto& [images, batches] : std::map<int64_t, int64_t>{{16, 2}, {8, 3}, {7, 4}}) {
    const Settings settings = with(test::small_digits(), {{"train.batch.images", images}, {"train.max_updates", 1}});
    trained(settings);
    EXPECT_EQ(counted(settings), (json{{"train.images", 24},  // 36 less the dev set
                                       {"dev.images", 12},
                                       {"test.images", 11},
                                       {"train.batches", batches}}));
  }
}

TEST_F(CorpusCounts, OfTreesAreSentencesWordsAndTransitions) {
  test::write_treebank(runs_.folder());
  const Settings settings = with(test::small_parser(), {{"train.max_updates", 1}});
  trained(settings);
  // Of 24 sentences 3 are not projective; the others have 6, 3 or 5 words.
  int64_t words = 0;
  for (int i = 0; i < 24; ++i) {
    if (i % 7 != 6) words += i % 3 == 0 ? 6 : i % 3 == 1 ? 3 : 5;
  }
  EXPECT_EQ(counted(settings), (json{{"train.sentences", 21},
                                     {"train.left_out", 3},
                                     {"dev.sentences", 9},
                                     {"test.sentences", 8},
                                     {"train.words", words},
                                     {"train.examples", 2 * words},
                                     {"train.batches", (2 * words + 59) / 60},
                                     {"labels", 7},
                                     {"vocabulary", 35}}));
}

TEST_F(CorpusCounts, OfTextAreItsSymbols) {
  test::write_texts(runs_.folder());
  for (const bool newlines : {false, true}) {
    const Settings settings =
        with(test::small_language_model(), {{"train.max_updates", 1}, {"text.newlines", newlines}});
    trained(settings);
    const int64_t train = newlines ? 160 + 14 : 160;  // in two streams, of which the first symbol is never predicted
    EXPECT_EQ(counted(settings), (json{{"train.symbols", train},
                                       {"dev.symbols", newlines ? 75 + 6 : 75},
                                       {"test.symbols", newlines ? 70 + 6 : 70},
                                       {"train.batches", (train / 2 - 1 + 7) / 8},
                                       {"types", newlines ? 6 : 5}}));
  }
}

TEST_F(CorpusCounts, NeedNothingThatTheTrainingLeft) {
  const Settings settings = ties(runs_);
  const RunDirectory run = trained(settings);
  const json before = counted(settings);
  fs::remove(run.model());
  fs::remove(run.scores());
  fs::remove_all(run.outputs());
  EXPECT_EQ(counted(settings), before);

  const Settings diverging = with(settings, {{"train.diverged_loss", 1e-3}});
  const RunDirectory diverged = trained(diverging);
  ASSERT_EQ(read_done(diverged)->outcome, "diverged");
  EXPECT_EQ(counted(diverging), before);
}

TEST_F(CorpusCounts, NeedNoDevice) {
  const Settings settings = with(ties(runs_), {{"run.device", "cuda"}, {"run.threads", 2}});
  const json answer = runs_.asked(settings, {kCounts});
  EXPECT_EQ(runs_.asked(settings, {}).at("device"), "cuda");
  EXPECT_EQ(answer.at("device"), "cpu");
  EXPECT_EQ(answer.at("threads"), 1);
  EXPECT_TRUE(answer.at("memory_bytes").is_null());
  EXPECT_EQ(answer.at("updates"), 0);
}

TEST_F(CorpusCounts, WaitForAFileThatIsGoneOrChanged) {
  const Settings settings = ties(runs_);
  trained(settings);
  const RunDirectory run = runs_.made(runs_.asked(settings, {kCounts}));
  const fs::path file = runs_.folder() / "train.src";
  const std::string good = read_text(file);
  fs::remove(file);
  EXPECT_THAT(error_of<DataError>([&] { attempt_run(run.root()); }), HasSubstr("train.src"));
  write_text(file, "a\n" + good.substr(good.find('\n') + 1));
  EXPECT_THAT(error_of<DataError>([&] { attempt_run(run.root()); }), HasSubstr("that this run was planned with"));
  EXPECT_FALSE(fs::exists(run.scores()));
  write_text(file, good);
  EXPECT_EQ(attempt_run(run.root()), kExitDone);
}

TEST_F(CorpusCounts, AreOfATrainedRunAndHaveNoSettings) {
  const Settings settings = ties(runs_);
  const auto refused = [&](const std::vector<Settings>& chain) {
    return runs_.asked(settings, chain).value("error", "");
  };
  const Settings decoding = {{"derived.kind", "decode"}, {"derived.name", "again"}};
  EXPECT_THAT(refused({decoding, kCounts}),
              AllOf(HasSubstr("counts the data of a trained run"), HasSubstr("cannot derive from another")));
  EXPECT_THAT(refused({kCounts, {{"derived.kind", "score"}, {"derived.name", "mark"}}}),
              HasSubstr("scores hypotheses, and a corpus has none"));
  EXPECT_THAT(refused({kCounts, decoding}), HasSubstr("cannot derive from another"));
  EXPECT_THAT(refused({with(kCounts, {{"derived.set", "dev"}})}), HasSubstr("unknown setting \"derived.set\""));
}

}  // namespace
}  // namespace tearless::engine::corpus_counts_test
