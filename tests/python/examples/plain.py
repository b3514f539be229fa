#!/usr/bin/env python3
"""Logistic regression on made-up points, in plain Python. Its checkpoint has all that the next update needs, so stops
change no byte of a result."""

import math
import pickle
import random
import time

import tearless


@tearless.settings(files=[], scores=["test.accuracy"], metrics=["train.loss"])
class Settings:
    updates: int = tearless.setting(60, min=1)
    lr: float = tearless.setting(0.5, above=0, max=10)
    momentum: float = tearless.setting(0.0, min=0, max=1, neutral=0.0)
    seed: int = 1
    pause: float = tearless.setting(0.0, min=0, local=True)  # seconds after each update


run = tearless.Run(Settings)
settings = run.settings
draw = random.Random(settings.seed)
weights, speed = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
saved = run.resume()
if saved:
    state, weights, speed = pickle.loads(saved.read_bytes())
    draw.setstate(state)


def example(draw):
    x = [1.0, draw.gauss(0, 1), draw.gauss(0, 1)]
    return x, float(x[1] + 2 * x[2] + draw.gauss(0, 1) > 0.5)


def predicted(x):
    return 1 / (1 + math.exp(-sum(w * value for w, value in zip(weights, x))))


for step in range(run.step + 1, settings.updates + 1):
    x, label = example(draw)
    p = predicted(x)
    run.log(step, {"train.loss": -math.log(p if label else 1 - p)})
    speed = [settings.momentum * v - settings.lr * (p - label) * value for v, value in zip(speed, x)]
    weights = [w + v for w, v in zip(weights, speed)]
    if step % 20 == 0 or run.should_stop:
        run.checkpoint(pickle.dumps((draw.getstate(), weights, speed)))
    if run.should_stop:
        break
    time.sleep(settings.pause)

test = [example(draw) for draw in [random.Random(0)] for _ in range(1000)]
run.done({"test.accuracy": sum((predicted(x) > 0.5) == label for x, label in test) / 10})
