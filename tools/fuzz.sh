#!/usr/bin/env bash
# Builds the targets of tests/fuzz with libFuzzer and AddressSanitizer, and runs each on one core.
#   tools/fuzz.sh [SECONDS] [TARGET…]     default: 60, all of grid settings run_folder archive request sentence_stats worker_file slurm token_file corpus digits trees characters
# What it learns stays in build-fuzz/NAME; an input that breaks something is named build-fuzz/NAME-crash-…: fix the fault, and
# add the input, made small, to tests/fuzz/corpus/NAME.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift $(($# > 0))
targets=("${@:-}")
[ -n "${targets[0]}" ] || targets=(grid settings run_folder archive request sentence_stats worker_file slurm token_file corpus digits trees characters)
compiler=${CXX:-clang++}
folder=build-fuzz
mkdir -p "$folder"

"$compiler" --version 2>/dev/null | grep -q clang ||
  { echo "fuzz: \`$compiler\` is not clang: libFuzzer comes with clang 14 or newer (apt install clang, or set CXX)" >&2; exit 2; }
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$folder/probe.cc"
"$compiler" -fsanitize=fuzzer,address "$folder/probe.cc" -o "$folder/probe" 2>"$folder/probe.log" ||
  { echo "fuzz: $compiler cannot link libFuzzer ($folder/probe.log says why): install its compiler-rt" >&2; exit 2; }

# The parser of TOML is built from its headers, so that it is watched too; its own assertions are off in the library that we link.
flags=(-std=c++20 -O1 -g1 -fno-omit-frame-pointer -I. -DTEARLESS_SOURCE_ROOT="\"$PWD\"" -DTOML_HEADER_ONLY=1
  '-DTOML_ASSERT(x)=static_cast<void>(0)' $(pkg-config --cflags sentencepiece))
libraries=($(pkg-config --libs sentencepiece libcrypto zlib fmt) -lsentencepiece_train -lpthread)
harness=(base/*.cc base/score/*.cc harness/statistics/*.cc harness/claims/*.cc harness/grid/*.cc harness/views/*.cc harness/runs/*.cc harness/console/columns.cc harness/cells/*.cc harness/results/row.cc harness/table/*.cc)
engine=(base/*.cc engine/data/*.cc)
declare -A sources=([grid]="${harness[*]}" [settings]="base/*.cc" [run_folder]="${harness[*]}" [archive]="base/*.cc harness/archive/archive.cc" [request]="base/*.cc harness/service/protocol.cc" [sentence_stats]="base/*.cc base/score/*.cc" [worker_file]="base/*.cc harness/runs/*.cc harness/grants/worker_file.cc" [slurm]="base/*.cc harness/runs/*.cc harness/slurm/squeue.cc harness/slurm/commands.cc harness/children/*.cc" [token_file]="${engine[*]}" [corpus]="${engine[*]}" [digits]="${engine[*]}" [trees]="base/*.cc engine/data/dependency_trees.cc engine/data/text_lines.cc engine/data/raw_files.cc" [characters]="base/*.cc engine/data/character_text.cc engine/data/raw_files.cc")

# ccache, if installed, rebuilds only what has changed.
object() {
  local made="$folder/$(echo "$1" | tr / _)${2:-}.o"
  $(command -v ccache || true) "$compiler" "${flags[@]}" ${2:+-DTEARLESS_FUZZ_TARGET=fuzz_$2} -fsanitize=fuzzer-no-link,address -c "$1" -o "$made"
  echo "$made"
}

for target in "${targets[@]}"; do
  [ -n "${sources[$target]:-}" ] || { echo "fuzz: there is no target $target; there are: ${!sources[*]}" >&2; exit 2; }
  objects=()
  for source in ${sources[$target]} tests/support/paths.cc "tests/fuzz/fuzz_$target.cc"; do objects+=("$(object "$source")"); done
  objects+=("$(object tests/fuzz/libfuzzer.cc "$target")")
  "$compiler" -fsanitize=fuzzer,address "${objects[@]}" "${libraries[@]}" -o "$folder/fuzz_$target"
  mkdir -p "$folder/$target"
  echo "== $target, $seconds s"
  "$folder/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 \
    -artifact_prefix="$folder/$target-" "$folder/$target" "tests/fuzz/corpus/$target" 2>&1 | grep --line-buffered -E '^(stat::number|stat::peak|==|SUMMARY|wrong|terminate|#[0-9]+.*(DONE|INITED))|what\(\)|artifact|Test unit' || true
  compgen -G "$folder/$target-*" >/dev/null && { echo "fuzz: $target broke on $(ls "$folder/$target-"*)" >&2; exit 1; }
done
exit 0
