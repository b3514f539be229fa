// The names in print of axes, labels and scores: the section [names] of a grid file or of a base file.
//
//   [names]
//   "model.norm.kind" = "Norm"                                       # an axis
//   scale_norm        = "ScaleNorm"                                  # a label, of any axis
//   "depth=2"         = "2 layers"                                   # a label of one axis
//   "test.bleu"       = "BLEU"                                       # a score
//   "√d"              = { text = "g = √d", latex = "$g=\\sqrt{d}$" }
#pragma once

#include <map>
#include <string>

namespace tearless::harness {

/// A text in print.
struct Name {
  std::string text;
  std::string latex = {};  // what LaTeX prints in its place, commands included; "": the text, with its escapes

  bool operator==(const Name&) const = default;
};

/// An axis, a score, a label, or "axis=label" → its name.
using Names = std::map<std::string, Name>;

/// The name of an axis or of a score; without an entry, the word itself.
Name name_of(const Names& names, const std::string& word);
/// That of a label: the entry "axis=label", else that of the label.
Name name_of(const Names& names, const std::string& axis, const std::string& label);

}  // namespace tearless::harness
