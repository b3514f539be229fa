#include "engine/ops/kernel_variants.h"

#include <array>
#include <sstream>
#include <utility>

#include "base/error.h"

namespace tearless::engine {
namespace {

constexpr std::array<std::pair<const char*, bool KernelVariants::*>, 5> kVariants = {
    {{"short-attention", &KernelVariants::short_attention},
     {"norm-backward", &KernelVariants::norm_backward},
     {"stored-gradients", &KernelVariants::stored_gradients},
     {"search-attention", &KernelVariants::search_attention},
     {"bias-gradients", &KernelVariants::bias_gradients}}};

}  // namespace

KernelVariants& kernel_variants() {
  static KernelVariants in_use;
  return in_use;
}

std::string kernel_variant_names() {
  std::string names;
  for (const auto& [name, member] : kVariants) names += fmt::format("{}, ", name);
  return names + "all";
}

KernelVariants kernel_variants_of(const std::string& names) {
  KernelVariants chosen;
  std::istringstream words(names);
  for (std::string word; std::getline(words, word, ',');) {
    bool found = false;
    for (const auto& [name, member] : kVariants) {
      if (word == name || word == "all") chosen.*member = found = true;
    }
    if (!found) fail("there is no variant \"{}\" of the kernels; choose from: {}", word, kernel_variant_names());
  }
  return chosen;
}

}  // namespace tearless::engine
