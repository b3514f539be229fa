#!/usr/bin/env bash
# A sweep over all GPUs, several runs on each, whose daemon and one engine are killed, against the same sweep undisturbed with one run a
# GPU: the same bytes. Builds nothing. Writes results/bench/gpu_sweep.md.   tools/gpu_sweep.sh [--updates N] [--fake] …  (--help)
set -euo pipefail
exec python3 "$(dirname "$0")/gpu_sweep.py" "$@"
