// The arc-standard transition system of dependency parsing (Nivre 2004), as CoreNLP's neural parser has it, and its
// static oracle (docs/spec/tasks.md §4.1). Knows nothing about features and networks.
//
//   stack [ROOT … s2 s1], buffer [b1 b2 …]
//   LEFT(l)    s1 → s2, s2 leaves the stack           |stack| > 2
//   RIGHT(l)   s2 → s1, s1 leaves the stack           |stack| > 2, or = 2 with an empty buffer
//   SHIFT      b1 moves to the stack                  the buffer has a word
//
// A tree of n words takes 2n transitions; the last attaches the only word below ROOT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tearless::engine {

/// Which transitions are legal in a configuration that is not final.
enum class Legal : int32_t {
  kShift,       // |stack| ≤ 2 and the buffer has a word
  kRootArc,     // |stack| = 2 with an empty buffer: the last transition
  kArcs,        // |stack| > 2 with an empty buffer: all arcs between words
  kArcsOrShift  // |stack| > 2
};
inline constexpr int32_t kLegals = 4;

/// The transitions of a number of arc labels: LEFT(0), LEFT(1), …, RIGHT(0), …, SHIFT.
struct Transitions {
  int32_t labels = 0;
  /// The label of the arc from ROOT, which no other arc has. With a single label that one is it, and all arcs have it.
  int32_t root_label = 0;

  int32_t left(int32_t label) const { return label; }
  int32_t right(int32_t label) const { return labels + label; }
  int32_t shift() const { return 2 * labels; }
  int32_t count() const { return 2 * labels + 1; }
  /// LEFT of the root label is in the inventory and never legal.
  bool is_legal(Legal legal, int32_t transition) const;
};

/// A partial analysis of a sentence of n words, numbered from 1; 0 is ROOT.
class Configuration {
 public:
  explicit Configuration(int32_t words);

  bool is_final() const { return stack_.size() == 1 && next_ > words_; }

  static constexpr int32_t kNone = -1;
  /// The k-th word from the top of the stack (k = 1: s1), the k-th of the buffer; kNone where there is none.
  int32_t stack(size_t k) const { return k <= stack_.size() ? stack_[stack_.size() - k] : kNone; }
  int32_t buffer(int32_t k) const { return next_ + k - 1 <= words_ ? next_ + k - 1 : kNone; }
  /// The k-th child of a word from its outer end, so far: k = 1 is the leftmost (the rightmost). kNone where there is
  /// none, and of kNone.
  int32_t left_child(int32_t word, size_t k) const { return child(left_, word, k); }
  int32_t right_child(int32_t word, size_t k) const { return child(right_, word, k); }
  /// Of a word, kNone while it has none. The label of its arc.
  int32_t head(int32_t word) const { return heads_[static_cast<size_t>(word)]; }
  int32_t label(int32_t word) const { return labels_[static_cast<size_t>(word)]; }
  int32_t words() const { return words_; }
  int32_t children(int32_t word) const;

  /// REQUIRES: not is_final().
  Legal legal() const;
  /// REQUIRES: the transition is legal (std::logic_error).
  void apply(const Transitions& transitions, int32_t transition);

 private:
  using Children = std::vector<std::vector<int32_t>>;  // of each word, from the inner to the outer end

  static int32_t child(const Children& children, int32_t word, size_t k) {
    if (word == kNone) return kNone;
    const std::vector<int32_t>& own = children[static_cast<size_t>(word)];
    return k <= own.size() ? own[own.size() - k] : kNone;
  }
  void attach(int32_t child, int32_t head, int32_t label);

  int32_t words_, next_ = 1;
  std::vector<int32_t> stack_ = {0};
  std::vector<int32_t> heads_, labels_;  // [words + 1]
  Children left_, right_;
};

/// The transition that a gold tree asks for: `heads` and `labels` [words], word i at i - 1. REQUIRES: the tree is
/// projective, and only transitions of the oracle were applied.
int32_t oracle(const Configuration& configuration, const Transitions& transitions, const std::vector<int32_t>& heads,
               const std::vector<int32_t>& labels);

}  // namespace tearless::engine
