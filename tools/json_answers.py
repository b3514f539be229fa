"""Answers of `tearless … --json` to learn from: the members and types of tools/json_docs.py. Sweeps are trained by the fake
engine in a scratch folder: with scores and without, running, failed, diverged, derived, published, claimed, damaged, deleted."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("TEARLESS_BIN", ROOT / "build/bin")).resolve()

# Runs of every end; published numbers that are a number and a text; a table that compares, one that chooses; claims of one look.
ODD = r"""
title = "Odd"
seeds = [1, 2]
[set]
"fake.updates" = 4
"fake.warning" = "a warning"
"data.train"   = "here.txt"
[axis]
"model.depth" = [6, 12]
[[axis.ends]]
label = "well"
[[axis.ends]]
label = "better"
set   = { "fake.score.test.acc" = 0.5, "model.flag" = true, "fake.metric.big" = 1e308 }
[[axis.ends]]
label = "diverges"
set   = { "fake.behaviour" = "diverge" }
[[axis.ends]]
label = "fails"
set   = { "fake.behaviour" = "refuse_late" }
[[axis.ends]]
label = "waits"
set   = { "data.train" = "gone.txt" }
[[axis.ends]]
label = "crashes"
set   = { "fake.behaviour" = "crash_once", "fake.updates" = 9 }
[[exclude]]
when = { ends = ["better", "crashes"], "model.depth" = 12 }
why  = "too deep"
[[axis.ends]]
label = "differs"
set   = { "fake.behaviour" = "resume_differs", "fake.updates" = 12, "fake.sleep_ms" = 20 }
[derived.more]
extra = 2
[table]
rows     = ["ends"]
columns  = ["model.depth"]
scores   = ["test.score", "test.acc"]
baseline = "well"
[table.test]
within = "2 %"
[table.published]
source    = "A paper"
score     = "test.score"
tolerance = 0.5
values    = [[20.5, "fail"], [20, ""], ["n/a", 20], [20, 20], [20, 20], [20, 20], [20, 20]]
[[claim]]
text   = "deeper is better"
source = "A paper"
name   = "C1"
better = ["12", "6"]
[[claim]]
text    = "well is above 20"
above   = "well"
than    = 20
matters = "0.1 score"
[[figure]]
caption = "Loss"
y       = "train.loss"
lines   = ["ends", "model.depth"]
"""
# Of which nothing has run: all claims are open, with looks; an axis without effect; a sample.
OPEN = r"""
title = "Open"
seeds = 5
sample = { count = 3, seed = 1 }
[axis]
"model.depth"  = [6, 12, 18]
"fake.threads" = [1, 2]
[table]
rows = ["model.depth", "fake.threads"]
scores = "test.score"
[claims]
looks = [3, 5]
[[claim]]
text    = "deeper is better"
better  = ["18", "12"]
matters = "0.5 score"
"""
# Runs that go on until they are stopped: of one, metrics come soon; of the other they do not.
SLOW = r"""
title = "Slow"
[set]
"fake.updates" = 1000000
[[axis.speed]]
label = "fast"
set   = { "fake.sleep_ms" = 20, "fake.metric.dev.bleu" = 1 }
[[axis.speed]]
label = "mute"
set   = { "fake.sleep_ms" = 100000 }
"""
PAPER = 'title = "Paper"\ngrids = ["odd.toml", "more.toml", "open.toml"]\n'
BAD = 'title = "Bad"\n[axis]\n"fake.behaviour" = ["succeed", "refuse"]\n'
EXECUTORS = '[a100]\nkind = "slurm"\ntime = "1:00:00"\n'
# A training program of one's own: a score and a metric that are no numbers.
PROGRAM = """#!/usr/bin/env python3
import hashlib, json, sys
sha = lambda text: hashlib.sha256(text.encode()).hexdigest()
scores = '{"test.bleu": NaN, "test.acc": 50.5}'
if sys.argv[1] == "check":
    for line in sys.stdin:
        text = "".join(f"{k} = {json.dumps(v)}\\n" for k, v in sorted(json.loads(line)["settings"].items()))
        print(json.dumps({"id": sha(text)[:16], "canonical": text, "local": "", "state": "ready", "updates": 1}), flush=True)
elif sys.argv[1] == "probe":
    print(json.dumps({"program": "own", "version": "1", "numerics": 1, "devices": []}))
else:
    for name, text in {"scores.json": scores, "metrics.jsonl": '{"step": 1, "name": "loss", "value": "high"}\\n',
                       "DONE": json.dumps({"outcome": "done", "step": 1, "reason": "", "files": {"scores.json": sha(scores)}})}.items():
        open(f"{sys.argv[2]}/{name}", "w").write(text)
