#!/usr/bin/env python3
"""A PyTorch loop and JoeyNMT 2.3 as programs of grids that are killed. They need a Python with both, which PyPI's packages
make (4 GB: the torch for Linux is the one for CUDA); TEARLESS_JOEYNMT_PYTHON names it, as for tools/bench/joeynmt.py:

    pip install joeynmt==2.3.0 torch==2.11.0 sentencepiece==0.2.1 importlib_metadata
"""

import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import junit_report  # noqa: E402
import trainer_test  # noqa: E402

PYTHON = os.environ.get("TEARLESS_JOEYNMT_PYTHON", sys.executable)

JOEYNMT = """
name: small
joeynmt_version: "2.3.0"
use_cuda: False
fp16: False
random_seed: 42
data:
  dataset_type: plain
  train: corpus/train
  dev: corpus/dev
  src: {lang: de, level: word, voc_limit: 500, lowercase: True}
  trg: {lang: en, level: word, voc_limit: 500, lowercase: True}
training:
  optimizer: adam
  learning_rate: 0.0005
  scheduling: noam
  learning_rate_factor: 0.5
  learning_rate_warmup: 40
  batch_type: sentence
  batch_size: 16
  epochs: 100
  updates: 1
  validation_freq: 20
  logging_freq: 1
  early_stopping_metric: bleu
  keep_best_ckpts: 2
  print_valid_sents: []
testing:
  batch_size: 16
  beam_size: 1
  max_output_length: 20
  eval_metrics: [bleu]
model:
  initializer: xavier_uniform
  encoder: {type: transformer, num_layers: 1, num_heads: 2, hidden_size: 16, ff_size: 32, dropout: 0.1,
            embeddings: {embedding_dim: 16, scale: True}}
  decoder: {type: transformer, num_layers: 1, num_heads: 2, hidden_size: 16, ff_size: 32, dropout: 0.1,
            embeddings: {embedding_dim: 16, scale: True}}
"""


class TorchTrainer(trainer_test.Killed):
    def require(self, *modules):
        code = "import " + ", ".join(modules)
        ended = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)
        if ended.returncode:
            self.skipTest(f"{PYTHON}: {ended.stderr.strip().splitlines()[-1]} (TEARLESS_JOEYNMT_PYTHON names another)")
        # Programs begin with `#!/usr/bin/env python3`.
        self.environment["PATH"] = os.pathsep.join([str(pathlib.Path(PYTHON).parent), self.environment["PATH"]])

    def test_of_pytorch_that_is_killed_has_the_same_bytes(self):
        self.require("torch")
        self.example("pytorch.py")
        self.grid("pytorch.py", "pause = [0.2]\nwidth = [16]", "test.accuracy", top='seed_key = "seed"')
        self.tearless("run", "grid.toml", "--workspace", "whole")
        self.killed("killed", signal.SIGKILL, signal.SIGTERM, lines=3)
        self.assertEqual(self.attempts("killed"), [3, 3])
        self.assertEqual(self.results("whole"), self.results("killed"))
        arithmetic = next((self.folder / "killed/runs").glob("*/attempts/1/arithmetic")).read_text()
        self.assertRegex(arithmetic, r"^Python [\d.]+, torch [\d.]+")

    def test_of_joeynmt_goes_on_where_it_was(self):
        self.require("joeynmt.training", "torch")
        self.example("joeynmt_run.py")
        (self.folder / "joeynmt.yaml").write_text(JOEYNMT)
        (self.folder / "corpus").mkdir()
        for part, lines in (("train", 400), ("dev", 40)):
            for language in ("de", "en"):
                text = (trainer_test.SOURCE / f"grids/demo/{part}.{language}").read_text().splitlines(keepends=True)
                (self.folder / f"corpus/{part}.{language}").write_text("".join(text[:lines]))
        self.grid("joeynmt_run.py", '"training.updates" = [60]', "dev.bleu", top='seed_key = "random_seed"')
        self.killed("killed", signal.SIGTERM, signal.SIGKILL, lines=25)
        for run in (self.folder / "killed/runs").iterdir():
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            self.assertEqual([line["step"] for line in lines if line["name"] == "train.loss"], list(range(1, 61)))
            self.assertIn("dev.bleu", json.loads((run / "scores.json").read_text()))
            for attempt in (2, 3):
                self.assertIn("Loading model from", (run / f"attempts/{attempt}/log.txt").read_text())


if __name__ == "__main__":
    sys.exit(junit_report.run("TorchTrainers", *sys.argv[1:]))
