#!/usr/bin/env bash
# Ten sweeps of grids/norm_and_placement.toml, disturbed at random by kills, full disks and changes of the clock, must end
# in the table of an undisturbed sweep.   tools/torture.sh [--seed N] [--rounds N] …  (--help)
set -euo pipefail
exec python3 "$(dirname "$0")/torture.py" "$@"