"""
OWN = """
program = "own.py"
title = "Own"
[policy]
environment = ["HF_*"]
[axis]
a = ["/somewhere/a", "b"]
c = [1, 2]
[table]
rows   = "a"
scores = "test.acc"
select = { over = ["c"], by = "test.acc", best = "highest" }
"""
COMMIT = "git init -q . && git add {} && git -c user.name=a -c user.email=a@b commit -qm a"
SCORES = "test.bleu_13a,dev.bleu_13a"  # of the runs of grids/demo.toml and grids/demo_claims.toml


class Reader:
    """Types commands in a folder of its own. `answers`: section of docs/json.md -> [(command, answer), ...], in the order of typing."""

    def __init__(self, answers, folder, **environment):
        self.answers, self.folder = answers, folder
        folder.mkdir()
        self.environment = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "PATH": f"{BIN}:{os.environ['PATH']}",
                            "TEARLESS_ENGINE": str(BIN / "fake-engine"), "TEARLESS_IDLE_SECONDS": "1", **environment}

    def type(self, command, *codes):
        """What the command prints. It fails with another exit code than these (default: 0)."""
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120)
        if done.returncode not in (codes or (0,)):
            raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def ask(self, words, *codes, of=""):
        """The answer to `tearless WORDS --json`; `of`: the section, if it is not the command's."""
        answer = json.loads(self.type(f"tearless {words} --json", *codes))
        self.answers.setdefault(of or words.split()[0], []).append((f"tearless {words} --json", answer))
        return answer

    def ask_until(self, words, seen):
        """Asks until `seen(answer)`; keeps that answer."""
        for _ in range(600):
            answer = json.loads(self.type(f"tearless {words} --json"))
            if seen(answer):
                self.answers.setdefault(words.split()[0], []).append((f"tearless {words} --json", answer))
                return answer
            time.sleep(0.05)
        raise SystemExit(f"tearless {words} --json: what is waited for does not come")


def of_the_demo(reader):
    shutil.copytree(ROOT / "grids", reader.folder / "grids")
    reader.ask("plan grids/demo.toml")
    sweep = reader.ask("submit grids/demo.toml")["sweeps"][0]["id"]
    reader.ask("wait last")
    for words in ("status demo", "runs demo", "runs demo --settings", "explain demo 1", "table demo", "check-table grids/demo_claims.toml", "cost demo",
                  "diff 1 2", "plan grids/demo.toml", "copy backup", f"artifact {sweep} demo.tar.gz", "export demo --to tables --format csv", "verify",
                  "plot last train.loss", "log 1", "report demo -o demo.html",
                  "explain last 1 --workspace demo.tar.gz", "clean", "retry demo", "pause 1"):
        reader.ask(words, 0, 1)
    reader.ask("plot 1 train.loss --by run", of="plot --by run")
    (reader.folder / "page.md").write_text("<!-- tearless table demo -->\n<!-- end -->\n")
    reader.ask("report --text page.md", of="report --text")
    reader.ask("sql 'SELECT id, state, updates FROM runs_view'")
    reader.ask("runs demo --columns 'run,seed,tag,test.*'", of="runs --columns")
    reader.ask("verify demo.tar.gz --again", of="verify FILE.tar.gz")
    reader.type("mkdir open && cd open && tar xzf ../demo.tar.gz && find && echo >> $(find -path '*artifact/*' -name '*.md' | head -1) && tar czf ../damaged.tar.gz *")
    reader.ask("verify damaged.tar.gz", 1, of="verify FILE.tar.gz")
    reader.type("tearless submit grids/demo.toml --set train.max_epochs=5 --name longer && tearless wait last")
    reader.ask(f"diff {sweep} longer", of="diff SWEEP SWEEP")
    reader.ask("delete longer --yes")


