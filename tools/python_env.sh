#!/usr/bin/env bash
# Puts pandas, pyarrow, mypy and TensorBoard's reader, of the versions in tools/wheels/python_tests.txt, into a folder of the per-user cache, for
# tests, and prints the folder, which goes into PYTHONPATH. Fetches them once; where they cannot be had it says so in one line and ends with 1.
#   PYTHON=python3.12 tools/python_env.sh    for that interpreter
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
list=tools/wheels/python_tests.txt
folder=${XDG_CACHE_HOME:-$HOME/.cache}/tearless/python-tests-$("$python" -c 'import sys; print(sys.implementation.cache_tag)')-$(sha256sum $list | cut -c 1-8)
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
if [ ! -e "$folder" ]; then
  rm -rf "$folder.part"
  reason=$("$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: --require-hashes \
    --timeout 10 --retries 1 --target "$folder.part" --requirement $list 2>&1) ||
    { echo "python_env: pip cannot fetch $list for $("$python" --version): $(grep -m 1 -i error <<<"$reason" || tail -n 1 <<<"$reason")" >&2; exit 1; }
  mv "$folder.part" "$folder"
fi
echo "$folder"
