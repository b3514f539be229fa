#!/usr/bin/env python3
"""ctranslate2.py: times decoding by tearless against CTranslate2 with the same weights, and compares what they write.

For each width d a pre-norm Transformer of 3+3 layers, 4 heads, d_ff = 4 d, with 5,000 joint BPE merges, is trained by tearless-engine on
Multi30k de-en (2,000 updates; all settings: settings_of() below), or taken from --folder if it was trained there before; a training that
was interrupted resumes. ctranslate2_peer.py writes its weights as a model of CTranslate2. Both decode the first 800 sentences of
test_2016_flickr in fp32, greedily and by two beam searches, in turns: tearless, CTranslate2, tearless, … A rate is 800 over the median of
the seconds.

What is timed. Tearless: a derived run, in a new process each turn; the seconds are its own (`decoding_seconds` in measured.json), from
encoded sentences to tokens, the model loaded. Its first touch of memory is in them. CTranslate2: one process that stays, with the model
loaded and a search made before; the seconds of translate_batch(), from sub-words to sub-words. decode.batch_tokens is the default.
CTranslate2's batches, and on several threads whether they divide a batch (intra) or decode batches of their own (inter), are those that
were fastest in trials before the turns; the report names them.

Searches. Outputs have at most 100 tokens on both sides and do not begin with EOS; source sentences end with EOS.
    greedy      the most probable token, on both sides. All outputs must be equal: the program ends with 1 where they are not. CTranslate2
                then computes no softmax.
    beam4       beam 4, no length penalty. Both end a sentence when its best hypothesis has ended, as nothing can become better.
                Tearless (decode.search = "twt") keeps ended hypotheses among the four.
    beam4_mean  beam 4, Σ log p divided by the length, EOS counted. With decode.search = "fairseq" both do the same: of the eight best
                extensions those that end are set aside, and the search ends with four. Tearless ends earlier where one of them is
                better than any other can become; at the first position CTranslate2 divides EOS' probability among the other tokens.

    tools/bench/ctranslate2.py MULTI30K --folder FOLDER --markdown results/bench/ctranslate2.md
    tools/bench/ctranslate2.py MULTI30K --folder FOLDER --widths 128 --turns 1 --searches greedy       tries whether everything works

MULTI30K has train.lc.norm.tok.de and .en, val. and test_2016_flickr. likewise, also as .gz or .xz: data/task1/tok of
https://github.com/multi30k/dataset. Needs a Python 3.11 or newer with ctranslate2 and numpy: this one, or the one that
TEARLESS_CTRANSLATE2_PYTHON names.
"""

import argparse
import datetime
import gzip
import json
import lzma
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tomllib

import measured
from measured import numbers, processor, table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INSTALL = "pip install ctranslate2==4.8.5 numpy"
SETS = {"train": ("train", None), "dev": ("val", None), "test": ("test_2016_flickr", 800)}  # of Multi30k, and how many sentences
EPOCH = 500  # updates
LONGEST = 100  # tokens of an output
GOALS = {"greedy": 1.0, "beam4": 1.15, "beam4_mean": 1.15}
# Settings of [derived], and arguments of translate_batch().
SEARCHES = {
    "greedy": ({"beam": 1}, {"beam_size": 1}),
    "beam4": ({"beam": 4, "search": "twt", "alpha": 0.0}, {"beam_size": 4, "length_penalty": 0}),
    "beam4_mean": ({"beam": 4, "search": "fairseq", "length_penalty": "length", "alpha": 1.0}, {"beam_size": 4, "length_penalty": 1}),
}
# Tried for CTranslate2: (max_batch_size, batch_type).
BATCHES = [(16, "examples"), (32, "examples"), (64, "examples"), (128, "examples"), (1024, "tokens"), (2048, "tokens"), (4096, "tokens")]
TRIALS = 2


