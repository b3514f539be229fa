#!/usr/bin/env bash
# All that wants a GPU, in one run of at most ten minutes: the CUDA tests, then training and search beside plain PyTorch. No network, no
# package manager; needs Python's torch 2.11 and what tools/portable.sh gathered.
#   tools/gpu_suite.sh [PORTABLE] [RESULTS] [PYTHON]     default: build-portable, results/gpu, python3
# Writes RESULTS/gpu.json, RESULTS/gpu.md and the tests' output. Exit code 1 where a test failed.
set -euo pipefail
cd "$(dirname "$0")/.."
portable=${1:-build-portable}
results=${2:-results/gpu}
python=${3:-python3}
readonly bench_seconds=15 test_limit=90 bench_limit=300  # three tests and the benchmark: within ten minutes

fail() { echo "gpu_suite: $*" >&2; exit 2; }
[ -x "$portable/bin/tearless-engine" ] || fail "$portable/bin/tearless-engine is missing: run tools/portable.sh where the engine was built"
torch=$("$python" -c 'import os, torch; assert torch.__version__.startswith("2.11."), torch.__version__; print(os.path.dirname(torch.__file__))') ||
  fail "$python has no torch 2.11"
nvidia-smi >/dev/null 2>&1 || fail "no NVIDIA GPU is visible (nvidia-smi fails)"

# torch's CUDA libraries lie beside it, one folder a package.
libraries=$PWD/$portable/lib:$torch/lib
for folder in "$(dirname "$torch")"/nvidia/*/lib; do
  [ -d "$folder" ] && libraries+=:$folder
done
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export TEARLESS_SOURCE=$PWD CUBLAS_WORKSPACE_CONFIG=:4096:8
mkdir -p "$results"

failed=0
for test in test_engine_cuda test_engine_ops test_engine_model; do
  echo "== $test"
  timeout $test_limit "$portable/bin/$test" --gtest_brief=1 --gtest_output="json:$results/$test.json" 2>&1 | tee "$results/$test.txt" || failed=1
done

echo "== training and search beside PyTorch"
timeout $bench_limit "$python" tools/bench/compare.py --engine "$portable/bin/tearless-engine" --device cuda --threads 1 --seconds $bench_seconds \
  --json "$results/bench.json" --markdown "$results/bench.md" || failed=1

"$python" - "$results" <<'PYTHON'
import json, pathlib, subprocess, sys

results = pathlib.Path(sys.argv[1])
gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], capture_output=True, text=True)
document = {"gpu": gpu.stdout.strip(), "tests": {}, "bench": None}
for file in sorted(results.glob("test_*.json")):
    report = json.loads(file.read_text())
    document["tests"][file.stem] = {"tests": report["tests"], "failures": report["failures"], "disabled": report["disabled"]}
if (results / "bench.json").exists():
    document["bench"] = json.loads((results / "bench.json").read_text())
(results / "gpu.json").write_text(json.dumps(document, indent=1) + "\n")
lines = [f"# On {document['gpu']}", "", "| test program | tests | failures |", "|---|---|---|"]
lines += [f"| {name} | {t['tests']} | {t['failures']} |" for name, t in document["tests"].items()]
page = "\n".join(lines) + "\n\n"
if (results / "bench.md").exists():
    page += (results / "bench.md").read_text()
(results / "gpu.md").write_text(page)
PYTHON
echo "gpu_suite: $results/gpu.md"
exit $failed
