// Suggestions for mistyped names ("did you mean …?").
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tearless {

/// The candidate with the smallest edit distance from `name`, or "" if none is close. Two letters that changed places
/// count as one edit, as do parts that are missing: "norm.eps" finds "model.norm.eps".
std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// ` (did you mean "x"?)`, or "" if no candidate is close.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace tearless
