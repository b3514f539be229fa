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

Searches. Outputs have at most 100 tokens on both sides (60 on a GPU) and do not begin with EOS; source sentences end with EOS.
    greedy      the most probable token, on both sides. All outputs must be equal: the program ends with 1 where they are not. CTranslate2
                then computes no softmax.
    beam4       beam 4, no length penalty. Both end a sentence when its best hypothesis has ended, as nothing can become better.
                Tearless (decode.search = "twt") keeps ended hypotheses among the four.
    beam4_mean  beam 4, Σ log p divided by the length, EOS counted. With decode.search = "fairseq" both do the same: of the eight best
                extensions those that end are set aside, and the search ends with four. Tearless ends earlier where one of them is
                better than any other can become; at the first position CTranslate2 divides EOS' probability among the other tokens.

On a GPU (--device cuda) the model is the base model, 6+6 layers and d = 512, with 8,000 merges, trained and decoded by tearless in bf16;
CTranslate2 decodes its weights in each of --types. The sentences are all of Multi30k's test sets, --repeat times over: what a process of
tearless does once (loading libraries, capturing decode steps) is in its seconds, but is a small part of them. Numbers are rounded otherwise on
both sides, so outputs are compared by BLEU of one side's against the other's; below LEAST_BLEU the program ends with 1, because weights or
searches differ. CTranslate2's wheel is of CUDA 12. Where there is no libcublas.so.12, it gets CUDA 13's by that name: it takes nine functions
from that library by their names (dlsym), and they are the same in both.

    tools/bench/ctranslate2.py MULTI30K --folder FOLDER --markdown results/bench/ctranslate2.md
    tools/bench/ctranslate2.py MULTI30K --folder FOLDER --device cuda        on a GPU; tools/gpu_peers.sh does it
    tools/bench/ctranslate2.py MULTI30K --folder FOLDER --widths 128 --turns 1 --searches greedy       tries whether everything works

MULTI30K has train.lc.norm.tok.de and .en, val. and test_2016_flickr. likewise, also as .gz or .xz: data/task1/tok of
https://github.com/multi30k/dataset. Needs a Python 3.11 or newer with ctranslate2 and numpy: this one, or the one that
TEARLESS_CTRANSLATE2_PYTHON names.
"""

import argparse
import ctypes
import dataclasses
import datetime
import gzip
import json
import lzma
import os
import pathlib
import re
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


@dataclasses.dataclass
class Device:
    """What is measured there."""
    widths: str
    types: str  # of CTranslate2
    threads: str
    searches: str
    repeat: int
    layers: int
    heads: int
    merges: int
    batch: int  # tokens of an update
    peak_lr: float
    tests: tuple  # sets of Multi30k
    sentences: int | None  # the first of them
    longest: int  # tokens of an output
    batches: tuple  # tried for CTranslate2: (max_batch_size, batch_type)
    settings: str  # the last of [decode], and [run]


SETS = {"train": ("train",), "dev": ("val",)}  # of Multi30k
EPOCH = 500  # updates
BLEU = re.compile(r"bleu ([\d.]+),")
GOALS = {"greedy": 1.0, "beam4": 1.15, "beam4_mean": 1.15}
# Settings of [derived], and arguments of translate_batch().
SEARCHES = {
    "greedy": ({"beam": 1}, {"beam_size": 1}),
    "beam4": ({"beam": 4, "search": "twt", "alpha": 0.0}, {"beam_size": 4, "length_penalty": 0}),
    "beam4_mean": ({"beam": 4, "search": "fairseq", "length_penalty": "length", "alpha": 1.0}, {"beam_size": 4, "length_penalty": 1}),
}
LEAST_BLEU = 90
TRIALS = 2
DEVICES = {
    "cpu": Device("128,256", "float32", "1,2", ",".join(SEARCHES), 1, 3, 4, 5000, 1024, 0.003, ("test_2016_flickr",), 800, 100,
                  ((16, "examples"), (32, "examples"), (64, "examples"), (128, "examples"), (1024, "tokens"), (2048, "tokens"), (4096, "tokens")),
                  f"\n[run]\nthreads = {measured.cores()}\n"),
    "cuda": Device("512", "bfloat16,float16", "1", "beam4", 12, 6, 8, 8000, 4096, 0.0007,
                   ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"), None, 60, ((512, "examples"), (2048, "examples"), (32768, "tokens")),
                   'batch_tokens = 65536\n\n[run]\ndevice = "cuda"\nprecision = "bf16"\n'),
}


def settings_of(width, arguments):
    """TOML. The output vocabulary is all but PAD and BOS, so that both sides compute as many logits."""
    device = arguments.measured
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
merges = {device.merges}

[model]
encoder_layers = {device.layers}
decoder_layers = {device.layers}
d_model        = {width}
d_ff           = {4 * width}
heads          = {device.heads}
placement      = "pre"
norm           = {{ kind = "layer_norm" }}
tied_embeddings        = "all"
output_bias            = true
mask_target_vocabulary = false
dropout = {{ residual = 0.1, attention = 0.1, relu = 0.1, word = 0.0 }}

[train]
epoch_updates = {EPOCH}
max_epochs    = {arguments.epochs}
batch         = {{ tokens = {device.batch} }}
schedule      = {{ kind = "invsqrt", warmup_updates = 500, peak_lr = {device.peak_lr} }}

[decode]
beam       = 1
max_length = {device.longest}
{device.settings}"""


