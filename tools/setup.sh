#!/usr/bin/env bash
# Puts in place what a build needs: the distribution's packages, and LibTorch and OpenBLAS in a per-user cache that every checkout shares.
# Does only what is missing, says each thing it does, and can be run at any time, also by two checkouts at once.
#   TEARLESS_TORCH=/path/to/torch   use that installed torch (the folder with lib/ and include/) of the same version
#   TEARLESS_SETUP=harness          packages only: enough for the harness preset
#   TEARLESS_SETUP=wheel            also the licences of what the wheel of the engine holds, which caches of earlier versions lack
#   TEARLESS_SETUP=check            also the packages of tools/check.sh; quick-check: those of its --quick
set -euo pipefail
cd "$(dirname "$0")/.."

readonly torch_version=2.11.0
readonly openblas_version=$(sed -n 's/^scipy-openblas32==\([^ ]*\).*/\1/p' tools/wheels/openblas.txt)
readonly licences='*.dist-info/*'
# tools/cmake/torch.cmake and openblas.cmake look here too.
readonly caches=${XDG_CACHE_HOME:-$HOME/.cache}/tearless

say() { echo "setup: $*"; }
fail() { echo "setup: error: $*" >&2; exit 1; }

# --- packages ---------------------------------------------------------------------------------------------------------
packages=(build-essential cmake ninja-build pkg-config ccache mold python3 unzip xz-utils
  libboost-dev libfmt-dev libtomlplusplus-dev libcli11-dev libspdlog-dev nlohmann-json3-dev libsqlite3-dev libsqlitecpp-dev zlib1g-dev
  libsentencepiece-dev libutf8proc-dev libssl-dev libgtest-dev libgmock-dev libjs-dygraphs)
case ${TEARLESS_SETUP:-} in
  check) packages+=(git clang-format clang-tidy codespell) ;;
  quick-check) packages+=(git clang-format codespell) ;;
esac

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# A newer CMake, pip or compiler from elsewhere is as good as the package.
covered() {
  case $1 in
    cmake | ninja-build | ccache | mold | python3 | unzip | git | clang-format | clang-tidy | codespell) command -v "${1%-build}" >/dev/null ;;
    *) false ;;
  esac
}

install_packages() {
  if ! command -v apt-get >/dev/null; then
    say "no apt-get here: docs/install.md names the packages of other distributions; continuing with what is installed"
    return
  fi
  local missing=() package
  command -v pip3 >/dev/null || [ "${TEARLESS_SETUP:-}" = harness ] || packages+=(python3-pip)
  for package in "${packages[@]}"; do
    installed "$package" || covered "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: these packages are missing; run this one command as root, then try again:" >&2
      echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  say "installing packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || say "apt-get update failed; trying with the package lists at hand"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 \
    "${missing[@]}" >/dev/null || fail "apt-get could not install the packages above; its message says why"
}

# --- LibTorch, OpenBLAS -----------------------------------------------------------------------------------------------
# The caches keep the layout of the wheels (torch/lib beside nvidia/*/lib), so the libraries find each other by their own RPATH.

version_in() {  # TORCH_DIR -> its version, from the header that the build will include
  sed -n 's/^#define TORCH_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\).*/\2/p' "$1/include/torch/headeronly/version.h" 2>/dev/null |
    paste -sd.
}

open_cache() {  # NAME: of the cache that unpack_wheels fills from now on, alone
  cache=$caches/$1
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock --nonblock 9 || { say "another set-up is filling $cache; waiting for it"; flock 9; }
  [ "${TEARLESS_SETUP:-}" != wheel ] || compgen -G "$cache/$licences" >/dev/null || rm -f "$cache"/*.complete
  rm -rf "$cache"/part.*  # left behind by a set-up that was killed
}

# Downloads the wheels that LIST names (pip checks them against the pinned SHA-256) and puts what they hold under PATTERN… into the
# cache. The stamp comes last: without it this part is fetched again.
unpack_wheels() {  # LIST STAMP PATTERN…
  local list=$1 stamp=$2 part
  shift 2
  [ ! -e "$cache/$stamp" ] || return 0
  say "fetching $(sed -n 's/^\([a-z0-9-]*==[^ ]*\).*/\1/p' "tools/wheels/$list" | paste -sd' ') into $cache"
  part=$(mktemp -d "$cache/part.XXXXXX")
  pip3 download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: --python-version 3.11 \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_25_x86_64 \
    --platform manylinux_2_18_x86_64 --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 --platform manylinux1_x86_64 \
    --require-hashes --dest "$part" --requirement "tools/wheels/$list" ||
    fail "pip could not fetch the wheels of tools/wheels/$list; its message is above (a broken download, no network?); run this again"
  local wheel
  for wheel in "$part"/*.whl; do
    unzip -q -o "$wheel" "$@" -d "$part/unpacked" || fail "cannot unpack $(basename "$wheel") into $cache: is the disk full?"
    rm "$wheel"
  done
  cp -rlf "$part/unpacked/." "$cache/"  # hard links: the folders of several wheels merge
  rm -rf "$part"
  touch "$cache/$stamp"
}

loader_knows() { /sbin/ldconfig -p 2>/dev/null | grep -q "$1"; }

fetch_torch() {
  [ "$(uname -m)" = x86_64 ] || fail "LibTorch is fetched for x86_64 only, this is $(uname -m): set TEARLESS_TORCH to an installed torch $torch_version"
  open_cache "libtorch-$torch_version"
  unpack_wheels torch.txt torch.complete 'torch/include/*' 'torch/lib/*' "$licences" -x 'torch/lib/libtorch_python.so' 'torch/lib/libshm*'
  if ! loader_knows libcudart.so.13 || ! loader_knows libcupti.so.13; then
    unpack_wheels cuda_runtime.txt cuda_runtime.complete 'nvidia/*/lib/*.so*' "$licences"
  fi
  if [ -e /proc/driver/nvidia/version ] || loader_knows libcuda.so.1; then
    unpack_wheels cuda_runtime.txt cuda_runtime.complete 'nvidia/*/lib/*.so*' "$licences"
    unpack_wheels cuda_libraries.txt cuda_libraries.complete 'nvidia/*/lib/*.so*' "$licences"
  fi
  exec 9>&-
}

fetch_openblas() {
  [ "$(uname -m)" = x86_64 ] || return 0  # MKL or what else LibTorch has serves
  open_cache "openblas-$openblas_version"
  unpack_wheels openblas.txt openblas.complete 'scipy_openblas32/lib/*.so' "$licences"
  exec 9>&-
}

install_packages
if [ "${TEARLESS_SETUP:-}" = harness ]; then
  say "ready (harness only, no LibTorch)"
  exit 0
fi
if [ -z "${TEARLESS_TORCH:-}" ]; then
  fetch_torch
  torch=$cache/torch
else
  torch=$TEARLESS_TORCH
fi
found=$(version_in "$torch" || true)
[ -n "$found" ] || fail "no LibTorch in $torch: it should hold lib/ and include/ (an installed torch is at site-packages/torch)"
[ "$found" = "$torch_version" ] || fail "LibTorch in $torch is version $found, but $torch_version is needed"
[ -e "$torch/lib/libtorch_cpu.so" ] || fail "LibTorch in $torch has no lib/libtorch_cpu.so"
fetch_openblas
say "ready: LibTorch $found in $torch, OpenBLAS $openblas_version"
