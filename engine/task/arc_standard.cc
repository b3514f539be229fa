#include "engine/task/arc_standard.h"

#include <algorithm>

#include "base/error.h"

namespace tearless::engine {

Configuration::Configuration(int32_t words)
    : words_(words),
      heads_(static_cast<size_t>(words) + 1, kNone),
      labels_(static_cast<size_t>(words) + 1, kNone),
      left_(static_cast<size_t>(words) + 1),
      right_(static_cast<size_t>(words) + 1) {}

int32_t Configuration::children(int32_t word) const {
  const auto own = static_cast<size_t>(word);
  return static_cast<int32_t>(left_[own].size() + right_[own].size());
}

bool Transitions::is_legal(Legal legal, int32_t transition) const {
  if (transition == shift()) return legal == Legal::kShift || legal == Legal::kArcsOrShift;
  if (legal == Legal::kShift) return false;
  if (legal == Legal::kRootArc) return transition == right(root_label);
  return labels == 1 || (transition != left(root_label) && transition != right(root_label));
}

Legal Configuration::legal() const {
  const bool has_buffer = next_ <= words_;
  if (stack_.size() > 2) return has_buffer ? Legal::kArcsOrShift : Legal::kArcs;
  return has_buffer ? Legal::kShift : Legal::kRootArc;
}

void Configuration::attach(int32_t child, int32_t head, int32_t label) {
  heads_[static_cast<size_t>(child)] = head;
  labels_[static_cast<size_t>(child)] = label;
  (child < head ? left_ : right_)[static_cast<size_t>(head)].push_back(child);
}

void Configuration::apply(const Transitions& transitions, int32_t transition) {
  require(!is_final() && transitions.is_legal(legal(), transition), "arc-standard: a transition that is not legal");
  if (transition == transitions.shift()) {
    stack_.push_back(next_++);
    return;
  }
  const int32_t first = stack(1), second = stack(2);
  if (transition < transitions.labels) {
    attach(second, first, transition);
    stack_.erase(stack_.end() - 2);
  } else {
    attach(first, second, transition - transitions.labels);
    stack_.pop_back();
  }
}

int32_t oracle(const Configuration& configuration, const Transitions& transitions, const std::vector<int32_t>& heads,
               const std::vector<int32_t>& labels) {
  const int32_t first = configuration.stack(1), second = configuration.stack(2);
  const auto head_of = [&](int32_t word) { return heads[static_cast<size_t>(word - 1)]; };
  const auto label_of = [&](int32_t word) { return labels[static_cast<size_t>(word - 1)]; };
  if (second > 0 && head_of(second) == first) return transitions.left(label_of(second));
  if (second >= 0 && head_of(first) == second) {
    const auto children = static_cast<int32_t>(std::ranges::count(heads, first));
    if (configuration.children(first) == children) return transitions.right(label_of(first));
  }
  return transitions.shift();
}

}  // namespace tearless::engine
