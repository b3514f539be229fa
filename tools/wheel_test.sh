#!/usr/bin/env bash
# tools/wheel_test.sh [--quick] [FOLDER]: installs the wheels of FOLDER (default: dist) into an environment that has nothing else, types what README
# says in an empty folder, and prints the seconds of each step. Needs python3 with venv or pip, and no network. --quick: runs of one epoch in place of
# the whole table.
set -euo pipefail
quick=
if [ "${1:-}" = --quick ]; then
  quick=yes
  shift
fi
wheels=$(cd "${1:-$(dirname "$0")/../dist}" && pwd)
scratch=$(mktemp -d)
trap 'tearless stop --now >"$scratch.log" 2>&1 || true; rm -rf "$scratch" "$scratch.log"' EXIT
mkdir "$scratch/work"
cd "$scratch/work"
export HOME=$scratch PATH=$scratch/env/bin:$PATH
unset TEARLESS_ENGINE TEARLESS_WORKSPACE TEARLESS_TORCH PYTHONPATH

out=$scratch/out
fail() {
  cat "$out"
  echo "wheel_test: $*" >&2
  exit 1
}
step() { # WORDS COMMAND…: runs it with its output in $out, and says how long it took
  local begin=$EPOCHREALTIME
  "${@:2}" >"$out" 2>&1 || fail "$1: exit code $?: ${*:2}"
  awk "BEGIN { printf \"%6.1f s  %s\n\", $EPOCHREALTIME - $begin, \"$1\" }"
}
says() { grep -q -- "$1" "$out" || fail "this does not say \"$1\""; }

pip=(pip)
if ! python3 -m venv "$scratch/env" >"$out" 2>&1; then  # Debian's package python3-venv is missing
  python3 -m venv --clear --without-pip "$scratch/env" >"$out" 2>&1 || fail "apt-get install python3-venv"
  pip=(pip3 --python "$scratch/env/bin/python")
fi
step "pip install tearless tearless-engine" "${pip[@]}" install --no-index --disable-pip-version-check "$wheels"/*.whl
for program in tearless tearless-engine; do
  step "$program --version" $program --version
  says "wheel manylinux_"
done

! tearless run dmo >"$out" 2>&1 || fail "a grid that does not exist is trained"
says "cannot read dmo"
short=()
[ ! "$quick" ] || short=(--set train.max_epochs=1)
step "a first table: one row of the demo" tearless run demo --only model.init=small_init --only model.placement=pre --only seed=1 "${short[@]}"
says "2 done"
step "tearless table" tearless table
says "PreNorm .*[0-9][.][0-9]"
if [ ! "$quick" ]; then
  step "tearless run demo" tearless run demo
  says "16 runs: 16 done"
  step "tearless table demo" tearless table demo
  cat "$out"
fi

step "tearless runs, explain, sql, verify" sh -ec 'tearless runs --csv; tearless explain 1; tearless sql "SELECT count(*) FROM scores_view"; tearless verify'
step "tearless copy demo.tar.gz" tearless copy demo.tar.gz
step "its table" tearless table --workspace demo.tar.gz
says "PreNorm .*[0-9][.][0-9]"
step "tearless copy elsewhere" tearless copy ../elsewhere
step "a run again from there, by its copy of the engine" tearless verify-resume 1 --workspace ../elsewhere
says "1 equal"
step "tearless submit demo --executor workers" tearless submit demo --executor workers --set train.max_epochs=1 --only seed=1 --only warm-up=none
step "tearless worker" tearless worker --idle 3
step "import tearless" python -c 'import tearless; print(tearless.__version__, tearless.program())'
says "$scratch/env/bin/tearless"
echo "wheel_test: all of it works"