# --- the model ---------------------------------------------------------------------------------------------------------------------
def fail(message):
    print(f"ctranslate2: {message}", file=sys.stderr)
    sys.exit(2)


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
    for part, names in (SETS | {"test": arguments.measured.tests}).items():
        for language in ("de", "en"):
            lines = [line for name in names for line in text_of(arguments.multi30k / f"{name}.lc.norm.tok.{language}")]
            if part == "test":
                lines = lines[:arguments.measured.sentences] * arguments.repeat
            measured.write(arguments.folder / "data" / f"{part}.{language}", "".join(lines))


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

    def __init__(self, arguments, run, prepared, threads, compute_type):
        # -P: `import ctranslate2` must not find this file.
        command = [arguments.python, "-P", HERE / "ctranslate2_peer.py", run, prepared, "--threads", str(threads), "--device", arguments.device,
                   "--type", compute_type]
        self.type = compute_type
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment(arguments, threads) | arguments.libraries)
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
def tuned(arguments, peer, threads, search):
    """The fastest request: each is tried TRIALS times, and the shorter time counts."""
    kinds = ["intra", "inter"] if threads > 1 else ["intra"]
    device = arguments.measured
    requests = [{"threads": kind, "max_batch_size": size, "batch_type": batch_type, "max_decoding_length": device.longest} | SEARCHES[search][1]
                for kind in kinds for size, batch_type in device.batches]
    once = peer.ready["sentences"] // arguments.repeat
    return min(requests, key=lambda request: min(peer.decode(first=once, **request)[0] for _ in range(TRIALS)))


def compare(arguments, width, run, threads, search, peer):
    request = tuned(arguments, peer, threads, search)
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
    of_each = {}
    for name, outputs in {"tearless": ours, "CTranslate2": lines}.items():
        of_each[name] = arguments.folder / f"{name}.hyp"
        of_each[name].write_text("".join(line + "\n" for line in outputs), encoding="utf-8")
    bleu = engine(arguments, "tearless-engine score", "score", of_each["CTranslate2"], of_each["tearless"])
    return {"width": width, "threads": threads, "search": search, "type": peer.type, "run": run.name, "request": request, "seconds": seconds,
            "sentences": sentences, "bleu": float(BLEU.search(bleu)[1]), "equal": sum(a == b for a, b in zip(ours, lines, strict=True)),
            "words": sum(len(line.split()) for line in ours) / sentences, "longest": max(len(line.split()) for line in ours),
            "rates": rates, "ratio": ratio} | ({"goal": GOALS[search], "met": ratio >= GOALS[search]} if arguments.device == "cpu" else {})


