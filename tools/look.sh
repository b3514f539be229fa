#!/usr/bin/env bash
# look.sh REPORT.html [FOLDER]: opens a page of `tearless report` in Chromium, and leaves pictures of it in FOLDER
# (default: a new temporary one): at three widths, light and dark, with the first cell and the first run open, and the
# pages of its PDF. look.sh ADDRESS [FOLDER]: that which `tearless serve` has printed: its first page, then the first
# sweep, the first run and its log. Without arguments: both, of results/twt_figures_small.tar.gz. Fails if a page asks
# others for anything, breaks its content security policy, reports an error, or is wider than its window. Skipped
# without Chromium. TEARLESS_CHROMIUM names another browser of that kind.
set -euo pipefail
browser=${TEARLESS_CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$browser" ] || { echo "look: skipped: no chromium here"; exit 0; }
here=$(cd "$(dirname "$0")" && pwd)

look() {  # PAGE FOLDER
  mkdir -p "$2"
  local status=0
  python3 "$here/look.py" "$browser" "$1" "$2" || status=$?
  if [ ! -f "$2/report.pdf" ]; then
    :
  elif command -v pdftoppm >/dev/null; then
    pdftoppm -r 60 -png "$2/report.pdf" "$2/page"
  else
    echo "look: pdftoppm is not installed, no pictures of the PDF's pages"
  fi
  echo "look: pictures in $2"
  return $status
}

if [ $# -gt 0 ]; then
  [ -f "$1" ] || [[ $1 == http://* ]] || { echo "usage: tools/look.sh [REPORT.html | ADDRESS [FOLDER]]"; exit 2; }
  look "$1" "${2:-$(mktemp -d)}"
  exit
fi

tearless=$here/../build/bin/tearless
[ -x "$tearless" ] || { echo "look: skipped: $tearless is not built"; exit 0; }
folder=$(mktemp -d)
export TEARLESS_WORKSPACE=$here/../results/twt_figures_small.tar.gz XDG_CACHE_HOME=$folder/cache
"$tearless" report -o "$folder/report.html" >/dev/null
"$tearless" serve --port 0 >"$folder/address" 2>/dev/null &
trap 'kill $!' EXIT
until [ -s "$folder/address" ]; do
  kill -0 $! 2>/dev/null || { echo "look: tearless serve ended"; exit 1; }
  sleep 0.1
done
status=0
look "$folder/report.html" "$folder/report" || status=1
look "$(cat "$folder/address")" "$folder/served" || status=1
exit $status
