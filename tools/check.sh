#!/usr/bin/env bash
# What a reviewer should not have to say: format, terms, spelling, lint, include arrows. Tools that are not installed are named and left out.
#   tools/check.sh            every tracked file; lint takes minutes
#   tools/check.sh --quick    without lint and arrows: seconds
#   tools/check.sh FILE…      format, spelling and lint of these files
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
quick=false
[ "${1:-}" != --quick ] || { quick=true; shift; }

# Goldens contain misspelt settings on purpose; the corpora are not English. Words: such settings in tests, SQLite's iif, "nd" of a newline,
# the stem of summarise. "te" is Telugu, "&ket;" an escape of Moses.
readonly not_english='^(grids/demo/|tests/golden/|tests/fuzz/corpus/|tests/data/|docs/mutants/|tools/bench/(sizes|lengths)/)'
readonly deliberate='te,ket,iif,nd,clasify,modle,trian,titel,colums,smal,sistem,staus,summar'

files=("$@")
if [ $# -eq 0 ]; then
  git rev-parse --git-dir >/dev/null || { echo "check: git does not list the files here: nothing was checked"; exit 0; }
  mapfile -t files < <(git ls-files)
fi
sources=()
texts=()
for file in "${files[@]}"; do
  case $file in *.cc | *.h | *.cu | *.cpp) sources+=("$file") ;; esac
  [[ $file =~ $not_english ]] || [[ $file =~ \.(png|gz|zip|db|bin)$ ]] || texts+=("$file")
done

# has TOOL WHAT: whether the tool is installed; says what is left out where it is not.
has() { command -v "$1" >/dev/null || { echo "check: $1 is not installed, $2 left out"; false; }; }

if has clang-format format; then
  if [[ $(clang-format --version) == *"version 14."* ]]; then
    echo "check: format of ${#sources[@]} files"
    [ ${#sources[@]} -eq 0 ] || clang-format --dry-run -Werror "${sources[@]}" || status=1
  else
    echo "check: format left out: other versions of clang-format than 14 break lines elsewhere"
  fi
fi

if [ $# -eq 0 ]; then
  echo "check: terms"
  tools/words.py || status=1
fi

if has codespell spelling; then
  echo "check: spelling of ${#texts[@]} files"
  codespell --ignore-words-list "$deliberate" "${texts[@]}" || status=1
fi

# The files of a room are linted together (unity builds): most of the time goes into parsing the headers of LibTorch.
lint() {
  local build=build-lint units=()
  tools/configure.sh -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTEARLESS_PCH=OFF -DTEARLESS_CUDA=OFF >/dev/null
  mapfile -t units < <(python3 - $build/compile_commands.json "$@" <<'EOF'
import json, os, sys
units = {entry["file"] for entry in json.load(open(sys.argv[1]))}
wanted = {os.path.abspath(path) for path in sys.argv[2:]}
for unit in sorted(units):
    parts = {unit}
    if "/Unity/" in unit:
        parts |= {line.split('"')[1] for line in open(unit) if line.startswith("#include")}
    if unit.endswith("build_stamp.cc") or (wanted and not parts & wanted):
        continue
    print(unit)
EOF
  )
  echo "check: lint of ${#units[@]} units"
  [ ${#units[@]} -eq 0 ] || printf '%s\0' "${units[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p $build --quiet 2> >(grep -v 'warnings\? generated' >&2)
}

if ! $quick && has clang-tidy lint; then
  if [ $# -eq 0 ]; then lint || status=1; else lint "${sources[@]}" || status=1; fi
fi

if ! $quick && [ $# -eq 0 ]; then
  tools/latex.sh || status=1
fi

if ! $quick && [ $# -eq 0 ]; then
  echo "check: pages in Chromium"
  tools/look.sh || status=1
fi

if ! $quick && [ $# -eq 0 ]; then
  echo "check: include arrows"
  tools/configure.sh --preset dev --log-level=WARNING >/dev/null
  cmake --build build-dev --target test_base --parallel "$(nproc)" >/dev/null
  build-dev/bin/test_base --gtest_brief=1 --gtest_filter='Arrows.*' || status=1
fi

[ $status = 0 ] && echo "check: clean" || echo "check: see above"
exit $status
