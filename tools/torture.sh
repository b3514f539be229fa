#!/usr/bin/env bash
# The README's "Kill it", taken at its word: ten sweeps of the demo grid, each killed, starved of disk and moved in time at
# random, must end in the table of a sweep that nothing happened to.   tools/torture.sh [--seed N] [--rounds N] …  (--help)
set -euo pipefail
exec python3 "$(dirname "$0")/torture.py" "$@"
