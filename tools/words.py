#!/usr/bin/env python3
"""words.py [FILE…]: finds old or odd words where the glossary (docs/design.md) or the field has a term, and spelling that is
not British (codespell finds misspellings). Prints file:line: word → term; exit code 1 if it finds any. Default: every tracked file in SCOPE.

To add a word: a row in WORDS. If a find is right as it is: a row in ALLOWED, with the reason.
"""
import pathlib
import re
import subprocess
import sys

SCOPE = r"\.(cc|h|cu|cuh|cpp|def|sql|md|py|sh|cmake|toml)$|(^|/)(CMakeLists\.txt|Makefile)$"
# Formula sheets quote their papers; lists of mutants and results are records; the corpora and golden texts are data.
EXCLUDED = r"^(docs/spec|docs/mutants|results|tests/golden|tests/fuzz/corpus|grids/demo)/|^tools/words\.py$"

# (pattern, the term to use, the files that it applies to). The parts of a name count as words: kTurnedAway, is_settled.
START = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))"
WORDS = [
    # the model and its kernels
    (r"Seam|seams?", "SublayerConnection", ""),
    (r"(?<!dot[ _])(?<!inner )(?<!matrix )products?(?! of|_low|_high)", "matmul", r"^(engine|tests/engine|tools)/"),
    (r"[Ww]alk(s|ed|er|ing)?", "loop, traverse, forward pass", ""),
    (r"captured steps?|steps? of training", "update", r"^(?!engine/decode/)"),
    (r"(?<![Ll]earning )(?<!learning_)rates?(?! of)", "learning rate", r"^(tests/)?engine/(train/|ops/adam)"),
    # constants
    (r"k(Most|Widest|Fewest|Least|Longest|Shortest)(?=[A-Z])", "kMax…, kMin…", r"\.(cc|h|cu|cpp)$"),
    # the harness
    (r"same shape|runs? of (a|each|one|its) shape", "resource class", r"^docs/"),
    (r"what is so already", "idempotent", ""),
    (r"settle[ds]?|settling", "finished; finish", ""),
    (r"give_back|giv(es|ing) back", "release, return", ""),
    (r"look_at", "check", r"^harness/"),
    (r"heard|hearing|tell|told", "on_event, notify", r"^(tests/)?harness/(launch|schedule)/"),
    (r"vouch(es|ed)?( for)?", "has a checksum of", ""),
    (r"[Jj]udge[sd]?|[Jj]udging", "reference, expected; verdict, decide", ""),
    (r"anew", "again; regenerate, rebuild", ""),
    (r"passed over", "skipped", ""),
    (r"(goes|going|gone|went) on(?! (the|a|CUDA))", "continue, resume", ""),
    (r"at work", "active, running", ""),
    (r"mend(s|ed|ing)?", "fix, repair", ""),
    (r"hangs? on", "depends on", ""),
    (r"what became of", "how it ended", ""),
]

# American → British, but not in the names of other libraries: after a dot or a colon, or before a bracket.
BRITISH = r"(initial|normal|optim|organ|recogn|serial|synchron|summar|token|vector)(iz)(e[drs]?|ing|ation|ations|er)|(behavi|col)(or)(s|ed)?"
WORDS.append((rf"(?<![.:])({BRITISH})(?![(:<\w])", "British spelling: -ise, -our", ""))

# (file, text that is right there, reason)
ALLOWED = [
    ("tools/make_golden_scores.py", r"tokenize[='\"]", "sacreBLEU's name of an argument"),
    ("tools/make_golden_significance.py", r"tokenize[='\"]", "sacreBLEU's name of an argument"),
    ("tools/make_golden_tokenisers.py", r"tokenize[='\"]", "sacreBLEU's name of an argument"),
    ("engine/ops/dropout.cc", r"product", "Philox multiplies numbers"),
    ("tests/engine/cuda/", r"[Ss]um of products|the product and the sum", "arithmetic: a dot product, a multiply-add"),
    ("tools/cmake/toolchain.cmake", r"Results are the product", "what the program is for"),
    ("tools/look.py", r"prefers-color-scheme", "the name in CSS"),
]


def finds(path, text):
    words = [(re.compile(rf"{START}({pattern})(?![a-z])"), term) for pattern, term, where in WORDS if re.search(where, path)]
    allowed = [re.compile(pattern) for file, pattern, _ in ALLOWED if re.search(file, path)]
    for number, line in enumerate(text.split("\n"), 1):
        for pattern in allowed:
            line = pattern.sub("", line)
        for pattern, term in words:
            for match in pattern.finditer(line):
                yield f"{path}:{number}: {match[0]} → {term}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    tracked = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split("\n")
    files = [path for path in sys.argv[1:] or tracked if re.search(SCOPE, path) and not re.search(EXCLUDED, path)]
    found = [find for path in files if (root / path).is_file() for find in finds(path, (root / path).read_text(errors="replace"))]
    for find in found:
        print(find)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