def differ(arguments, result):
    """Whether outputs differ by more than rounding."""
    if arguments.device == "cpu" and result["type"] == "float32":
        return result["search"] == "greedy" and result["equal"] < result["sentences"]
    return arguments.device == "cuda" and result["bleu"] < LEAST_BLEU


# --- the report ------------------------------------------------------------------------------------------------------------------
def batches_of(request, threads):
    size = f"{request['max_batch_size']} {request['batch_type']}"
    return size if threads == 1 else f"{size}, {request['threads']}_threads={threads}"


def goal_cells(result):
    return [f"{result['goal']:g}x", "yes" if result["met"] else "no"] if "goal" in result else ["–", "–"]


def report(document):
    results = document["results"]
    device = DEVICES[document["device"]]
    types = ", ".join(dict.fromkeys(r["type"] for r in results))
    gpu = f" and an {document['gpu']}" if "gpu" in document else ""
    lines = [f"# Decoding against CTranslate2, {document['device']}", "",
             f"Measured {document['date']} on {document['processor']}, {document['cores']} cores{gpu}. {document['tearless']}"
             + (", bf16" if gpu else f", matmuls by {document['arithmetic']}")
             + f"; CTranslate2 {document['ctranslate2']}, {types}. Multi30k de-en, models of {device.layers}+{device.layers} layers and "
             f"{document['updates']:,} updates; {results[0]['sentences']:,} sentences, the test sets {document['repeat']} times; medians of "
             f"{document['turns']} turns. What is timed, and how: tools/bench/ctranslate2.py. Search `beam4` has beam 4 and no length penalty."]
    if document["cublas"]:
        lines += [f"CTranslate2 was given {document['cublas']}."]
    lines.append("")
    lines += table(["d", "search", "threads", "type of CTranslate2", "tearless, sentences/s", "CTranslate2, sentences/s", "ratio", "goal", "met",
                    "equal outputs", "BLEU against tearless's", "words an output", "batches of CTranslate2"],
                   [[str(r["width"]), r["search"], str(r["threads"]), r["type"], f"{r['rates']['tearless']:.0f}", f"{r['rates']['CTranslate2']:.0f}",
                     f"{r['ratio']:.2f}", *goal_cells(r), f"{r['equal']} of {r['sentences']}", f"{r['bleu']:.2f}",
                     f"{r['words']:.1f}", batches_of(r["request"], r["threads"])] for r in results])
    lines += ["", f"    {INSTALL}", "    export TEARLESS_CTRANSLATE2_PYTHON=/path/to/python",
              f"    tools/bench/ctranslate2.py MULTI30K --folder FOLDER{' --device cuda' if gpu else ''} --markdown FILE"]
    return "\n".join(lines) + "\n"


# --- the front -------------------------------------------------------------------------------------------------------------------
def find_ctranslate2(python):
    """Its version; or an end with one sentence."""
    try:
        return measured.output_of([python, "-P", "-c", "import numpy, ctranslate2; print(ctranslate2.__version__)"], timeout=120)
    except RuntimeError as error:
        fail(f"{python} is no Python 3.11 or newer with ctranslate2 ({error}): get it with `{INSTALL}` in one that is, and name that with "
             "TEARLESS_CTRANSLATE2_PYTHON=/path/to/python")


def cublas_as_12(folder):
    """({variable: value} with which CTranslate2 finds a libcublas.so.12, what it then is)."""
    try:
        ctypes.CDLL("libcublas.so.12")
        return {}, ""
    except OSError:
        pass
    places = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    found = next((file for place in places if place and (file := pathlib.Path(place) / "libcublas.so.13").exists()), None)
    if not found:
        fail("no folder of LD_LIBRARY_PATH has libcublas.so.13, and there is no libcublas.so.12: CTranslate2 needs one of them on a GPU")
    link = folder / "cublas/libcublas.so.12"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(found.resolve())
    return ({"LD_LIBRARY_PATH": ":".join([str(link.parent), *places])},
            "cuBLAS 13 by the name libcublas.so.12, which its wheel of CUDA 12 looks for")


