#!/usr/bin/env bash
# The engine beside other programs on one GPU, within ten minutes: updates and search beside PyTorch as it is (tools/bench/compare.py), beam search
# beside CTranslate2 (tools/bench/ctranslate2.py), then updates beside torch.compile, which may take minutes before its first. No network, no package
# manager; needs Python's torch 2.11, and what tools/portable.sh and tools/portable_peers.sh gathered.
#   tools/gpu_peers.sh [PORTABLE] [RESULTS] [PYTHON] [PEERS]     default: build-portable, results/gpu, python3, build-portable-peers
#   tools/gpu_peers.sh --dry PORTABLE RESULTS PYTHON PEERS       the same parts on the CPU, with the smallest models and a peer that is given up
# Writes RESULTS/bench_*.{json,md}, gpu.json and gpu.md after each part. Measurements that are in RESULTS are kept, but those of peers that were given
# up. Exit code 1 where a part failed or was stopped at its limit.
set -euo pipefail
cd "$(dirname "$0")/.."
dry=
if [ "${1:-}" = --dry ]; then
  dry=yes
  shift
  [ $# -eq 4 ] || { echo "gpu_peers: --dry needs PORTABLE, RESULTS, PYTHON and PEERS" >&2; exit 2; }
fi
portable=${1:-build-portable}
results=${2:-results/gpu}
python=${3:-python3}
peers=${4:-build-portable-peers}
# Seconds. A part gets what is left of the whole, so that the last has written its page when a call of ten minutes ends.
readonly whole=570 eager_limit=170 decoding_limit=260 peer_limit=110 start_limit=40 turns_seconds=5

# shellcheck source=tools/gpu_machine.sh
. tools/gpu_machine.sh
[ -e "$peers/ctranslate2.tar.xz" ] || fail "$peers/ctranslate2.tar.xz is missing: run tools/portable_peers.sh where there is a network"
mkdir -p "$results"
work=${TMPDIR:-/tmp}/tearless-gpu-peers$dry # the trained model and what torch.compile has compiled, for another call on the same machine
mkdir -p "$work/site"
"$python" -m tarfile -e "$peers/ctranslate2.tar.xz" "$work/site" # tar would need xz
export TEARLESS_BENCH_PYTHON=$python TEARLESS_CTRANSLATE2_PYTHON=$python TORCHINDUCTOR_CACHE_DIR=$work/inductor CUBLAS_WORKSPACE_CONFIG=:4096:8

failed=0
part() { # LIMIT NAME COMMAND…: with the part's files
  local limit=$(($1 < whole - SECONDS ? $1 : whole - SECONDS))
  echo "== $2"
  if [ $limit -lt 20 ]; then
    echo "no time is left for this part: call again"
    failed=1
    return
  fi
  timeout --kill-after=5 $limit "${@:3}" --engine "$portable/bin/tearless-engine" --json "$results/$2.json" --markdown "$results/$2.md" || failed=1
  "$python" tools/gpu_page.py "$results" "$gpu" || failed=1
}
updates() { # LIMIT NAME OPTIONS…
  part "$1" "$2" "$python" tools/bench/compare.py --threads 1 --resume "${@:3}"
}
decoding() { # OPTIONS…
  PYTHONPATH=$work/site${PYTHONPATH:+:$PYTHONPATH} part $decoding_limit bench_ctranslate2 "$python" tools/bench/ctranslate2.py "$peers/multi30k" \
    --folder "$work/ctranslate2" --resume "$@"
}
if [ -n "$dry" ]; then
  updates $eager_limit bench_eager --sizes d32 --seconds 0.5 --limit $peer_limit --lists equal,decode
  decoding --widths 16 --epochs 1 --turns 1 --threads 1 --searches beam4 --types float32,int8_float32 --repeat 2
  updates $eager_limit bench_compiled --sizes d32 --seconds 0.5 --limit 0.5 --lists equal --peers padded
else
  updates $eager_limit bench_eager --device cuda --seconds $turns_seconds --limit $peer_limit --lists equal,real,decode --peers "eager padded,eager packed"
  decoding --device cuda --turns 3
  # What compiles soonest is first. A peer's row says when it was given up, so that is before the part is stopped.
  for peer in "compiled layers" "compiled padded with graphs" "compiled padded"; do
    limit=$((whole - SECONDS - start_limit))
    [ $limit -gt $peer_limit ] && limit=$peer_limit
    [ $limit -gt 0 ] || limit=1
    updates $((limit + start_limit)) bench_compiled --device cuda --seconds $turns_seconds --limit $limit --lists equal --peers "$peer"
  done
fi
echo "gpu_peers: $results/gpu.md, $SECONDS s"
exit $failed
