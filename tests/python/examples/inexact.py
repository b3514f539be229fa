#!/usr/bin/env python3
"""Linear regression by numpy. Its checkpoint has no momentum, so a run that was stopped ends with other numbers:
`tearless verify-resume` says so, and `tearless table --resume-note`."""

import time

import numpy

import tearless

run = tearless.Run({"train.updates": 60, "train.lr": 0.05, "train.seed": 1, "train.pause": 0.0}, files=[])
lr, updates = run.settings["train.lr"], run.settings["train.updates"]
truth = numpy.array([1.0, -2.0, 3.0])
weights, speed = numpy.zeros(3), numpy.zeros(3)
saved = run.resume()
if saved:
    weights = numpy.load(saved)

for step in range(run.step + 1, updates + 1):
    draw = numpy.random.default_rng([run.settings["train.seed"], step])
    x = draw.normal(size=(8, 3))
    error = x @ (weights - truth) + draw.normal(size=8)
    run.log(step, loss=(error**2).mean())
    speed = 0.9 * speed - lr * error @ x / 8
    weights = weights + speed
    if step % 10 == 0 or run.should_stop:
        run.checkpoint(lambda file: numpy.save(file, weights))
    if run.should_stop:
        break
    time.sleep(run.settings["train.pause"])
run.done(distance=numpy.linalg.norm(weights - truth))
