#!/usr/bin/env bash
# Sets the tables of the demo and of results/ada_small in an article of two columns, untouched, and fails if TeX complains or if one of them
# is wider than its place; likewise the figure of tests/golden/harness, if pgfplots is installed. Needs pdflatex and the programs of build/;
# with a folder as argument it leaves the PDF there.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v pdflatex >/dev/null || { echo "latex: pdflatex is not installed, tables left out"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tearless=(build/bin/tearless)

"${tearless[@]}" run grids/demo.toml >"$folder/run.txt"  # nothing is trained after `make demo`
"${tearless[@]}" table grids/demo.toml --final --out "$folder/demo.tex"
"${tearless[@]}" --workspace results/ada_small.tar.gz table ada_small --layout grids/ada_small.toml --final --out "$folder/ada_small.tex"

pgfplots='' figure=''
if kpsewhich pgfplots.sty >/dev/null; then
  cp tests/golden/harness/figure.tex "$folder"
  pgfplots='\usepackage{pgfplots} \usepgfplotslibrary{groupplots}'
  figure='\input{figure} So does Figure~\ref{fig:dev-bleu}.'
else
  echo "latex: pgfplots is not installed, the figure left out"
fi
cat >"$folder/article.tex" <<TEX
\\documentclass[twocolumn]{article}
\\usepackage{booktabs}
$pgfplots
\\begin{document}
Table~\\ref{tab:demo} fits a column, Table~\\ref{tab:ada-small} a page.
\\input{demo}
\\input{ada_small}
$figure
\\end{document}
TEX
cd "$folder"
for _ in 1 2; do
  pdflatex -interaction=nonstopmode -halt-on-error article.tex >article.out 2>&1 || { tail -20 article.out; exit 1; }
done
if grep -E 'Overfull|undefined' article.log; then
  echo "latex: a table or figure is wider than its place, or its label is missing"
  exit 1
fi
cd - >/dev/null
[ $# -eq 0 ] || cp "$folder"/{article.pdf,demo.tex,ada_small.tex} "$1"
echo "latex: two tables${figure:+ and a figure} fit an article of two columns"
