#!/bin/sh
# tearless-engine as pip installs it: starts tearless-engine.elf with the libraries that it was packed with; all are in lib/tearless-engine
# beside bin/. A copy in a workspace has tearless-engine.elf beside it, but not the libraries, which are too large: tearless-engine.home
# names their folder (docs/run_directory.md).
trap 'exit 75' INT TERM # as the engine ends itself
fail() { echo "tearless-engine: $*" >&2; exit 74; }

file=$0
case $file in */*) ;; *) file=./$file ;; esac
[ ! -h "$file" ] || file=$(readlink -f -- "$file")
here=${file%/*}
if [ -e "$here/tearless-engine.home" ]; then
  read -r home <"$here/tearless-engine.home"
else
  here=$here/../lib/tearless-engine
  home=$here
fi

[ -r "$here/tearless-engine.libraries" ] || fail "$here is not as pip installs it: pip install --force-reinstall tearless-engine"
read -r version tag sum <"$here/tearless-engine.libraries"
needed=${tag#manylinux_2_} && needed=${needed%_x86_64}
found=$(getconf GNU_LIBC_VERSION 2>/dev/null)
found=${found##*[ .]}
[ "${found:-$needed}" -ge "$needed" ] || fail "it needs glibc 2.$needed or later, and $(uname -n) has 2.$found: train on a newer machine"
[ "$here" = "$home" ] || {
  [ -r "$home/tearless-engine.libraries" ] ||
    fail "its libraries are in $home, which $(uname -n) does not have: pip install tearless-engine==$version there, or submit the grid again"
  read -r installed _ installed_sum <"$home/tearless-engine.libraries"
  [ "$sum" = "$installed_sum" ] ||
    fail "the libraries in $home are of another build, $installed: pip install tearless-engine==$version there, or submit the grid again"
}

export TEARLESS_LIBRARIES="$home" TEARLESS_WHEEL="${tag%_x86_64}"
export TEARLESS_OPENBLAS="${TEARLESS_OPENBLAS:-$home/libscipy_openblas.so}"
export LD_LIBRARY_PATH="$home${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/tearless-engine.elf" "$@"
