#!/usr/bin/env bash
# Times the engine against plain PyTorch and writes results/bench/cpu.{json,md}; needs a Python torch (tools/bench/compare.py).
# Then times the harness with many runs and writes results/bench/scale.md (tools/bench/scale.py).
#   tools/bench.sh [JOBS]                 JOBS: of the build
#   tools/bench.sh [JOBS] --scale         the harness only; needs no torch
#   tools/bench.sh [JOBS] --operations    times single operations instead: the Google Benchmark programs of tests/bench/
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=2
operations=
scale=
for argument in "$@"; do
  case $argument in
    --operations) operations=yes ;;
    --scale) scale=yes ;;
    *[!0-9]* | '') echo "bench: there is no argument '$argument'; usage: tools/bench.sh [JOBS] [--operations | --scale]" >&2 && exit 2 ;;
    *) jobs=$argument ;;
  esac
done

if [ -z "$operations$scale" ]; then
  python3 tools/bench/compare.py --find-torch # before a long build
fi
cmake --preset release --log-level=WARNING >/dev/null
if [ -n "$operations" ]; then
  cmake --build build --target bench --parallel "$jobs"
  build/bin/bench
else
  cmake --build build --target programs fake-engine --parallel "$jobs"
  if [ -z "$scale" ]; then
    python3 tools/bench/compare.py --json results/bench/cpu.json --markdown results/bench/cpu.md
  fi
  python3 tools/bench/scale.py --markdown results/bench/scale.md
fi
