#!/usr/bin/env python3
"""Writes tests/golden/parser_parity/*.json: what the network of the task parse must compute, as make_golden.py has it for Transformers.

Plain PyTorch: embeddings side by side, F.linear, autograd. The softmax over legal transitions is one over their logits alone.

    python3 tools/make_golden_parser.py tests/golden
"""
import math
import pathlib
import sys
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

import make_golden
from make_golden import dropout, normal, random_bits, uniform

TYPES, FEATURES, TRANSITIONS, EMBEDDING, HIDDEN = 23, 5, 7, 4, 9
# Six configurations; their numbers in the training set determine their dropout masks.
NUMBERS = [3, 70_000, 12, 0, 2_000_123, 5]
IS_LEGAL = [[1, 1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0, 1], [1, 0, 1, 1, 1, 0, 0]]
LEGAL = [0, 1, 2, 0, 2, 2]
LABELS = [6, 6, 3, 0, 0, 4]


def tokens():
    """[N, F]; some of a place are equal, and some of different places."""
    n, f = np.indices((len(NUMBERS), FEATURES))
    return torch.from_numpy((random_bits(5, "tokens", f, n).astype(np.int64) % 6 * 4 + f) % TYPES)


@dataclass
class ParserCase:
    norm: str
    activation: str = "relu"
    hidden_layers: int = 2
    output_bias: bool = True
    softmax: str = "legal"
    init: str = "torch_default"
    embedding_init: str = "normal"
    rescale: bool = True
    dropout: float = 0.3
    norm_settings: dict = field(default_factory=dict)

    def settings(self):
        model = {
            "embedding": EMBEDDING, "hidden": HIDDEN, "hidden_layers": self.hidden_layers, "activation": self.activation,
            "output_bias": self.output_bias, "softmax": self.softmax, "init": self.init, "embedding_init": self.embedding_init,
            "norm.kind": self.norm, "dropout.hidden": self.dropout, "dropout.rescale": self.rescale,
        } | {"norm." + key: v for key, v in self.norm_settings.items()}
        return {"model." + key: value for key, value in model.items()}

    def rates(self):
        return [0.005] * make_golden.UPDATES

    def layers(self):
        """(name, inputs, outputs)"""
        width = FEATURES * EMBEDDING
        for layer in range(1, self.hidden_layers + 1):
            yield f"hidden.{layer}", width, HIDDEN
            width = HIDDEN

    def label_smoothing(self):
        return make_golden.LABEL_SMOOTHING if self.softmax == "all" else 0.0


class ParserNetwork:
    """One forward pass: the parameters, and the update that the dropout masks depend on (0: evaluation, no dropout)."""

    def __init__(self, case, parameters, update):
        self.case, self.p, self.update = case, parameters, update

    @staticmethod
    def initial_parameters(case):
        shape = (TYPES, EMBEDDING)
        name = "embedding.weight"
        p = {name: normal(name, shape, EMBEDDING**-0.5) if case.embedding_init == "normal" else uniform(name, shape, 0.01)}

        def linear(name, fan_in, out, has_bias):
            bound = 1 / math.sqrt(fan_in) if case.init == "torch_default" else 0.01
            p[name + ".weight"] = uniform(name + ".weight", (out, fan_in), bound)
            if has_bias:
                p[name + ".bias"] = uniform(name + ".bias", (1, out), bound)[0]

        for name, fan_in, out in case.layers():
            linear(name, fan_in, out, True)
            p.update(make_golden.norm_parameters(case.norm, name, out))
        linear("output", HIDDEN, TRANSITIONS, case.output_bias)
        return make_golden.rounded(p)

    @staticmethod
    def data(case):
        return {"label_smoothing": case.label_smoothing(), "types": TYPES, "features": FEATURES, "transitions": TRANSITIONS,
                "tokens": tokens().flatten().tolist(), "is_legal": IS_LEGAL, "legal": LEGAL, "labels": LABELS, "numbers": NUMBERS}

    def kept(self, x, name):
        """x [N, H] after dropout."""
        channel, number = np.arange(x.shape[1])[None, :], np.array(NUMBERS)[:, None]
        y = dropout(x, self.case.dropout, name, channel, 0, number, self.update)
        return y if self.case.rescale or self.update == 0 else y / float(np.float32(1 / (1 - self.case.dropout)))

    def hidden(self):
        x = self.p["embedding.weight"][tokens()].flatten(1)
        for name, _, _ in self.case.layers():
            x = F.linear(x, self.p[name + ".weight"], self.p[name + ".bias"])
            x = make_golden.norm(self.case.norm, self.case.norm_settings, x, self.p.get(name + ".norm.gain"), self.p.get(name + ".norm.bias"))
            x = self.kept(torch.relu(x) if self.case.activation == "relu" else x**3, name)
        return x

    def logits(self):
        return F.linear(self.hidden(), self.p["output.weight"], self.p.get("output.bias"))

    def loss(self):
        logits = self.logits()
        labels = torch.tensor(LABELS)
        if self.case.softmax == "all":
            return make_golden.losses(logits, labels)
        of_rows = []
        for row, legal, label in zip(logits, LEGAL, LABELS):
            columns = [t for t in range(TRANSITIONS) if IS_LEGAL[legal][t]]
            of_rows.append(-F.log_softmax(row[columns], 0)[columns.index(label)])
        nll = torch.stack(of_rows)
        legal = torch.tensor(IS_LEGAL, dtype=torch.bool)[LEGAL]
        return nll.mean(), nll.sum(), nll.sum(), torch.where(legal, logits, torch.tensor(-1e30, dtype=logits.dtype))

    def dropped(self):
        return [int((self.kept(torch.ones(len(NUMBERS), out), name) == 0).sum()) for name, _, out in self.case.layers()]


def cases():
    for activation in ("relu", "cube"):
        for kind in ("layer_norm", "scale_norm", "ada_norm", "none"):
            yield f"{kind}_{activation}", ParserCase(kind, activation)
    yield "layer_norm_relu_one_layer_all", ParserCase("layer_norm", hidden_layers=1, softmax="all")
    yield "rms_norm_relu_three_layers", ParserCase("rms_norm", hidden_layers=3, embedding_init="uniform")
    yield "none_cube_as_in_corenlp", ParserCase("none", "cube", 1, output_bias=False, init="uniform", rescale=False, dropout=0.5)
    yield "none_relu_not_rescaled", ParserCase("none", output_bias=False, rescale=False)
    yield "none_cube_all_no_dropout", ParserCase("none", "cube", softmax="all", dropout=0.0)


def main():
    make_golden.check_philox()
    make_golden.write(pathlib.Path(sys.argv[1]) / "parser_parity", ParserNetwork, cases())


if __name__ == "__main__":
    main()
