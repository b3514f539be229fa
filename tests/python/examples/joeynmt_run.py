#!/usr/bin/env python3
"""JoeyNMT 2.3 from its own YAML, of which a grid sets what it likes. JoeyNMT's checkpoint lacks the state of dropout, so a
run that was stopped ends with other numbers."""

import os
import sys
from pathlib import Path

import tearless

# The YAML, from whose folder its relative paths start; the folder of its corpus; and settings of the YAML, by their keys.
run = tearless.Run({"yaml": Path("joeynmt.yaml"), "corpus": Path("corpus"), "random_seed": 1, "training.learning_rate": 0.001,
                    "training.updates": 40})

import torch  # noqa: E402
import yaml  # noqa: E402
from joeynmt import training  # noqa: E402

torch.set_num_threads(1)
settings = dict(run.settings)
file = settings.pop("yaml")
del settings["corpus"]
config = yaml.safe_load(file.read_text())
os.chdir(file.parent)
for key, value in settings.items():
    *above, last = key.split(".")
    part = config
    for name in above:
        part = part[name]
    part[last] = value
model = run.folder / "model"
model.mkdir(exist_ok=True)
config["model_dir"] = str(model)
saved = run.resume()
if saved:
    config["training"]["load_model"] = str(saved)


class Manager(training.TrainManager):
    def _log_scores(self, epoch_no, elapsed_time, start_tokens, start_correct, total_batch_loss):
        super()._log_scores(epoch_no, elapsed_time, start_tokens, start_correct, total_batch_loss)
        run.log(self.stats.steps, {"train.loss": total_batch_loss})
        if run.should_stop:
            sys.exit()  # JoeyNMT saves its state on the way

    def _validate(self, valid_data):
        super()._validate(valid_data)
        if (model / f"{self.stats.steps}.ckpt").exists():
            run.checkpoint(model / f"{self.stats.steps}.ckpt")

    def _add_report(self, valid_scores, new_best=False):
        super()._add_report(valid_scores, new_best)
        run.log(self.stats.steps, {f"dev.{name}": score for name, score in valid_scores.items()})
        best.update({"dev.bleu": self.stats.best_ckpt_score, "selected_step": self.stats.best_ckpt_iter})

    def _save_checkpoint(self, new_best, score):
        super()._save_checkpoint(new_best, score)
        if run.should_stop:
            run.checkpoint(model / f"{self.stats.steps}.ckpt")


best = {}
training.TrainManager = Manager
training.train(rank=0, world_size=None, cfg=config, skip_test=True)
run.done(best)
