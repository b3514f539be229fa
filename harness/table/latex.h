// Texts and names as LaTeX, in tables and figures alike.
#pragma once

#include <string>
#include <vector>

#include "harness/grid/names.h"

namespace tearless::harness {

/// What LaTeX prints as `text`. It is made printable() first, on one line.
std::string escape_latex(const std::string& text);

/// What LaTeX prints as a name. A bracket or star at its beginning is kept from being read as an argument of the
/// command before it.
std::string latex_of(const Name& name);

/// The names with `between` between them, as one; LaTeX has theirs.
Name joined(const std::vector<Name>& names, const std::string& between);

/// "ScaleNorm, depth = 4", of labels under these headings, of which the last may have none: a bare label says what it
/// is of.
Name joined_labels(const std::vector<Name>& headings, const std::vector<Name>& labels);
/// The same by their names in print.
Name labels_in_print(const Names& names, const std::vector<std::string>& axes, const std::vector<std::string>& labels);

}  // namespace tearless::harness
