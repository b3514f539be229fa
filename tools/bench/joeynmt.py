#!/usr/bin/env python3
"""joeynmt.py: times tearless against JoeyNMT 2.3 from raw text to scores, and prints the ratio and the quality of both.

Both train the model of joeynmt.toml on the demo's corpus, once a seed: learn sub-words, train, search the dev set after every epoch,
search the test set with the checkpoint that was best on dev, compute BLEU. JoeyNMT's settings are made from the same file. The runs take
turns in an order that reverses with every seed (tearless 1, JoeyNMT 1, JoeyNMT 2, tearless 2, ...), one at a time, each with empty caches
and in a folder of its own. A time is that of whole processes by the clock on the wall. The ratio is JoeyNMT's median over tearless's
median. All test translations are scored by `tearless-engine score --raw`; sacreBLEU must agree.

    tools/bench/joeynmt.py --markdown results/bench/joeynmt.md        seeds 1, 2, 3
    tools/bench/joeynmt.py --updates 250 --seeds 1                    tries whether everything works

Needs a Python 3.11 or newer with JoeyNMT 2.3.0: this one, or the one that TEARLESS_JOEYNMT_PYTHON names.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import measured
from measured import numbers, processor, table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CONFIG = HERE / "joeynmt.toml"
INSTALL = "pip install joeynmt==2.3.0 torch==2.11.0 sentencepiece==0.2.1 importlib_metadata"
PACKAGES = ("joeynmt", "torch", "sentencepiece", "sacrebleu", "numpy")
GOAL = 8

# JoeyNMT draws sentences in random order and fills a batch until sentences x longest side reaches a limit; tearless sorts by length first
# and stops below its limit. With this limit for tearless's 1,024 both make 82 batches of a pass, so a batch has as many tokens on average.
JOEYNMT_BATCH_TOKENS = 1230

# Below, what is run by JoeyNMT's Python. First: the settings of engine/data/sentencepiece.cc; JoeyNMT adds PAD, BOS and EOS itself.
LEARN = """
import sys, sentencepiece
pieces, *files = sys.argv[1:]
sentencepiece.SentencePieceTrainer.train(
    input=files, model_prefix="pieces", model_type="bpe", vocab_size=int(pieces) - 3, normalization_rule_name="identity",
    character_coverage=1.0, split_by_unicode_script=False, split_by_number=False, remove_extra_whitespaces=False,
    max_sentence_length=1000000000, unk_id=0, bos_id=-1, eos_id=-1, pad_id=-1, minloglevel=2)
