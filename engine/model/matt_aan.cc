// Average attention and cross-attention as one sublayer (row 7 of DS Table 3; docs/spec/knobs.md §11.5).
#include "engine/model/side_by_side.h"

namespace tearless::engine {

std::unique_ptr<SublayerKind> matt_aan_sublayer() {
  return std::make_unique<SublayerKind>(
      SublayerKind{.meaning = "aan and cross_attention side by side, their outputs added (DS Table 3, row 7)",
                   .reads_encoder_output = true,
                   .is_causal = true,
                   .make = [](const LayerScope& scope, SourceProjection& source) -> std::unique_ptr<Sublayer> {
                     return std::make_unique<SideBySide>(scope, source, sublayer_kinds().at("aan"),
                                                         sublayer_kinds().at("cross_attention"));
                   }});
}

}  // namespace tearless::engine
