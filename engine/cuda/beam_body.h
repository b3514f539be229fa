// One position of beam search (kernels.h: BeamStep), one block per sentence:
//   1. thread 0 chooses the hypotheses (for a beam of 4, among some twenty candidates);
//   2. all threads reorder the tables of the chosen hypotheses. A thread reads a position of all of them before it
//      writes any, so this works in place;
//   3. all threads write the inputs of the next position.
#pragma once

#include <cstdint>

#include "engine/cuda/block.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

struct BeamStepSentence {
  static constexpr const char* kName = "beam_step";
  static constexpr int kThreads = 64;
  static constexpr int kMaxBeams = static_cast<int>(kMaxBestTokens) - 1;
  BeamStep a;

  /// A hypothesis extended by one token, or a finished one.
  struct Candidate {
    double score, log_probability;
    int32_t hypothesis;  // that it extends
    int32_t column;      // of the logits: the token; -1: a finished hypothesis, unchanged

    /// Ties go to the earlier hypothesis, then to the smaller token, so that the result is unique.
    TEARLESS_BODY bool better_than(const Candidate& other) const {
      if (score != other.score) return score > other.score;
      if (hypothesis != other.hypothesis) return hypothesis < other.hypothesis;
      return column < other.column;
    }
  };
  struct Chosen {
    Candidate candidates[kMaxBeams];
    BeamHypothesis next[kMaxBeams];
    int32_t count;
    int32_t done;
  };

  Shape shape() const { return {a.sentences, kThreads, sizeof(Chosen)}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t sentence = block.index();
    if (a.done[sentence] != 0) return;
    const int64_t first = sentence * a.beam;
    const int32_t position = a.spans[first].key_count - 1;
    Chosen& chosen = *reinterpret_cast<Chosen*>(block.shared());
    if (block.thread() == 0) choose(first, position, a.limits[sentence], chosen);
    block.sync();

    for (int64_t p = block.thread(); p <= position; p += kThreads) {
      int32_t columns[kMaxBeams], key_rows[kMaxBeams];
      for (int32_t i = 0; i < chosen.count; ++i) {
        const int64_t from = (first + chosen.candidates[i].hypothesis) * a.max_length + p;
        columns[i] = a.columns[from];
        key_rows[i] = a.key_rows[from];
      }
      for (int32_t i = 0; i < chosen.count; ++i) {
        const int32_t column = chosen.candidates[i].column;
        a.columns[(first + i) * a.max_length + p] = p == position && column >= 0 ? column : columns[i];
        a.key_rows[(first + i) * a.max_length + p] = key_rows[i];
      }
    }
    for (int64_t i = block.thread(); i < a.beam; i += kThreads) {
      const int64_t row = first + i;
      BeamHypothesis next = {};
      if (i < chosen.count) next = chosen.next[i];
      a.hypotheses[row] = next;
      if (chosen.done != 0) continue;
      const int64_t cache_row = (position + 1) * a.sentences * a.beam + row;
      a.tokens[row] = next.state == BeamHypothesis::kOpen ? a.token_of_column[chosen.candidates[i].column] : kPadding;
      a.positions[row] = position + 1;
      a.spans[row].key_count = position + 2;
      a.key_rows[row * a.max_length + position + 1] = static_cast<int32_t>(cache_row);
      a.cache_rows[row] = cache_row;
    }
    if (block.thread() == 0 && chosen.done != 0) a.done[sentence] = 1;
  }

 private:
  static constexpr int32_t kPadding = 0;

  TEARLESS_BODY void choose(int64_t first, int32_t position, int32_t limit, Chosen& chosen) const {
    chosen.count = 0;
    for (int32_t h = 0; h < a.beam; ++h) {
      const BeamHypothesis& hypothesis = a.hypotheses[first + h];
      if (hypothesis.state == BeamHypothesis::kFinished) {
        insert(chosen, {hypothesis.score, hypothesis.log_probability, h, -1});
      }
      if (hypothesis.state != BeamHypothesis::kOpen) continue;
      for (int64_t c = 0; c < a.candidates; ++c) {
        const int64_t at = (first + h) * a.candidates + c;
        const int32_t column = a.best_columns[at];
        if (column < 0 || (position == 0 && column == a.eos)) continue;
        const double sum = hypothesis.log_probability + static_cast<double>(a.best_log_p[at]);
        insert(chosen, {sum / a.penalties[position + 1], sum, h, column});
      }
    }
    bool open = false;
    for (int32_t i = 0; i < chosen.count; ++i) {
      const Candidate& c = chosen.candidates[i];
      BeamHypothesis next = a.hypotheses[first + c.hypothesis];
      if (c.column >= 0) {
        next = {c.log_probability, c.score, position + 1,
                c.column == a.eos ? BeamHypothesis::kFinished : BeamHypothesis::kOpen};
      }
      chosen.next[i] = next;
      open = open || next.state == BeamHypothesis::kOpen;
    }
    chosen.done = !open || position + 1 >= limit ? 1 : 0;
  }

  /// Inserts into the sorted list of the best `beam` candidates, if it is among them.
  TEARLESS_BODY void insert(Chosen& chosen, const Candidate& candidate) const {
    if (chosen.count == a.beam && !candidate.better_than(chosen.candidates[chosen.count - 1])) return;
    if (chosen.count < a.beam) ++chosen.count;
    int32_t i = chosen.count - 1;
    for (; i > 0 && candidate.better_than(chosen.candidates[i - 1]); --i)
      chosen.candidates[i] = chosen.candidates[i - 1];
    chosen.candidates[i] = candidate;
  }
};

template <class Runner>
void launch(const BeamStep& a, Runner& runner) {
  runner.run(BeamStepSentence{a});
}

}  // namespace tearless::engine
