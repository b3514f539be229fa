#!/bin/sh
# Updates golden texts: runs the tests so that they write them instead of comparing. Then read `git diff tests/golden`.
# usage: tools/bless.sh [BUILD_FOLDER]
set -eu
build=${1:-build}
cmake --build "$build" --target tests
for test in "$build"/bin/test_*; do
  TEARLESS_BLESS=1 TEARLESS_SOURCE="$(pwd)" "$test" --gtest_brief=1 --gtest_filter='*Golden*'
done
git --no-pager diff --stat tests/golden
