// Text that is subwords already: units between white space. Where they carry fastBPE's mark "@@", lines are joined by
// it.
#pragma once

#include "engine/data/subwords.h"

namespace tearless::engine {

class Segmented final : public Subwords {
 public:
  std::vector<std::string> encode(std::string_view line, Side side) const override;
  std::string join(std::span<const std::string> pieces) const override;
  std::string bytes() const override { return ""; }
};

/// Pieces with a space between them, then every "@@ " and a trailing "@@" deleted.
std::string join_continued(std::span<const std::string> pieces);

}  // namespace tearless::engine
