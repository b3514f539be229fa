# shellcheck shell=bash disable=SC2154,SC2034
# Read by tools/gpu_suite.sh and tools/gpu_peers.sh, which set `portable` and `python`: checks what they need on a GPU machine, sets `gpu` to the
# GPU's name, and lets programs find the libraries.
fail() { echo "$(basename "$0" .sh): $*" >&2; exit 2; }
[ -x "$portable/bin/tearless-engine" ] || fail "$portable/bin/tearless-engine is missing: run tools/portable.sh where the engine was built"
torch=$("$python" -c 'import os, torch; assert torch.__version__.startswith("2.11."), torch.__version__; print(os.path.dirname(torch.__file__))') ||
  fail "$python has no torch 2.11"
gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null) ||
  { [ -n "${dry:-}" ] && gpu="no GPU (a dry run)"; } || fail "no NVIDIA GPU is visible (nvidia-smi fails)"

# torch's CUDA libraries lie beside it, one folder a package.
libraries=$(cd "$portable/lib" && pwd):$torch/lib
for folder in "$(dirname "$torch")"/nvidia/*/lib; do
  [ -d "$folder" ] && libraries+=:$folder
done
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
