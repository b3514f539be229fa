#!/bin/sh
# Updates golden texts: runs the tests so that they write them instead of comparing; and the pages that the programs
# print. Then read `git diff tests/golden docs`.
# usage: tools/bless.sh [BUILD_FOLDER]
set -eu
build=${1:-build}
cmake --build "$build" --target programs tests
for test in "$build"/bin/test_*; do
  TEARLESS_BLESS=1 TEARLESS_SOURCE="$(pwd)" "$test" --gtest_brief=1 --gtest_filter='*Golden*'
done
"$build"/bin/tearless manual --markdown > docs/commands.md
"$build"/bin/tearless-engine settings > docs/engine_settings.md
git --no-pager diff --stat tests/golden docs
