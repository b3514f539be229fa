#!/usr/bin/env bash
# Times the engine against plain PyTorch and writes results/bench/cpu.{json,md}; needs a Python torch (tools/bench/compare.py).
#   tools/bench.sh [JOBS]                 JOBS: of the build
#   tools/bench.sh [JOBS] --operations    times single operations instead: the Google Benchmark programs of tests/bench/
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=2
operations=
for argument in "$@"; do
  case $argument in
    --operations) operations=yes ;;
    *[!0-9]* | '') echo "bench: there is no argument '$argument'; usage: tools/bench.sh [JOBS] [--operations]" >&2 && exit 2 ;;
    *) jobs=$argument ;;
  esac
done

if [ -z "$operations" ]; then
  python3 tools/bench/compare.py --find-torch # before a long build
fi
cmake --preset release --log-level=WARNING >/dev/null
if [ -n "$operations" ]; then
  cmake --build build --target bench --parallel "$jobs"
  build/bin/bench
else
  cmake --build build --target programs --parallel "$jobs"
  python3 tools/bench/compare.py --json results/bench/cpu.json --markdown results/bench/cpu.md
fi
