#!/usr/bin/env bash
# The wheel `tearless`, the source archive and SHA256SUMS, in dist/.
#   tools/wheel.sh           compiles in build-wheel/ for GLIBC 2.28 (RHEL 8, Ubuntu 20.04), with all other libraries inside
#   tools/wheel.sh --tests   compiles the tests, too, and runs them
#   tools/wheel.sh --built [OPTION OF tools/pack_wheel.py]…
#                            packs $TEARLESS_BIN/tearless (default: build/bin) alone and as it is, which needs the libraries of this machine
# Needs a Debian or Ubuntu that `make setup` has been run on: what is C++ of other people's is compiled from the distribution's sources.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly glibc=2.28 cache=${XDG_CACHE_HOME:-$HOME/.cache}/tearless
readonly version=$(sed -n 's/^project(tearless VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)

fail() { echo "wheel: error: $*" >&2; exit 1; }

# Runs a command in a new folder, which becomes FOLDER when it is done.
filled() { # FOLDER COMMAND…
  [ ! -d "$1" ] || return 0
  local part
  mkdir -p "${1%/*}"
  part=$(mktemp -d "$1.part.XXXXXX")
  "${@:2}" "$part" || { rm -rf "$part"; fail "cannot fill $1; the message above says why"; }
  mv -T "$part" "$1" 2>/dev/null || rm -rf "$part" # another one was quicker
}

fetch_zig() {
  pip3 install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement tools/wheels/ziglang.txt --target "$1" \
    --root-user-action ignore
}

# As the installed packages, whose headers are used, by a list of sources that is made from the machine's own and seen by this call alone.
fetch_sources() {
  local apt=(apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$1/apt" -o Dir::State::lists="$1/lists"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=) file
  mkdir -p "$1/apt" "$1/lists/partial"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/{debian,ubuntu}.sources; do
    [ ! -f "$file" ] || sed -E 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$file" > "$1/apt/$(basename "$file")"
  done
  [ ! -f "$1/apt/sources.list" ] || mv "$1/apt/sources.list" "$1/apt/machine.list"
  "${apt[@]}" update && (cd "$1" && "${apt[@]}" source $(dpkg-query -W -f '${source:Package}=${source:Version} ' libsqlitecpp-dev libfmt-dev) >/dev/null) &&
    rm -rf "$1/lists" "$1/apt" "$1"/*.tar.* "$1"/*.dsc
}

options=()
if [ "${1:-}" = --built ]; then
  program=${TEARLESS_BIN:-build/bin}/tearless
  [ -x "$program" ] || fail "$program is missing: make build"
  options+=("${@:2}")
else
  zig=$cache/ziglang-$(sed -n 's/^ziglang==\([^ ]*\).*/\1/p' tools/wheels/ziglang.txt)
  sources=$cache/wheel-sources$(dpkg-query -W -f '-${source:Version}' libsqlitecpp-dev libfmt-dev)
  filled "$zig" fetch_zig
  filled "$sources" fetch_sources
  export ZIG_GLOBAL_CACHE_DIR=$cache/zig-cache ZIG_LOCAL_CACHE_DIR=$cache/zig-cache
  CXX="$zig/ziglang/zig c++ -target $(uname -m)-linux-gnu.$glibc" tools/configure.sh -S . -B build-wheel -G Ninja --log-level=WARNING \
    -DCMAKE_BUILD_TYPE=Release -DTEARLESS_ENGINE=OFF -DTEARLESS_PCH=OFF -DTEARLESS_WHEEL="manylinux_${glibc/./_}_$(uname -m)" \
    -DTEARLESS_WHEEL_SOURCES="$sources" > /dev/null
  targets=(programs)
  [ "${1:-}" != --tests ] || targets+=(tests)
  cmake --build build-wheel --target "${targets[@]}" --parallel "$(nproc)"
  [ "${1:-}" != --tests ] || tools/run_tests.py build-wheel
  program=build-wheel/bin/tearless
  options+=(--glibc "$glibc")
  for part in libcxx libcxxabi libunwind; do options+=(--license "$zig/ziglang/lib/$part/LICENSE.TXT=$part.txt"); done
  options+=(--license "$zig/ziglang/LICENSE=zig.txt" --license "$zig/ziglang/lib/libc/glibc/LICENSES=glibc.txt")
  mkdir -p dist
  ! git rev-parse --verify --quiet HEAD >/dev/null || git archive --prefix="tearless-$version/" HEAD | gzip -n > "dist/tearless-$version.tar.gz"
fi

stripped=$(mktemp -d)
trap 'rm -rf "$stripped"' EXIT
strip -o "$stripped/tearless" "$program"
for package in libsqlite3-dev libsqlitecpp-dev zlib1g-dev libssl-dev libfmt-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libboost1.74-dev libjs-dygraphs; do
  options+=(--license "/usr/share/doc/$package/copyright=$package.txt")
done
wheel=$(tools/pack_wheel.py tearless "$version" --summary "Ablation grids of Transformers: one TOML file in, a paper's table out" --readme README.md \
  --license LICENSE "${options[@]}" --file python/tearless=tearless --file "$stripped/tearless=scripts/tearless" --file grids=data/share/tearless/grids)
tag=${wheel##*-none-}
[ "${1:-}" = --built ] || [[ $("$program" --version) == *"wheel ${tag%.whl})" ]] ||
  fail "$wheel has another tag than its program says: $("$program" --version)"
echo "$wheel"
