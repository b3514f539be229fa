#!/usr/bin/env bash
# Packs the engine, and the libraries that a bare system lacks, into the wheel dist/tearless_engine-VERSION-…: engine/starter.sh becomes
# bin/tearless-engine, all else goes to lib/tearless-engine, where no Python looks.
#   tools/wheel_engine.sh [--built] [OPTION OF tools/pack_wheel.py]…
# --built: packs what is in $TEARLESS_BIN, or build/bin; else that is built first.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "wheel: $*" >&2; }
fail() { say "error: $*"; exit 1; }

built=false
[ "${1:-}" != --built ] || { built=true; shift; }
if ! $built; then
  TEARLESS_SETUP=wheel tools/setup.sh >&2
  make --no-print-directory build >&2
fi
readonly bin=${TEARLESS_BIN:-build/bin}
readonly engine=$bin/tearless-engine cuda=$bin/libtearless_cuda.so caches=${XDG_CACHE_HOME:-$HOME/.cache}/tearless
[ -e "$engine" ] || fail "$engine is missing: \`make build\` builds it"
readonly version=$(sed -n 's/^project(tearless VERSION \([^ ]*\) .*/\1/p' CMakeLists.txt)
readonly blas=$(sed -n 's/^scipy-openblas32==\([^ ]*\).*/\1/p' tools/wheels/openblas.txt)
readonly torch=$(ldd "$engine" | sed -n 's|.* => \(.*\)/torch/lib/libtorch_cpu\.so .*|\1|p')

folder=$(mktemp -d)
trap 'rm -rf "$folder" "$folder.cmake"' EXIT
cp "$engine" "$folder/tearless-engine.elf"
if [ -e "$cuda" ]; then
  cp "$cuda" "$folder/"
else
  say "without libtearless_cuda.so, which nvcc 13 makes: this engine trains on CPUs alone"
fi
printf 'file(RPATH_REMOVE FILE "%s")\n' "$folder"/* >"$folder.cmake"  # which say where LibTorch was at build time
cmake -P "$folder.cmake"
# The system has libraries of C and C++.
ldd "$engine" | awk '$3 ~ /^\// { print $3 }' |
  grep -vE '/(libstdc\+\+|libgcc_s|libc|libm|libdl|librt|libutil|libpthread|ld-linux[^/]*)\.so[^/]*$' |
  while read -r library; do cp -L "$library" "$folder/"; done
cp "$caches/openblas-$blas/scipy_openblas32/lib/libscipy_openblas.so" "$folder/"
chmod 755 "$folder"/*
strip --strip-unneeded "$folder"/*
newest=$(objdump -T "$folder"/* | grep -oE 'GLIBCXX_3\.4\.[0-9]+' | sort -uV | tail -1)
[[ $newest =~ \.(2[0-9]|[0-9])$ ]] || fail "a library needs $newest, and RHEL 9 has 3.4.29: $(cd "$folder" && grep -l "$newest" -- * | paste -sd' ')"

# What the starter reads: the version and tag of this wheel, and a checksum of what a copy of the engine finds in lib/tearless-engine.
tag=$(tools/pack_wheel.py --tag "$folder"/*)
sums=$(cd "$folder" && sha256sum -- *.so* | grep -v libtearless_cuda)
printf '%s\n' "$version $tag $(sha256sum <<<"$sums" | cut -c1-64)" "$sums" >"$folder/tearless-engine.libraries"

licences=()
licence() {  # NAME FILE
  if [ -e "$2" ]; then licences+=(--license "$2=$1"); else $built || fail "the licence $2 is missing"; fi
}
licence LibTorch "$(echo "$torch"/torch-*.dist-info/licenses/LICENSE)"
licence LibTorch.NOTICE "$(echo "$torch"/torch-*.dist-info/licenses/NOTICE)"
licence CUDA "$(echo "$torch"/nvidia_cuda_runtime-*.dist-info/licenses/License.txt)"
licence OpenBLAS "$(echo "$caches/openblas-$blas"/*.dist-info/licenses/LICENSE.txt)"
licence GPL-3 /usr/share/common-licenses/GPL-3  # of libgomp, with the exception for run-time libraries
for package in libgomp1 libsentencepiece-dev libutf8proc-dev libfmt-dev libtomlplusplus-dev libspdlog-dev libcli11-dev nlohmann-json3-dev \
  libssl-dev; do
  licence "$package" /usr/share/doc/$package/copyright
done

tools/pack_wheel.py tearless-engine "$version" --glibc 2.34 "${licences[@]}" --license LICENSE=LICENSE \
  --summary "The training program of tearless, with LibTorch 2.11.0 for the CPU; on a GPU it takes that of the torch 2.11.0 installed beside it" \
  --file engine/starter.sh=scripts/tearless-engine --file "$folder=data/lib/tearless-engine" "$@"