lines = open("pieces.vocab", encoding="utf-8").read().splitlines()
open("vocabulary.txt", "w", encoding="utf-8").write("".join(line.split("\\t")[0] + "\\n" for line in lines))
"""
# JoeyNMT reports target tokens; those of both sides follow from their number in the corpus, EOS counted.
COUNT = """
import json, sys, sentencepiece, torch
pieces = sentencepiece.SentencePieceProcessor(model_file="pieces.model")
source, target = (sum(len(line) + 1 for line in pieces.encode(open(f, encoding="utf-8").read().splitlines())) for f in sys.argv[1:])
seen = torch.load("model/latest.ckpt", weights_only=True)["stats_state"]
print(json.dumps(seen["total_tokens"] * (source + target) / target / seen["steps"]))
"""
VERSIONS = """
import importlib.metadata, json, sys
import joeynmt, sacrebleu, sentencepiece, torch
assert hasattr(sentencepiece.SentencePieceProcessor, "SetVocabulary")
import joeynmt.training
names = sys.argv[1:]
print(json.dumps({"Python": sys.version.split()[0], **{name: importlib.metadata.version(name) for name in names}}))
"""


@dataclasses.dataclass
class Run:
    program: str
    seed: int
    seconds: float  # from raw text to scores
    training: float  # of it, updates alone
    parameters: int
    tokens: float  # an update, on both sides, without padding
    hypotheses: pathlib.Path
    extra: float = 0.0  # seconds of JoeyNMT's second search of dev
    bleu: float = 0.0
    sacrebleu: float = 0.0
    others: float = 0.0  # part of the machine's processor time that other processes took meanwhile


# --- running ---------------------------------------------------------------------------------------------------------------------
def fail(message):
    sys.exit(f"joeynmt: {message}")


def output_of(command, what, **options):
    try:
        return measured.output_of(command, **options)
    except RuntimeError as error:
        fail(f"{what} failed: {error}")


def environment(arguments, folder):
    threads = str(arguments.threads)
    return os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "TEARLESS_CACHE": str(folder / "cache")}


def processor_seconds():
    """(busy seconds of all cores, those of this program's ended children)"""
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    user, nice, system, _, _, irq, soft_irq, steal = fields[:8]
    times = os.times()
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK"), times.children_user + times.children_system


def timed(commands, folder, arguments):
    """Seconds of the commands, one after another, and what other processes took of the machine in them."""
    start, (busy, own) = time.monotonic(), processor_seconds()
    for what, command in commands:
        output_of(command, what, cwd=folder, env=environment(arguments, folder))
    seconds, (busy_after, own_after) = time.monotonic() - start, processor_seconds()
    others = (busy_after - busy) - (own_after - own)
    return seconds, max(0.0, others / (seconds * os.cpu_count()))


def corpus(settings, part):
    return [(CONFIG.parent / f"{settings['data'][part]}.{settings['data'][side]}").resolve() for side in ("source", "target")]


def run_tearless(arguments, settings, seed, folder):
    grid = folder / "grid.toml"
    grid.write_text(f'base = "{CONFIG}"\nseeds = [{seed}]\n[set.train]\nmax_epochs = {arguments.epochs}\n[set.run]\nthreads = '
                    f'{arguments.threads}\n'
                    '[axis]\n"model.placement" = ["pre"]\n[table]\nrows = ["model.placement"]\ncell = { score = "test.bleu_13a" }\n')
    workspace = folder / "results"
    # `table` too: it is what the user reads.
    commands = [("tearless run", [arguments.tearless, "--workspace", workspace, "run", grid]),
                ("tearless table", [arguments.tearless, "--workspace", workspace, "table", grid])]
    seconds, others = timed(commands, folder, arguments)
    directory, = (workspace / "runs").iterdir()
    scores = json.loads((directory / "scores.json").read_text())
    training = json.loads((directory / "attempts/1/measured.json").read_text())
    return Run("tearless", seed, seconds, training["training_seconds"], scores["parameters"],
               training["tokens_per_second"] * training["training_seconds"] / scores["updates"],
               directory / "outputs/test.hyp", others=others)


def joeynmt_settings(arguments, settings, seed, folder):
    """YAML. JSON would be YAML too, but PyYAML reads 1e-09 as a text."""
    model, train, decode = settings["model"], settings["train"], settings["decode"]
    data, schedule, width = settings["data"], train["schedule"], settings["model"]["d_model"]
    train_files, dev_files, test_files = (corpus(settings, part)[0] for part in ("train", "dev", "test"))
    dropout = model["dropout"]["residual"]
    # JoeyNMT has one dropout for all places of a layer, and the options that these stand for.
    expected = {"model.dropout": (model["dropout"], {"residual": dropout, "attention": dropout, "relu": dropout, "word": 0.0}),
                "text.kind": (settings["text"]["kind"], "sentencepiece"), "model.placement": (model["placement"], "pre"),
                "model.init": (model["init"], "xavier_uniform"), "model.norm": (model["norm"], {"kind": "layer_norm", "eps": 1e-6}),
                "model.tied_embeddings": (model["tied_embeddings"], "all"), "model.output_bias": (model["output_bias"], False),
                "model.mask_target_vocabulary": (model["mask_target_vocabulary"], False),
                "train.schedule.kind": (schedule["kind"], "invsqrt"),
                "train.batch.tokens": (train["batch"]["tokens"], 1024), "train.adam.eps": (train["adam"]["eps"], 1e-8)}
    for key, (value, wanted) in expected.items():
        if value != wanted:
            fail(f"{CONFIG.name}: {key} must be {wanted!r}, for which this script knows JoeyNMT's settings")

    def language(side):
        return (f"{{lang: {data[side]}, level: bpe, tokenizer_type: sentencepiece, voc_file: {folder}/vocabulary.txt, "
                f"tokenizer_cfg: {{model_file: {folder}/pieces.model}}}}")

    def stack(layers):
        return (f"{{type: transformer, num_layers: {layers}, num_heads: {model['heads']}, hidden_size: {width}, ff_size: {model['d_ff']}, "
                f"dropout: {dropout}, layer_norm: pre, embeddings: {{embedding_dim: {width}, scale: True, dropout: {dropout}}}}}")

    # The rate of its first update is learning_rate; afterwards the schedule is at its first value.
    first_rate = schedule["scale"] * width**-0.5 * schedule["warmup_updates"]**-1.5
    return f"""
name: benchmark
joeynmt_version: "2.3.0"
model_dir: {folder}/model
use_cuda: False
fp16: False
num_workers: 0
random_seed: {seed}
data:
  dataset_type: plain
  train: {train_files.with_suffix('')}
  dev: {dev_files.with_suffix('')}
  test: {test_files.with_suffix('')}
  src: {language('source')}
  trg: {language('target')}
training:
  optimizer: adam
  adam_betas: [{train['adam']['beta1']}, {train['adam']['beta2']}]
  scheduling: noam
  learning_rate: {first_rate:.12f}
  learning_rate_min: 0.000000000001
  learning_rate_factor: {schedule['scale']}
  learning_rate_warmup: {schedule['warmup_updates']}
  clip_grad_norm: {train['clip_norm']}
  normalization: tokens
  label_smoothing: {train['label_smoothing']}
  batch_type: token
  batch_size: {JOEYNMT_BATCH_TOKENS}
  epochs: 1000000
  updates: {arguments.epochs * train['epoch_updates']}
  validation_freq: {train['epoch_updates']}
  logging_freq: {train['epoch_updates']}
  early_stopping_metric: bleu
  keep_best_ckpts: 1
  print_valid_sents: []
testing:
  batch_type: token
  batch_size: 4096
  beam_size: {decode['beam']}
  beam_alpha: {decode['alpha']}
  eval_metrics: [bleu]
  sacrebleu_cfg: {{tokenize: 13a}}
model:
  initializer: xavier_uniform
  bias_initializer: zeros
  embed_initializer: normal
  embed_init_weight: {width**-0.5:.12f}
  tied_embeddings: True
  tied_softmax: True
  encoder: {stack(model['encoder_layers'])}
  decoder: {stack(model['decoder_layers'])}
"""


def log_time(log, text):
    """Seconds of the day of the first line with this text."""
    line = next((line for line in log.splitlines() if text in line), None)
    if line is None:
        fail(f'JoeyNMT\'s log has no line with "{text}"')
    return datetime.datetime.strptime(line.split(" - ")[0], "%Y-%m-%d %H:%M:%S,%f")


def run_joeynmt(arguments, settings, seed, folder):
    (folder / "settings.yaml").write_text(joeynmt_settings(arguments, settings, seed, folder))
    files = corpus(settings, "train")
    commands = [("learning sub-words for JoeyNMT", [arguments.python, "-c", LEARN, str(settings["text"]["pieces"]), *files]),
                ("JoeyNMT", [arguments.python, "-m", "joeynmt", "train", "settings.yaml"])]
    seconds, others = timed(commands, folder, arguments)
    log = (folder / "model/train.log").read_text()
    searches = [float(found) for found in re.findall(r"Generation took ([0-9.]+)\[sec\]", log)]
    if len(searches) != arguments.epochs + 2:
        fail(f"JoeyNMT searched {len(searches)} times where {arguments.epochs} epochs, dev and test were expected")
    training = (log_time(log, "Training ended") - log_time(log, "EPOCH 1")).total_seconds() - sum(searches[:-2])
    parameters = int(re.search(r"Total params: (\d+)", log).group(1))
    tokens = json.loads(output_of([arguments.python, "-c", COUNT, *files], "counting JoeyNMT's tokens", cwd=folder))
    return Run("JoeyNMT", seed, seconds, training, parameters, tokens, folder / "model/best.hyps.test", extra=searches[-2], others=others)


def score(arguments, settings, run):
    reference = corpus(settings, "test")[1]
    said = output_of([arguments.engine, "score", "--raw", run.hypotheses, reference], "tearless-engine score")
    run.bleu = float(re.match(r"bleu_13a ([0-9.]+)", said).group(1))
    said = output_of([arguments.python, "-m", "sacrebleu", reference, "-i", run.hypotheses, "-m", "bleu", "-b", "-w", "2"], "sacreBLEU")
    run.sacrebleu = float(said)


def same_pieces(tearless_folder, joeynmt_folder):
    """Whether both learned the same sub-words in the same order: those of pieces.vocab in the prepared corpus, as SentencePiece stores "
    "them."""
    prepared, = (tearless_folder / "cache").glob("prepared/*/tokens.bin")
    stored, end = prepared.read_bytes(), 0
    for line in (joeynmt_folder / "pieces.vocab").read_text(encoding="utf-8").splitlines():
        piece = line.split("\t")[0].encode()
        at = stored.find(bytes([10, len(piece)]) + piece, end)
        # A piece's record ends with its score and maybe its type, at most 12 bytes.
        if at < 0 or (end and at - end > 12):
            return False
        end = at + 2 + len(piece)
    return True


# --- the report ------------------------------------------------------------------------------------------------------------------
def of(runs, program, name):
    return [getattr(run, name) for run in runs if run.program == program]


def mean_and_spread(values):
    if len(values) < 2:
        return f"{values[0]:.2f} (one seed, no spread)"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f} (n={len(values)})"