def gpu_name():
    try:
        return measured.output_of(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).splitlines()[0]
    except RuntimeError as error:
        fail(f"no NVIDIA GPU is visible (nvidia-smi: {error})")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("multi30k", type=pathlib.Path, metavar="MULTI30K", help="folder with the tokenised files")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for models, which are trained once, and caches")
    parser.add_argument("--engine", type=pathlib.Path, default=ROOT / "build/bin/tearless-engine", metavar="PROGRAM")
    parser.add_argument("--device", choices=tuple(DEVICES), default="cpu")

    def of_device(option, metavar, what=""):
        defaults = ", ".join(f"{getattr(device, option[2:])} ({name})" for name, device in DEVICES.items())
        parser.add_argument(option, metavar=metavar, help=f"{what}default: {defaults}")

    of_device("--widths", "N,…")
    of_device("--types", "NAME,…", "compute types of CTranslate2; ")
    of_device("--searches", "NAME,…")
    of_device("--threads", "N,…")
    of_device("--repeat", "N", "how many times the test sets are decoded in a turn; ")
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="of each side (default: 5)")
    parser.add_argument("--epochs", type=int, default=4, metavar="N", help="of the training, 500 updates each (default: 4)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all times")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the report")
    parser.add_argument("--resume", action="store_true", help="keep what the file of --json has of these programs and this machine")
    arguments = parser.parse_args()
    arguments.measured = DEVICES[arguments.device]
    for option in ("widths", "types", "searches", "threads", "repeat"):
        if getattr(arguments, option) is None:
            setattr(arguments, option, str(getattr(arguments.measured, option)))
    arguments.repeat, = numbers(parser, "--repeat", arguments.repeat, 1)
    arguments.types = arguments.types.split(",")
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


def kept(arguments, document):
    """Results of the file of --json that need not be measured again."""
    if not (arguments.resume and arguments.json and arguments.json.exists()):
        return []
    before = json.loads(arguments.json.read_text())
    document["arithmetic"] = before["arithmetic"]
    return before["results"] if all(before.get(key) == document[key] for key in document if key not in ("date", "arithmetic", "results")) else []


def main():
    arguments = parse_arguments()
    arguments.libraries, cublas = cublas_as_12(arguments.folder) if arguments.device == "cuda" else ({}, "")
    document = {
        "date": datetime.date.today().isoformat(), "device": arguments.device, "processor": processor(), "cores": measured.cores(),
        "tearless": engine(arguments, "tearless-engine", "--version").splitlines()[0], "arithmetic": "", "cublas": cublas,
        "ctranslate2": find_ctranslate2(arguments.python), "updates": EPOCH * arguments.epochs, "turns": arguments.turns,
        "repeat": arguments.repeat, "results": [],
    }
    if arguments.device == "cuda":
        document["gpu"] = gpu_name()
    document["results"] = kept(arguments, document)
    write_corpus(arguments)
    for width in arguments.widths:
        run, prepared = train(arguments, width)
        for threads, compute_type in [(threads, compute_type) for threads in arguments.threads for compute_type in arguments.types]:
            part = {"width": width, "threads": threads, "type": compute_type}
            done = [result["search"] for result in document["results"] if part.items() <= result.items()]
            searches = [search for search in arguments.searches if search not in done]
            if not searches:
                continue
            with CTranslate2(arguments, run, prepared, threads, compute_type) as peer:
                for search in searches:
                    result = compare(arguments, width, run, threads, search, peer)
                    document["results"].append(result)
                    document["arithmetic"] = (run / "attempts/1/arithmetic").read_text().strip()
                    print(f"d = {width}, {search}, {threads} threads, {compute_type}: {result['rates']['tearless']:.0f} and "
                          f"{result['rates']['CTranslate2']:.0f} sentences/s, ratio {result['ratio']:.2f}, {result['equal']} of "
                          f"{result['sentences']} outputs equal, BLEU {result['bleu']:.2f}", flush=True)
                    measured.write(arguments.json, json.dumps(document, indent=1))
                    measured.write(arguments.markdown, report(document))
    print("\n" + report(document), end="")
    return 1 if any(differ(arguments, result) for result in document["results"]) else 0


if __name__ == "__main__":
    measured.run("ctranslate2", main)
