// Self-attention and cross-attention as one sublayer (row 6 of DS Table 3; docs/spec/knobs.md §11.4). Each has its own
// q, k, v and o: the parameter count of that row says so.
#include "engine/model/side_by_side.h"

namespace tearless::engine {

std::unique_ptr<SublayerKind> matt_self_sublayer() {
  return std::make_unique<SublayerKind>(SublayerKind{
      .meaning = "self_attention and cross_attention side by side, their outputs added (DS Table 3, row 6)",
      .reads_encoder_output = true,
      .make = [](const LayerScope& scope, SourceProjection& source) -> std::unique_ptr<Sublayer> {
        return std::make_unique<SideBySide>(scope, source, sublayer_kinds().at("self_attention"),
                                            sublayer_kinds().at("cross_attention"));
      }});
}

}  // namespace tearless::engine
