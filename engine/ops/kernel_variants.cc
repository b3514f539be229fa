#include "engine/ops/kernel_variants.h"

#include <array>
#include <sstream>
#include <utility>

#include "base/error.h"

namespace tearless::engine {

KernelVariants& kernel_variants() {
  static KernelVariants in_use;
  return in_use;
}

KernelVariants kernel_variants_of(const std::string& names) {
  KernelVariants chosen;
  const std::array<std::pair<const char*, bool*>, 4> known = {{{"short-attention", &chosen.short_attention},
                                                               {"norm-backward", &chosen.norm_backward},
                                                               {"stored-gradients", &chosen.stored_gradients},
                                                               {"bias-gradients", &chosen.bias_gradients}}};
  std::istringstream words(names);
  for (std::string word; std::getline(words, word, ',');) {
    bool found = false;
    for (const auto& [name, chooses] : known) {
      if (word != name && word != "all") continue;
      *chooses = found = true;
    }
    if (found) continue;
    fail(
        "there is no variant \"{}\" of the kernels; choose from: short-attention, norm-backward, stored-gradients, "
        "bias-gradients, all",
        word);
  }
  return chosen;
}

}  // namespace tearless::engine
