// PDF and PNG of pictures that are drawn as SVG.
#pragma once

#include <filesystem>
#include <string>

namespace tearless::harness {

/// Writes what rsvg-convert makes of the picture: `format` is its word, "pdf" or "png". UserError, with the file as it
/// was, if rsvg-convert is not installed or fails, or the folder cannot be written.
void convert_svg(const std::string& svg, const char* format, const std::filesystem::path& file);

}  // namespace tearless::harness