def settings_of(width, arguments):
    """TOML. The output vocabulary is all but PAD and BOS, so that both sides compute as many logits."""
    return f"""# Written by tools/bench/ctranslate2.py.
[data]
name       = "multi30k-de-en"
train      = "data/train"
dev        = "data/dev"
test       = "data/test"
source     = "de"
target     = "en"
how_to_get = "tools/bench/ctranslate2.py writes it"

[text]
kind   = "bpe"
merges = 5000

[model]
encoder_layers = 3
decoder_layers = 3
d_model        = {width}
d_ff           = {4 * width}
heads          = 4
placement      = "pre"
norm           = {{ kind = "layer_norm" }}
tied_embeddings        = "all"
output_bias            = true
mask_target_vocabulary = false
dropout = {{ residual = 0.1, attention = 0.1, relu = 0.1, word = 0.0 }}

[train]
epoch_updates = {EPOCH}
max_epochs    = {arguments.epochs}
batch         = {{ tokens = 1024 }}
schedule      = {{ kind = "invsqrt", warmup_updates = 500, peak_lr = 0.003 }}

[decode]
beam       = 1
max_length = {LONGEST}

[run]
threads = {measured.cores()}
"""


# --- the model ---------------------------------------------------------------------------------------------------------------------
def fail(message):
    sys.exit(f"ctranslate2: {message}")


def environment(arguments, threads):
    cache = str(arguments.folder / "cache")
    return os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "TEARLESS_CACHE": cache}


def engine(arguments, what, *command, **options):
    try:
        return measured.output_of([arguments.engine, *command], env=environment(arguments, 1), **options)
    except RuntimeError as error:
        fail(f"{what} failed: {error}")


def text_of(file):
    for suffix, opened in {"": open, ".gz": gzip.open, ".xz": lzma.open}.items():
        packed = file.with_name(file.name + suffix)
        if packed.exists():
            with opened(packed, "rt", encoding="utf-8", newline="\n") as lines:
                return list(lines)
    fail(f"{file} is not there, nor as .gz or .xz: name the folder data/task1/tok of https://github.com/multi30k/dataset")


def write_corpus(arguments):
    for part, (name, count) in SETS.items():
        for language in ("de", "en"):
            measured.write(arguments.folder / "data" / f"{part}.{language}",
                           "".join(text_of(arguments.multi30k / f"{name}.lc.norm.tok.{language}")[:count]))


def train(arguments, width):
    """The folder of the run, trained, and the file of its prepared corpus."""
    config = arguments.folder / f"d{width}.toml"
    measured.write(config, settings_of(width, arguments))
    said = engine(arguments, "tearless-engine prepare", "prepare", config).splitlines()[-1]  # FOLDER: …; vocabulary N
    answer = ask(arguments, config)
    run = arguments.folder / "runs" / answer["id"]
    if not (run / "DONE").exists():
        vocabulary = said.split("; ")[-1]
        print(f"d = {width}: training {answer['id']}, {answer['parameters']:,} parameters, {vocabulary}", flush=True)
        engine(arguments, "training", "train", "--config", config, "--runs", run.parent)
    return run, pathlib.Path(said.split(": ")[0]) / "tokens.bin"


def ask(arguments, config, threads=1, derived=None):
    """The answer of `tearless-engine check --json` (docs/run_directory.md)."""
    question = {"settings": flat(config) | {"run.threads": threads}, "folder": str(config.parent)}
    if derived:
        question["derived"] = [{f"derived.{key}": value for key, value in derived.items()}]
    answer = json.loads(engine(arguments, "tearless-engine check", "check", "--json", input=json.dumps(question) + "\n"))
    if "error" in answer:
        fail(answer["error"])
    return answer


def flat(config):
    def settings(table, prefix=""):
        for key, value in table.items():
            if isinstance(value, dict):
                yield from settings(value, f"{prefix}{key}.")
            else:
                yield prefix + key, value
    return dict(settings(tomllib.loads(config.read_text())))


