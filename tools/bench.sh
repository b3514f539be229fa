#!/usr/bin/env bash
# Builds and runs the Google Benchmark programs of tests/bench/.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! compgen -G "tests/bench/*.cc" >/dev/null; then
  echo "bench: there are no benchmarks in tests/bench/ yet"
  exit 0
fi
cmake --preset release --log-level=WARNING >/dev/null
cmake --build build --target bench --parallel "${1:-2}"
build/bin/bench