def as_good(tearless, joeynmt):
    """Whether tearless is better, or no further below than the larger of the two spreads."""
    if len(tearless) < 2:
        return None
    return statistics.mean(joeynmt) - statistics.mean(tearless) <= max(statistics.stdev(tearless), statistics.stdev(joeynmt))


def report(document):
    runs, arguments, train = document["runs"], document["arguments"], document["settings"]["train"]
    programs = ("tearless", "JoeyNMT")
    seconds = {program: statistics.median(of(runs, program, "seconds")) for program in programs}
    training = {program: statistics.median(of(runs, program, "training")) for program in programs}
    bleu = {program: of(runs, program, "bleu") for program in programs}
    ratio = seconds["JoeyNMT"] / seconds["tearless"]
    extra = statistics.median(of(runs, "JoeyNMT", "extra"))
    without = statistics.median(run.seconds - run.extra for run in runs if run.program == "JoeyNMT") / seconds["tearless"]
    good = as_good(bleu["tearless"], bleu["JoeyNMT"])
    met = "not decided with one seed" if good is None else "yes" if good and ratio >= GOAL else "no"
    updates = arguments.epochs * train["epoch_updates"]
    difference = max(abs(run.bleu - run.sacrebleu) for run in runs)
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    lines = [
        "# tearless against JoeyNMT 2.3, from raw text to scores", "",
        f"Measured {document['date']} on {document['processor']}, {document['cores']} cores, {arguments.threads} threads each. "
        f"{document['tearless']}; JoeyNMT's Python: {versions}. {updates:,} updates, dev searched every {train['epoch_updates']}; all "
        "settings: tools/bench/joeynmt.toml. What is the same and what differs: docs/speed.md#beside-joeynmt.", ""]
    head = ["", "test BLEU (13a)", "time, s (median)", "of it updates, s", "an update, ms", "parameters", "tokens an update"]
    lines += table(head, [[program, mean_and_spread(bleu[program]), f"{seconds[program]:.1f}", f"{training[program]:.1f}",
                           f"{1e3 * training[program] / updates:.1f}", f"{of(runs, program, 'parameters')[0]:,}",
                           f"{statistics.mean(of(runs, program, 'tokens')):,.0f}"] for program in programs])
    lines += ["", *table(["ratio of times", "goal", "met"], [[f"{ratio:.2f}", f"{GOAL}x at equal quality", met]]), "",
              f"Without JoeyNMT's second search of dev, {extra:.1f} s (median), the ratio is {without:.2f}. Sub-words of both: "
              f"{'the same in the same order' if document['same_pieces'] else '**they differ**'}. Largest difference of both scorers: "
              f"{difference:.2f}.", "", "## Runs, in the order in which they were made", ""]
    lines += table(["program", "seed", "time, s", "of it updates, s", "BLEU, tearless-engine", "BLEU, sacreBLEU", "others' processor time"],
                   [[run.program, str(run.seed), f"{run.seconds:.1f}", f"{run.training:.1f}", f"{run.bleu:.2f}", f"{run.sacrebleu:.2f}",
                     f"{100 * run.others:.0f} %"] for run in runs])
    lines += ["", "The last column is what other processes took of all cores meanwhile. Where it is more than a few per cent, measure again.",
              "", f"    {INSTALL}", "    TEARLESS_JOEYNMT_PYTHON=/path/to/python " + document["command"]]
    return "\n".join(lines) + "\n"


