// Texts and names as LaTeX, in tables and figures alike.
#pragma once

#include <string>

#include "harness/grid/names.h"

namespace tearless::harness {

/// What LaTeX prints as `text`. It is made printable() first, on one line.
std::string escape_latex(const std::string& text);

/// What LaTeX prints as a name. A bracket or star at its beginning is kept from being read as an argument of the
/// command before it.
std::string latex_of(const Name& name);

}  // namespace tearless::harness
