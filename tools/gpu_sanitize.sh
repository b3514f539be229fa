#!/usr/bin/env bash
# The CUDA tests under compute-sanitizer, within ten minutes: memcheck of the kernels and of captured updates, racecheck of the kernels.
#   tools/gpu_sanitize.sh [PORTABLE] [RESULTS] [PYTHON]     default: build-portable, results/gpu, python3
# Writes RESULTS/sanitizer.md, and what each tool said beside it. A tool is stopped at its limit; the page then says how many tests had ended.
# Exit code 1 where a tool found something.
set -euo pipefail
cd "$(dirname "$0")/.."
portable=${1:-build-portable}
results=${2:-results/gpu}
python=${3:-python3}
# shellcheck source=tools/gpu_machine.sh
. tools/gpu_machine.sh
command -v compute-sanitizer >/dev/null || fail "compute-sanitizer is not on PATH: it is a part of the CUDA toolkit"
export TEARLESS_SOURCE=$PWD CUBLAS_WORKSPACE_CONFIG=:4096:8
mkdir -p "$results"

found=0
rows=()
check() { # SECONDS TOOL PROGRAM WHAT FILTER
  local said=$results/sanitizer_$2_$3.txt ended summary state=finished
  echo "== $2 of $4"
  timeout --kill-after=5 "$1" compute-sanitizer --tool "$2" --error-exitcode 99 "$portable/bin/$3" --gtest_filter="$5" >"$said" 2>&1 || {
    case $? in 124 | 137) state="stopped after $1 s" ;; *) found=1 ;; esac
  }
  ended=$(grep -c '^\[       OK \]' "$said" || true)
  summary=$(sed -n 's/^=* *\(\(ERROR\|RACECHECK\) SUMMARY: .*\)/\1/p' "$said" | tail -1)
  [ -n "$summary" ] || summary="$(grep -cE '^=+ +(Invalid|Error|Race|Program hit)' "$said" || true) findings until then"
  rows+=("| $2 | $4 | $ended | $summary | $state |")
}
check 200 memcheck test_engine_cuda "single kernels" '*/cuda:*/cuda/*:*OnAGpu*'
check 220 racecheck test_engine_cuda "single kernels" '*Kernel*/cuda'
check 120 memcheck test_engine "captured updates and search" '*/cuda:*/cuda/*:*_on_a_gpu*'
{
  printf '# compute-sanitizer\n\nOn %s, by `tools/gpu_sanitize.sh` on %s.\n\n' "$gpu" "$(date -u +%F)"
  printf '| tool | of | tests that passed | it said | |\n|---|---|---|---|---|\n'
  printf '%s\n' "${rows[@]}"
} >"$results/sanitizer.md"
cat "$results/sanitizer.md"
exit $found