# --- the sides -------------------------------------------------------------------------------------------------------------------
class Tearless:
    """Decodes by a derived run that is deleted before the next turn."""

    def __init__(self, arguments, width, search, threads):
        derived = {"name": search, "kind": "decode", "set": "test"} | SEARCHES[search][0]
        self.arguments, self.threads = arguments, threads
        self.answer = ask(arguments, arguments.folder / f"d{width}.toml", threads, derived)
        self.run = arguments.folder / "runs" / self.answer["id"]

    def decode(self):
        """(seconds, lines)"""
        shutil.rmtree(self.run, ignore_errors=True)
        self.run.mkdir()
        (self.run / "run.toml").write_text(self.answer["canonical"])
        (self.run / "local.toml").write_text(self.answer["local"])
        engine(self.arguments, "decoding", "train", self.run)
        lines = (self.run / "outputs/test.hyp").read_text(encoding="utf-8").splitlines()
        return json.loads((self.run / "attempts/1/measured.json").read_text())["decoding_seconds"], lines


class CTranslate2:
    """ctranslate2_peer.py with the model of a run, on some threads."""

    def __init__(self, arguments, run, prepared, threads):
        # -P: `import ctranslate2` must not find this file.
        command = [arguments.python, "-P", HERE / "ctranslate2_peer.py", run, prepared, "--threads", str(threads)]
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment(arguments, threads))
        self.ready = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            fail(f"CTranslate2 gave no answer (exit code {self.process.wait()})")
        return json.loads(line)

    def decode(self, **request):
        """(seconds, lines)"""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        return answer["seconds"], answer["lines"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


# --- measuring -------------------------------------------------------------------------------------------------------------------
def tuned(peer, threads, search):
    """The fastest request: each is tried TRIALS times, and the shorter time counts."""
    kinds = ["intra", "inter"] if threads > 1 else ["intra"]
    requests = [{"threads": kind, "max_batch_size": size, "batch_type": batch_type, "max_decoding_length": LONGEST} | SEARCHES[search][1]
                for kind in kinds for size, batch_type in BATCHES]
    return min(requests, key=lambda request: min(peer.decode(**request)[0] for _ in range(TRIALS)))


def compare(arguments, width, run, threads, search, peer):
    request = tuned(peer, threads, search)
    tearless = Tearless(arguments, width, search, threads)
    seconds = {"tearless": [], "CTranslate2": []}
    for _ in range(arguments.turns):
        for name, side in {"tearless": tearless.decode, "CTranslate2": lambda: peer.decode(**request)}.items():
            took, lines = side()
            seconds[name].append(took)
            if name == "tearless":
                ours = lines
    sentences = len(ours)
    rates = {name: sentences / statistics.median(all_seconds) for name, all_seconds in seconds.items()}
    ratio = rates["tearless"] / rates["CTranslate2"]
    return {"width": width, "threads": threads, "search": search, "run": run.name, "request": request, "seconds": seconds,
            "sentences": sentences, "equal": sum(a == b for a, b in zip(ours, lines, strict=True)),
            "words": sum(len(line.split()) for line in ours) / sentences, "longest": max(len(line.split()) for line in ours),
            "rates": rates, "ratio": ratio, "goal": GOALS[search], "met": ratio >= GOALS[search]}


# --- the report ------------------------------------------------------------------------------------------------------------------
def batches_of(request, threads):
    size = f"{request['max_batch_size']} {request['batch_type']}"
    return size if threads == 1 else f"{size}, {request['threads']}_threads={threads}"


def report(document):
    results = document["results"]
    lines = ["# Decoding against CTranslate2", "",
             f"Measured {document['date']} on {document['processor']}, {document['cores']} cores. {document['tearless']}, matmuls "
             f"by {document['arithmetic']}; CTranslate2 {document['ctranslate2']}, float32. Multi30k de-en, models of 3+3 layers and "
             f"{document['updates']:,} updates; medians of {document['turns']} turns. What is timed, and how: "
             "tools/bench/ctranslate2.py.", ""]
    lines += table(["d", "search", "threads", "tearless, sentences/s", "CTranslate2, sentences/s", "ratio", "goal", "met", "equal outputs",
                    "words an output", "batches of CTranslate2"],
                   [[str(r["width"]), r["search"], str(r["threads"]), f"{r['rates']['tearless']:.0f}", f"{r['rates']['CTranslate2']:.0f}",
                     f"{r['ratio']:.2f}", f"{r['goal']:g}x", "yes" if r["met"] else "no", f"{r['equal']} of {r['sentences']}",
                     f"{r['words']:.1f}", batches_of(r["request"], r["threads"])] for r in results])
    lines += ["", f"    {INSTALL}", "    export TEARLESS_CTRANSLATE2_PYTHON=/path/to/python",
              "    tools/bench/ctranslate2.py MULTI30K --folder FOLDER --markdown FILE"]
    return "\n".join(lines) + "\n"


# --- the front -------------------------------------------------------------------------------------------------------------------
def find_ctranslate2(python):
    """Its version; or an end with one sentence."""
    try:
        return measured.output_of([python, "-P", "-c", "import numpy, ctranslate2; print(ctranslate2.__version__)"], timeout=120)
    except RuntimeError as error:
        fail(f"{python} is no Python 3.11 or newer with ctranslate2 ({error}): get it with `{INSTALL}` in one that is, and name that with "
             "TEARLESS_CTRANSLATE2_PYTHON=/path/to/python")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("multi30k", type=pathlib.Path, metavar="MULTI30K", help="folder with the tokenised files")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for models, which are trained once, and caches")
    parser.add_argument("--engine", type=pathlib.Path, default=ROOT / "build/bin/tearless-engine", metavar="PROGRAM")
    parser.add_argument("--widths", default="128,256", metavar="N,…", help="default: 128,256")
    parser.add_argument("--searches", default=",".join(SEARCHES), metavar="NAME,…", help="default: all")
    parser.add_argument("--threads", default="1,2", metavar="N,…", help="default: 1,2")
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="of each side (default: 5)")
    parser.add_argument("--epochs", type=int, default=4, metavar="N", help="of the training, 500 updates each (default: 4)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all times")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the report")
    arguments = parser.parse_args()
    arguments.widths = numbers(parser, "--widths", arguments.widths, 4)
    arguments.threads = numbers(parser, "--threads", arguments.threads, 1)
    arguments.searches = arguments.searches.split(",")
    for search in arguments.searches:
        if search not in SEARCHES:
            parser.error(f"--searches: there is no {search!r}; there are {', '.join(SEARCHES)}")
    for option in ("turns", "epochs"):
        if getattr(arguments, option) < 1:
            parser.error(f"--{option} must be at least 1")
    arguments.folder, arguments.engine = arguments.folder.resolve(), arguments.engine.resolve()
    arguments.python = os.environ.get("TEARLESS_CTRANSLATE2_PYTHON") or sys.executable
    if not os.access(arguments.engine, os.X_OK):
        fail(f"{arguments.engine} is not there: `make build` makes it, or name it with --engine")
    return arguments


