// Text that is already split into subwords, separated by white space. Where pieces carry fastBPE's mark "@@", join()
// removes it.
#pragma once

#include "engine/data/subwords.h"

namespace tearless::engine {

class Segmented final : public Subwords {
 public:
  std::vector<std::string> encode(std::string_view line, Side side) const override;
  std::string join(std::span<const std::string> pieces) const override;
  std::string bytes() const override { return ""; }
};

/// Joins pieces with spaces, then deletes every "@@ " and a trailing "@@".
std::string join_continued(std::span<const std::string> pieces);

}  // namespace tearless::engine
