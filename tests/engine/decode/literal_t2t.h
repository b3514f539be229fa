// T2T's search as docs/spec/training.md §4.4 has it, over all extensions: a batch of sentences that ends together. A
// sentence that ends by itself is a batch of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/decode/beam.h"

namespace tearless::engine::test {

struct LiteralSentence {
  /// log p of every next token after these.
  std::function<std::vector<float>(const std::vector<int32_t>&)> after;
  int64_t limit;
};

struct LiteralOutcome {
  std::vector<SearchOutput> ranked;  // all of its outputs, EOS removed, the best first
  int64_t positions = 0;             // of the batch
};

inline std::vector<LiteralOutcome> literal_t2t(const std::vector<LiteralSentence>& batch, const DecodeOptions& options,
                                               int32_t eos) {
  struct Entry {
    std::vector<int32_t> tokens;
    double sum = 0, score = 0;
  };
  struct State {
    std::vector<Entry> alive = {Entry{}}, finished;
  };
  const auto width = static_cast<size_t>(options.beam);
  const auto keep = [](std::vector<Entry>& entries, size_t count) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.score > b.score; });
    if (entries.size() > count) entries.resize(count);
  };
  std::vector<State> states(batch.size());
  const auto rule_is_met = [&](size_t s) {
    const State& state = states[s];
    if (state.finished.empty()) return false;
    if (state.alive.empty()) return true;
    double worst = 0;
    for (const Entry& e : state.finished) worst = std::min(worst, e.score);
    return worst > state.alive.front().sum / length_penalty(options, batch[s].limit);
  };
  const auto goes_on = [&](int64_t time) {
    bool met = true, time_is_left = false;
    for (size_t s = 0; s < batch.size(); ++s) {
      met = met && rule_is_met(s);
      time_is_left = time_is_left || time < batch[s].limit;
    }
    return !met && time_is_left;
  };
  int64_t time = 0;
  for (; goes_on(time); ++time) {
    for (size_t s = 0; s < batch.size(); ++s) {
      State& state = states[s];
      std::vector<Entry> candidates;
      for (const Entry& e : state.alive) {
        const std::vector<float> log_p = batch[s].after(e.tokens);
        for (size_t v = 0; v < log_p.size(); ++v) {
          if (time == 0 && static_cast<int32_t>(v) == eos) continue;
          Entry next = e;
          next.tokens.push_back(static_cast<int32_t>(v));
          next.sum += static_cast<double>(log_p[v]);
          next.score = next.sum / length_penalty(options, time + 1);
          candidates.push_back(next);
        }
      }
      keep(candidates, 2 * width);
      state.alive.clear();
      for (const Entry& e : candidates) {
        const bool ends = e.tokens.back() == eos || time >= batch[s].limit;
        (ends ? state.finished : state.alive).push_back(e);
      }
      keep(state.alive, width);
      keep(state.finished, width);
    }
  }
  std::vector<LiteralOutcome> outcomes;
  for (const State& state : states) {
    outcomes.push_back({.ranked = {}, .positions = time});
    for (Entry e : state.finished.empty() ? state.alive : state.finished) {
      if (!e.tokens.empty() && e.tokens.back() == eos) e.tokens.pop_back();
      outcomes.back().ranked.push_back({e.tokens, e.score});
    }
  }
  return outcomes;
}

}  // namespace tearless::engine::test