def main():
    arguments = parse_arguments()
    document = {
        "date": datetime.date.today().isoformat(), "processor": processor(), "cores": measured.cores(),
        "tearless": engine(arguments, "tearless-engine", "--version").splitlines()[0], "arithmetic": "",
        "ctranslate2": find_ctranslate2(arguments.python), "updates": EPOCH * arguments.epochs, "turns": arguments.turns,
        "results": [],
    }
    write_corpus(arguments)
    for width in arguments.widths:
        run, prepared = train(arguments, width)
        for threads in arguments.threads:
            with CTranslate2(arguments, run, prepared, threads) as peer:
                for search in arguments.searches:
                    result = compare(arguments, width, run, threads, search, peer)
                    document["results"].append(result)
                    document["arithmetic"] = (run / "attempts/1/arithmetic").read_text().strip()
                    print(f"d = {width}, {search}, {threads} threads: {result['rates']['tearless']:.0f} and "
                          f"{result['rates']['CTranslate2']:.0f} sentences/s, ratio {result['ratio']:.2f}, {result['equal']} of "
                          f"{result['sentences']} outputs equal", flush=True)
                    measured.write(arguments.json, json.dumps(document, indent=1))
                    measured.write(arguments.markdown, report(document))
    print("\n" + report(document), end="")
    differ = [r for r in document["results"] if r["search"] == "greedy" and r["equal"] < r["sentences"]]
    return 1 if differ else 0


if __name__ == "__main__":
    measured.run("ctranslate2", main)
