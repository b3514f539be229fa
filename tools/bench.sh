#!/usr/bin/env bash
# Times the engine against plain PyTorch and writes results/bench/cpu.{json,md}; needs a Python torch (tools/bench/compare.py).
# Then times the harness with many runs and writes results/bench/scale.md (tools/bench/scale.py).
#   tools/bench.sh [JOBS]            JOBS: of the build
#   tools/bench.sh [JOBS] --scale    the harness only; needs no torch
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=2
engine=yes
for argument in "$@"; do
  case $argument in
    --scale) engine= ;;
    *[!0-9]* | '') echo "bench: there is no argument '$argument'; usage: tools/bench.sh [JOBS] [--scale]" >&2 && exit 2 ;;
    *) jobs=$argument ;;
  esac
done

[ -z "$engine" ] || python3 tools/bench/compare.py --find-torch # before a long build
tools/configure.sh --preset release --log-level=WARNING >/dev/null
cmake --build build --target programs fake-engine --parallel "$jobs"
[ -z "$engine" ] || python3 tools/bench/compare.py --json results/bench/cpu.json --markdown results/bench/cpu.md
python3 tools/bench/scale.py --markdown results/bench/scale.md
