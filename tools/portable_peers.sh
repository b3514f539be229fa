#!/usr/bin/env bash
# Gathers what tools/gpu_peers.sh needs besides tools/portable.sh's folder: CTranslate2 for another machine's Python, without debugging symbols (the wheel
# has 43 MB, its libraries without them 14), and Multi30k.
#   tools/portable_peers.sh MULTI30K [FOLDER] [VERSION]     default: build-portable-peers, 3.12 (of the other Python)
# MULTI30K: data/task1/tok of https://github.com/multi30k/dataset. Multi30k is for research: it is no part of the repository, and FOLDER is ignored by git.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -d "${1:-}" ] || { echo "portable_peers: name the folder data/task1/tok of https://github.com/multi30k/dataset" >&2; exit 2; }
multi30k=$1
folder=${2:-build-portable-peers}
version=${3:-3.12}
rm -rf "$folder"
mkdir -p "$folder/multi30k"
for set in train val test_2016_flickr test_2017_flickr test_2017_mscoco; do
  cp "$multi30k/$set".lc.norm.tok.{de,en}* "$folder/multi30k/"
done
chmod u+w "$folder"/multi30k/*
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
wanted=$(sed -n 's/^INSTALL = "pip install \(ctranslate2==[0-9.]*\) numpy"$/\1/p' tools/bench/ctranslate2.py)
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --no-compile --target "$site" --python-version "$version" --implementation cp --only-binary=:all: \
  --platform manylinux_2_28_x86_64 "$wanted"
strip --strip-unneeded "$site"/ctranslate2/_ext*.so "$site"/ctranslate2.libs/*.so*
tar -C "$site" -c ctranslate2 ctranslate2.libs | xz -9 >"$folder/ctranslate2.tar.xz"
du -sh "$folder"
