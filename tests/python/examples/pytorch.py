#!/usr/bin/env python3
"""A PyTorch loop with dropout and Adam. Its checkpoint has the state of the random numbers, too, so stops change no byte
of a result."""

import time

import tearless


@tearless.settings(files=[], scores=["test.accuracy"])
class Settings:
    epochs: int = 12
    lr: float = tearless.setting(0.01, above=0)
    width: int = tearless.setting(16, min=1)
    seed: int = 1
    pause: float = tearless.setting(0.0, local=True)


import torch  # noqa: E402  below the settings, so that `tearless plan` need not wait for it

run = tearless.Run(Settings)
settings = run.settings
torch.set_num_threads(1)
torch.manual_seed(settings.seed)
model = torch.nn.Sequential(torch.nn.Linear(2, settings.width), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                            torch.nn.Linear(settings.width, 2))
optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr)
saved = run.resume()
if saved:
    state = torch.load(saved)
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    torch.set_rng_state(state["random"])


def points(seed, count=512):
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return x, (x[:, 0] * x[:, 1] > 0).long()


for epoch in range(run.step + 1, settings.epochs + 1):
    model.train()
    for x, y in zip(*(part.split(32) for part in points(epoch))):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    run.log(epoch, {"train.loss": loss})
    state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "random": torch.get_rng_state()}
    run.checkpoint(lambda file: torch.save(state, file))
    if run.should_stop:
        break
    time.sleep(settings.pause)

model.eval()
x, y = points(0)
run.done({"test.accuracy": 100 * (model(x).argmax(1) == y).float().mean()})
