#include "harness/table/latex.h"

#include "base/spelling.h"
#include "harness/table/formats.h"

namespace tearless::harness {

std::string escape_latex(const std::string& text) {
  return escaped(text, {{"\\", "\\textbackslash{}"},
                        {"~", "\\textasciitilde{}"},
                        {"^", "\\textasciicircum{}"},
                        {"&", "\\&"},
                        {"%", "\\%"},
                        {"$", "\\$"},
                        {"#", "\\#"},
                        {"_", "\\_"},
                        {"{", "\\{"},
                        {"}", "\\}"},
                        {"*", "$^{*}$"},
                        {"[", "{[}"},  // directly after \\ a bracket would be read as its optional argument
                        {"]", "{]}"},
                        {"<", "\\textless{}"},
                        {">", "\\textgreater{}"},
                        {"|", "\\textbar{}"},
                        {"\"", "\\symbol{34}"},
                        {"`", "\\symbol{96}"},
                        {"--", "-{}-{}"},  // LaTeX sets two hyphens as a dash
                        {"±", "$\\pm$"},
                        {"≡", "$\\equiv$"},
                        {"→", "$\\rightarrow$"},
                        {"×", "$\\times$"},
                        {"−", "$-$"},
                        {"α", "$\\alpha$"},
                        {"β", "$\\beta$"},
                        {"γ", "$\\gamma$"},
                        {"δ", "$\\delta$"},
                        {"ε", "$\\varepsilon$"},
                        {"ζ", "$\\zeta$"},
                        {"η", "$\\eta$"},
                        {"θ", "$\\theta$"},
                        {"ι", "$\\iota$"},
                        {"κ", "$\\kappa$"},
                        {"λ", "$\\lambda$"},
                        {"μ", "$\\mu$"},
                        {"ν", "$\\nu$"},
                        {"ξ", "$\\xi$"},
                        {"π", "$\\pi$"},
                        {"ρ", "$\\rho$"},
                        {"σ", "$\\sigma$"},
                        {"τ", "$\\tau$"},
                        {"υ", "$\\upsilon$"},
                        {"φ", "$\\varphi$"},
                        {"χ", "$\\chi$"},
                        {"ψ", "$\\psi$"},
                        {"ω", "$\\omega$"},
                        {"Γ", "$\\Gamma$"},
                        {"Δ", "$\\Delta$"},
                        {"Θ", "$\\Theta$"},
                        {"Λ", "$\\Lambda$"},
                        {"Ξ", "$\\Xi$"},
                        {"Π", "$\\Pi$"},
                        {"Σ", "$\\Sigma$"},
                        {"Φ", "$\\Phi$"},
                        {"Ψ", "$\\Psi$"},
                        {"Ω", "$\\Omega$"},
                        {"∞", "$\\infty$"},
                        {"≠", "$\\neq$"},
                        {"∈", "$\\in$"},
                        {"∑", "$\\sum$"},
                        {"∂", "$\\partial$"},
                        {"∇", "$\\nabla$"},
                        {"↔", "$\\leftrightarrow$"},
                        {"⇒", "$\\Rightarrow$"},
                        {"←", "$\\leftarrow$"},
                        {"↑", "$\\uparrow$"},
                        {"↓", "$\\downarrow$"},
                        {"∼", "$\\sim$"},
                        {"≥", "$\\geq$"},
                        {"≤", "$\\leq$"},
                        {"≈", "$\\approx$"},
                        {"·", "$\\cdot$"},
                        {"√", "$\\surd$"},
                        {"₀", "$_{0}$"},
                        {"₁", "$_{1}$"},
                        {"₂", "$_{2}$"},
                        {"₃", "$_{3}$"},
                        {"₄", "$_{4}$"},
                        {"₅", "$_{5}$"},
                        {"₆", "$_{6}$"},
                        {"₇", "$_{7}$"},
                        {"₈", "$_{8}$"},
                        {"₉", "$_{9}$"},
                        {"⁻", "$^{-}$"},
                        {"†", "$^{\\dagger}$"},
                        {"‡", "$^{\\ddagger}$"},
                        {"°", "$^\\circ$"},
                        {"–", "--"},
                        {"…", "\\dots{}"}});
}

std::string latex_of(const Name& name) {
  if (name.latex.empty()) return escape_latex(name.text);
  return (name.latex.find_first_of("[*") == 0 ? "{}" : "") + name.latex;
}

Name joined(const std::vector<Name>& names, const std::string& between) {
  Name all;
  bool has_latex = false;
  for (const Name& name : names) {
    const std::string before = &name == names.data() ? "" : between;
    all.text += before + name.text;
    all.latex += escape_latex(before) + latex_of(name);
    has_latex |= !name.latex.empty();
  }
  if (!has_latex) all.latex.clear();
  return all;
}

Name joined_labels(const std::vector<Name>& headings, const std::vector<Name>& labels) {
  std::vector<Name> said;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].text.empty()) continue;
    const bool needs_heading = i < headings.size() && !headings[i].text.empty() && is_bare(labels[i].text);
    said.push_back(needs_heading ? joined({headings[i], labels[i]}, " = ") : labels[i]);
  }
  return joined(said, ", ");
}

Name labels_in_print(const Names& names, const std::vector<std::string>& axes, const std::vector<std::string>& labels) {
  std::vector<Name> headings, said;
  for (size_t i = 0; i < labels.size(); ++i) {
    headings.push_back(name_of(names, axes[i]));
    said.push_back(name_of(names, axes[i], labels[i]));
  }
  return joined_labels(headings, said);
}

}  // namespace tearless::harness
