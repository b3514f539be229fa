#!/usr/bin/env bash
# Checks format, a short lint and include arrows. Tools that are not installed are named and skipped.
#   tools/check.sh [FILE…]   FILEs limit format and lint; default: every tracked source (lint: those of base/ and harness/, whose
#                            headers are quick to parse; name an engine file to lint it)
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

files=("$@")
[ $# -gt 0 ] || mapfile -t files < <(git ls-files '*.cc' '*.h' '*.cu' '*.cpp')
units=()
for file in "${files[@]}"; do
  case $file in *.cc) [ $# -eq 0 ] && [[ $file != base/* && $file != harness/* ]] || units+=("$file") ;; esac
done

if command -v clang-format >/dev/null; then
  echo "check: format of ${#files[@]} files"
  clang-format --dry-run -Werror "${files[@]}" || status=1
else
  echo "check: clang-format is not installed, format skipped"
fi

cmake --preset dev --log-level=WARNING >/dev/null
if command -v clang-tidy >/dev/null; then
  echo "check: lint of ${#units[@]} files"
  [ ${#units[@]} -eq 0 ] || printf '%s\0' "${units[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy -p build-dev --quiet || status=1
else
  echo "check: clang-tidy is not installed, lint skipped"
fi

echo "check: include arrows"
cmake --build build-dev --target test_base --parallel "$(nproc)" >/dev/null
build-dev/bin/test_base --gtest_brief=1 --gtest_filter='Arrows.*' || status=1

[ $status = 0 ] && echo "check: clean" || echo "check: see above"
exit $status
