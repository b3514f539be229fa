#!/usr/bin/env bash
# All that needs a GPU, in one run of at most ten minutes: the CUDA tests (kernels, captured updates, search), a short sweep (tools/gpu_sweep.py),
# single kernels, updates and search of the base model, and variants of the kernels that were never timed (tools/bench/variants.py);
# tools/gpu_peers.sh times other programs beside them. No network, no package manager; needs Python's torch 2.11 and what tools/portable.sh gathered.
#   tools/gpu_suite.sh [PORTABLE] [RESULTS] [PYTHON]     default: build-portable, results/gpu, python3
# Writes RESULTS/gpu.json, RESULTS/gpu.md and the tests' output. Exit code 1 where a test failed.
set -euo pipefail
cd "$(dirname "$0")/.."
portable=${1:-build-portable}
results=${2:-results/gpu}
python=${3:-python3}
readonly test_limit=60 sweep_limit=150 one_limit=30 variants_limit=150  # together within ten minutes

# shellcheck source=tools/gpu_machine.sh
. tools/gpu_machine.sh
export TEARLESS_SOURCE=$PWD CUBLAS_WORKSPACE_CONFIG=:4096:8
mkdir -p "$results"

failed=0
page() { # after each part, for a call that is stopped
  "$python" tools/gpu_page.py "$results" "$gpu" || failed=1
}
for test in test_engine_cuda test_engine; do
  echo "== $test"
  timeout $test_limit "$portable/bin/$test" --gtest_brief=1 --gtest_filter='*/cuda:*/cuda/*:*_on_a_gpu*:*OnAGpu*:CudaLibrary*' \
    --gtest_output="json:$results/$test.json" 2>&1 | tee "$results/$test.txt" || failed=1
done
page

echo "== single kernels, step and search of the base model"
for precision in bf16 tf32 fp32; do
  sed "s/^precision = .*/precision = \"$precision\"/" tools/bench/sizes/base_cuda.toml >"$results/base_$precision.toml"
  timeout $one_limit "$portable/bin/tearless-engine" bench "$results/base_$precision.toml" --vocabulary 8000 \
    --lengths tools/bench/lengths/base_cuda_real.json --updates 200 --decode --json >"$results/step_$precision.json" || failed=1
done
timeout $one_limit "$portable/bin/tearless-engine" bench "$results/base_bf16.toml" --vocabulary 8000 \
  --lengths tools/bench/lengths/base_cuda_equal.json --updates 200 --json >"$results/step_bf16_equal.json" || failed=1
timeout $one_limit "$portable/bin/tearless-engine" bench "$results/base_bf16.toml" --vocabulary 8000 --kernels --json >"$results/kernels.json" || failed=1
page

echo "== variants of the kernels that runs do not use yet"
timeout $one_limit "$portable/bin/tearless-engine" bench "$results/base_bf16.toml" --vocabulary 8000 --kernels \
  --variants norm-backward --json >"$results/kernels_norm_backward.json" || failed=1
timeout $variants_limit "$python" tools/bench/variants.py --engine "$portable/bin/tearless-engine" --gpu "$gpu" --json "$results/variants.json" \
  --markdown "$results/variants.md" || failed=1
page

echo "== a sweep, killed and resumed"
timeout $sweep_limit "$python" tools/gpu_sweep.py --bin "$portable/bin" --updates 500 --seeds 2 --page "$results/sweep.md" || failed=1
page
echo "gpu_suite: $results/gpu.md"
exit $failed
