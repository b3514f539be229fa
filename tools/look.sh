#!/usr/bin/env bash
# look.sh REPORT.html [FOLDER]: opens a page of `tearless report` in Chromium, and leaves pictures of it in FOLDER
# (default: a new temporary one): at three widths, light and dark, with the first cell and the first run open, and the
# pages of its PDF. Fails if the page asks for anything, breaks its content security policy, reports an error, or is
# wider than its window. Skipped without Chromium. TEARLESS_CHROMIUM names another browser of that kind.
set -euo pipefail
[ $# -ge 1 ] && [ -f "$1" ] || { echo "usage: tools/look.sh REPORT.html [FOLDER]"; exit 2; }
browser=${TEARLESS_CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$browser" ] || { echo "look: skipped: no chromium here"; exit 0; }
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
status=0
python3 "$(dirname "$0")/look.py" "$browser" "$1" "$folder" || status=$?
if [ ! -f "$folder/report.pdf" ]; then
  :
elif command -v pdftoppm >/dev/null; then
  pdftoppm -r 60 -png "$folder/report.pdf" "$folder/page"
else
  echo "look: pdftoppm is not installed, no pictures of the PDF's pages"
fi
echo "look: pictures in $folder"
exit $status