def of_odd_runs(reader):
    more = ODD.replace("[1, 2]", "[1, 2, 3]").replace('"Odd"', '"More"').replace('"diverge"', '"succeed"')
    for name, text in {"odd.toml": ODD, "more.toml": more, "open.toml": OPEN, "paper.toml": PAPER, "bad.toml": BAD, "executors.toml": EXECUTORS,
                       "own.py": PROGRAM, "own.toml": OWN, "here.txt": "here"}.items():
        (reader.folder / name).write_text(text)
    (reader.folder / "own.py").chmod(0o755)
    reader.type(COMMIT.format("odd.toml") + " && echo >> odd.toml")
    for words in ("plan open.toml", "plan odd.toml --executor workers", "plan odd.toml --executor a100 --executor-file executors.toml"):
        reader.ask(words)
    for words in ("plan bad.toml", "explain bad.toml", "explain odd.toml"):
        reader.ask(words, 0, 2)
    for words in ("plan paper.toml", "plan paper.toml --executor workers", "plan paper.toml --part odd --part more"):
        reader.ask(words, of="plan PAPER")
    sweep = reader.ask("submit odd.toml")["sweeps"][0]["id"]
    reader.ask("wait last", 1)
    for words in ("figure odd", "plot last big"):
        reader.ask(words)
    reader.ask("plot last big --by run", of="plot --by run")
    for words in ("status odd", "verify-resume ends=well ends=differs", "runs odd", "runs odd --derived", "explain odd", "table odd.toml",
                  "check-table odd.toml", "plan more.toml", "cost", "diff 1 3", "diff 1 7", "sql 'SELECT NULL AS missing'"):
        reader.ask(words, 0, 1)
    reader.environment["FAKE_EXTRA"] = "1"
    reader.ask("verify-resume 1 --today", 1)
    reader.type("tearless submit more.toml && tearless wait last", 0, 1)
    reader.ask(f"diff {sweep} last", of="diff SWEEP SWEEP")
    reader.type("tearless submit own.toml && tearless wait last", 0, 1)
    reader.type("tearless submit open.toml --until-decided && tearless wait last", 0, 1)
    for words in ("explain more.toml", "explain own", "table own", "table paper.toml", "copy own.tar.gz own", "check-table more.toml", "check-table open.toml", "plan open.toml"):
        reader.ask(words, 0, 1)
    left = reader.ask("runs own")[0]
    reader.type("tearless delete own --keep-results --yes; rm -f $(ls -d results/runs/*/attempts/1 | head -1)/exit.json results/tearless.db*")
    for words in ("verify", "verify --repair", "runs " + left["run"]):
        reader.ask(words, 0, 1)
    reader.type("tearless stop --now --wait; mkdir -p results/runs/0000000000000000 && echo x > results/runs/0000000000000000/run.json")
    reader.ask("rebuild", 0, 1)


def of_running_runs(reader):
    (reader.folder / "slow.toml").write_text(SLOW)
    reader.type(COMMIT.format("slow.toml"))
    reader.ask("submit slow.toml --jobs 2 --grace 1 --tag quick --note 'two runs'")

    def live(answer):
        return answer["sweeps"][0]["live"] or {"attempts": []}

    sweep = reader.ask_until("status", lambda answer: len(live(answer)["attempts"]) == 2)["sweeps"][0]
    for run in sweep["runs"]:
        (reader.folder / f"results/runs/{run['id']}/attempts/1/measured.json").write_text('{"tokens_per_second": 5.0}')
    for name in ("tokens_per_second", "seconds_left", "dev_score"):
        reader.ask_until("status", lambda answer: any(attempt[name] for attempt in live(answer)["attempts"]))
    for words in ("explain", "runs", "copy running --results", "pause speed=mute"):
        reader.ask(words)
    reader.ask_until("status", lambda answer: live(answer)["seconds_left"] is not None if "seconds_left" in live(answer) else False)
    first = sweep["id"]
    for words in ("resume speed=mute", "cancel last", "retry speed=fast", "submit slow.toml --set fake.updates=2000000",
                  "submit slow.toml --set fake.updates=3000000 --replace", "submit slow.toml --set fake.updates=4000000", "cancel last", "submit slow.toml --set fake.updates=4000000"):
        reader.ask(words, 0, 1)
    reader.ask(f"diff {first} last", of="diff SWEEP SWEEP")
    for _ in range(2):
        reader.ask("stop --now --wait")
    reader.ask("status")


def commands_with_json():
    """The commands that have --json, as the program names them to one who asks another command for it."""
    refusal = subprocess.run([BIN / "tearless", "watch", "--json"], capture_output=True, text=True).stderr
    return refusal.strip().rpartition("one of: ")[2].split(", ")


def answers():
    """Those of all commands that print JSON: section of docs/json.md -> [(command, answer), ...]."""
    tasks = {of_the_demo: {"FAKE_SCORES": SCORES}, of_odd_runs: {"HF_HOME": "here", "HF_TOKEN": "secret"}, of_running_runs: {}}

    def asked(task, folder):
        found = {}
        reader = Reader(found, folder, **tasks[task])
        try:
            task(reader)
        finally:
            reader.type("tearless stop --now --wait", 0, 2)
        return found

    found = {}
    with tempfile.TemporaryDirectory(prefix="tearless-json-", ignore_cleanup_errors=True) as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for own in pool.map(lambda task: asked(task, pathlib.Path(folder) / task.__name__), tasks):
            for section, answers_of in own.items():
                found.setdefault(section, []).extend(answers_of)
    return found
