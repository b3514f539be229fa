// "Did you mean …": the nearest of a list of names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tearless {

/// The candidate with the fewest edits from `name`, or "" where none is near enough to be what was meant.
/// For dotted names the last part alone is compared too, so that "norm.eps" finds "model.norm.eps".
std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// ` (did you mean "x"?)`, or "" where nothing is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace tearless
