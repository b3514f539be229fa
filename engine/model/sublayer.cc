#include "engine/model/sublayer.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "base/words.h"

namespace tearless::engine {

#define SUBLAYER(kind) std::unique_ptr<SublayerKind> kind##_sublayer();
#include "engine/model/sublayers.def"
#undef SUBLAYER

const Kinds<SublayerKind>& sublayer_kinds() {
#define SUBLAYER(kind) {#kind, kind##_sublayer},
  static const Kinds<SublayerKind> kinds{{
#include "engine/model/sublayers.def"
  }};
#undef SUBLAYER
  return kinds;
}

std::vector<const SublayerKind*> sublayers_of(std::string_view setting) {
  std::vector<const SublayerKind*> kinds;
  for (const std::string& word : list_items(setting)) kinds.push_back(&sublayer_kinds().at(word));
  return kinds;
}

void check_sublayers(std::string_view key, std::string_view setting, bool in_decoder) {
  const std::vector<std::string> words = list_items(setting);
  bool reads_encoder_output = false;
  for (const std::string& word : words) {
    const SublayerKind* const kind = sublayer_kinds().find(word);
    if (!kind) {
      const std::vector<std::string_view> names = sublayer_kinds().names();
      const std::vector<std::string> known(names.begin(), names.end());
      fail("{} = \"{}\": \"{}\" is no sublayer{}; write them as \"self_attention, ffn\", each one of: {}", key, setting,
           word, did_you_mean(word, known), fmt::join(known, ", "));
    }
    if (std::count(words.begin(), words.end(), word) > 1) {
      fail("{} = \"{}\" names {} twice; a layer has at most one of each", key, setting, word);
    }
    if (kind->reads_encoder_output && !in_decoder) {
      fail("{} = \"{}\": {} reads the encoder output; leave it to the decoder", key, setting, word);
    }
    if (kind->is_causal && !in_decoder) {
      fail("{} = \"{}\": each row of {} sees only itself and those before; leave it to the decoder", key, setting,
           word);
    }
    reads_encoder_output |= kind->reads_encoder_output;
  }
  if (in_decoder && !reads_encoder_output) {
    fail("{} = \"{}\": nothing reads the encoder output; add cross_attention or matt", key, setting);
  }
}

}  // namespace tearless::engine