# --- the front -------------------------------------------------------------------------------------------------------------------
def find_joeynmt(python):
    """Versions of JoeyNMT and what it runs on; or an end with one sentence."""
    try:
        versions = json.loads(measured.output_of([python, "-c", VERSIONS, *PACKAGES], timeout=300))
        if versions["joeynmt"].startswith("2.3."):
            return versions
        found = versions["joeynmt"]
    except RuntimeError as error:
        found = error
    fail(f"{python} has no JoeyNMT 2.3 that runs ({found}): get it with `{INSTALL}`, and name its Python with "
         "TEARLESS_JOEYNMT_PYTHON=/path/to/python")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin", metavar="FOLDER", help="with tearless and tearless-engine")
    parser.add_argument("--seeds", default="1,2,3", metavar="N,…", help="default: 1,2,3")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="of each program (default: 2)")
    parser.add_argument("--updates", type=int, metavar="N", help="fewer than the settings', to try the script")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the report")
    arguments = parser.parse_args()
    arguments.seeds = numbers(parser, "--seeds", arguments.seeds, 0)
    if arguments.threads < 1:
        parser.error("--threads must be at least 1")
    arguments.python = os.environ.get("TEARLESS_JOEYNMT_PYTHON") or sys.executable
    arguments.tearless, arguments.engine = (arguments.bin.resolve() / name for name in ("tearless", "tearless-engine"))
    for program in (arguments.tearless, arguments.engine):
        if not os.access(program, os.X_OK):
            fail(f"{program} is not there: `make build` makes it, or name its folder with --bin")
    return arguments


