#!/usr/bin/env bash
# tools/configure.sh --preset release …: cmake with these arguments, also in a checkout that was copied or moved with its build folders.
# CMake refuses the cache of another folder; the paths of that folder are in all that was built there, so it is built again.
set -euo pipefail
cd "$(dirname "$0")/.."
for cache in build*/CMakeCache.txt; do
  [ -f "$cache" ] || continue
  build=${cache%/*}
  made_in=$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$cache")
  [ "$made_in" -ef "$build" ] && continue
  echo "configure: $build/ was made in $made_in: everything in it is built again" >&2
  rm -rf "$cache" "$build/CMakeFiles" # as cmake --fresh does, of 3.24 and newer
done
exec cmake "$@"
