#!/usr/bin/env bash
# Gathers what tools/gpu_suite.sh, gpu_peers.sh and gpu_sweep.sh need on a machine that has Python's torch and nothing of ours: programs, tests, and the libraries
# they need besides torch's and the C library (2.36 or newer).
#   tools/portable.sh [BUILD] [FOLDER]     default: build, build-portable
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
folder=${2:-build-portable}
programs=(tearless tearless-engine test_engine test_engine_cuda)
for file in "${programs[@]}" libtearless_cuda.so; do
  [ -e "$build/bin/$file" ] || { echo "portable: $build/bin/$file is missing: \`make test\` builds it, libtearless_cuda.so where nvcc 13 is" >&2; exit 1; }
done

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib"
for file in "${programs[@]}" libtearless_cuda.so; do
  cp "$build/bin/$file" "$folder/bin/"
  strip --strip-unneeded "$folder/bin/$file"
done
# Of torch, CUDA and the C library the other machine has its own.
for file in "${programs[@]}"; do ldd "$build/bin/$file"; done | awk '$3 ~ /^\// { print $3 }' | sort -u |
  grep -vE '/(libtorch[^/]*|libc10[^/]*|libgomp[^/]*|libcu[^/]*|libnv[^/]*|libc|libm|libdl|librt|libutil|libpthread|ld-linux[^/]*)\.so[^/]*$' |
  while read -r library; do cp -L "$library" "$folder/lib/"; done
du -sh "$folder"
