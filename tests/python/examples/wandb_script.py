"""A script for W&B, as its users write them."""

import argparse
import random
import time

import wandb

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--pause", type=float, default=0.0)
args = parser.parse_args()

wandb.init(project="parabola", config=args, tags=["first"])
random.seed(args.seed)
x = random.uniform(-1, 1)
best = float("inf")
for epoch in range(args.epochs):
    loss = (x - 0.5) ** 2
    x -= args.lr * (2 * (x - 0.5) + random.gauss(0, 0.1))
    best = min(best, loss)
    wandb.log({"train/loss": loss, "x": x})
    time.sleep(args.pause)
wandb.summary["best_loss"] = best