def main():
    arguments = parse_arguments()
    settings = tomllib.loads(CONFIG.read_text())
    updates = settings["train"]["epoch_updates"]
    if arguments.updates is not None and (arguments.updates < updates or arguments.updates % updates):
        fail(f"--updates must be a multiple of the settings' epoch, {updates}")
    arguments.epochs = arguments.updates // updates if arguments.updates else settings["train"]["max_epochs"]
    document = {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "cores": measured.cores(),
        "tearless": output_of([arguments.engine, "--version"], "tearless-engine").splitlines()[0],
        "versions": find_joeynmt(arguments.python),
        "command": " ".join(["tools/bench/joeynmt.py", *sys.argv[1:]]),
        "settings": settings, "arguments": arguments, "runs": [],
    }
    sides = {"tearless": run_tearless, "JoeyNMT": run_joeynmt}
    folders = {}
    with tempfile.TemporaryDirectory(prefix="joeynmt-") as temporary:
        order = [(program, seed) for i, seed in enumerate(arguments.seeds)
                 for program in (list(sides) if i % 2 == 0 else list(sides)[::-1])]
        for i, (program, seed) in enumerate(order, 1):
            print(f"[{i}/{len(order)}] {program}, seed {seed}: ", end="", flush=True)
            folder = folders[program] = pathlib.Path(temporary) / f"{program}-{seed}"
            folder.mkdir()
            run = sides[program](arguments, settings, seed, folder)
            score(arguments, settings, run)
            print(f"{run.seconds:.1f} s, test BLEU {run.bleu:.2f}, others' processor time {100 * run.others:.0f} %", flush=True)
            document["runs"].append(run)
        document["same_pieces"] = same_pieces(folders["tearless"], folders["JoeyNMT"])
    parameters = {run.program: run.parameters for run in document["runs"]}
    if len(set(parameters.values())) > 1:
        fail(f"the programs have different models: {parameters} parameters")
    text = report(document)
    measured.write(arguments.markdown, text)
    print("\n" + text, end="")
    return 0


if __name__ == "__main__":
    measured.run("joeynmt", main)
