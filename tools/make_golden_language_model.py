#!/usr/bin/env python3
"""Writes tests/golden/language_model_parity/*.json: what Transformer-XL must compute, as make_golden.py has it for Transformers.

Plain PyTorch, written from docs/spec/tasks.md §1.2: a score for each pair of a query and a key, with the vector of their distance looked up.
Update n reads segment n of two streams; segment 0 has been read before, without dropout, so the memory of update 1 is filled in part.

    python3 tools/make_golden_language_model.py tests/golden
"""
import math
import pathlib
import sys
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

import make_golden
from make_golden import LABEL_SMOOTHING, Case, Layers, random_bits

VOCABULARY, STREAMS, SEGMENT, MEMORY = 9, 2, 3, 7
LENGTH = SEGMENT * (make_golden.UPDATES + 1) + 1


def text():
    """[streams, length]: each token often follows the one before it."""
    stream, place = np.indices((STREAMS, LENGTH))
    bits = random_bits(5, "text", place, stream).astype(np.int64)
    return torch.from_numpy(np.where(bits % 4 == 0, bits // 4 % VOCABULARY, (2 * place + stream) % VOCABULARY))


@dataclass
class LanguageModelCase(Case):
    placement: str = "post"
    init: str = "txl"
    layers: int = 2
    memory: int = MEMORY
    dropout: dict = field(default_factory=lambda: {"residual": 0.2, "attention": 0.2, "relu": 0.1})

    def model_settings(self):
        return {"layers": self.layers, "memory": self.memory, "d_model": self.d, "d_ff": self.f, "heads": self.heads, "fix_norm": self.fix_norm,
                "output_bias": self.output_bias} | self.inputs

    def rates(self):
        return [0.01] * make_golden.UPDATES

    def norms_of(self, sublayer):
        return [sublayer]

    def norm_of(self, name):
        return self.norm


class LanguageModel(Layers):
    def __init__(self, case, parameters, update):
        super().__init__(case, parameters, update, range(STREAMS))
        if update <= 1 and parameters:
            # The first pass of a set of parameters starts with an empty memory, which segment 0 fills.
            case.memories = [torch.zeros(STREAMS, 0, case.d, dtype=torch.float64) for _ in range(case.layers)]
            self.update = 0
            with torch.no_grad():
                self.read(0)
            self.update = update

    @staticmethod
    def initial_parameters(case):
        p = {}
        normal, txl = make_golden.normal, case.init == "txl"

        def matrix(name, out, fan_in):
            p[name] = normal(name, (out, fan_in), 0.02 if txl else math.sqrt(2 / (out + fan_in)))

        matrix("embedding", VOCABULARY, case.d)
        if case.fix_norm:
            p["embedding"] = make_golden.uniform("embedding", (VOCABULARY, case.d), 0.01)
        elif not txl:
            p["embedding"] = normal("embedding", (VOCABULARY, case.d), case.d**-0.5)
        for name in "uw":
            heads, width = case.heads, case.d // case.heads
            p[name] = normal(name, (1, case.d), 0.02 if txl else math.sqrt(2 / (heads + width)))[0]
        for layer in range(1, case.layers + 1):
            attention, ffn = f"decoder.{layer}.relative_attention", f"decoder.{layer}.ffn"
            for part in "qkvro":
                matrix(f"{attention}.{part}.weight", case.d, case.d)
            matrix(ffn + ".w1.weight", case.f, case.d)
            p[ffn + ".w1.bias"] = np.zeros(case.f)
            matrix(ffn + ".w2.weight", case.d, case.f)
            p[ffn + ".w2.bias"] = np.zeros(case.d)
            for name in (attention, ffn):
                p.update(LanguageModel.norm_parameters(case, name))
        if case.placement == "pre":
            p.update(LanguageModel.norm_parameters(case, "decoder.final"))
        if case.output_bias:
            p["output.bias"] = np.zeros(VOCABULARY)
        return make_golden.rounded(p)

    @staticmethod
    def norm_parameters(case, name):
        p = make_golden.norm_parameters(case.norm, name, case.d)
        gain = f"{name}.norm.gain"
        if case.init == "txl" and gain in p:
            p[gain] = p[gain] + make_golden.normal(gain, (1, len(p[gain])), 0.02)[0]
        return p

    @staticmethod
    def data(case):
        return {"label_smoothing": LABEL_SMOOTHING, "vocabulary": VOCABULARY, "streams": STREAMS, "segment": SEGMENT, "text": text().flatten().tolist()}

    def relative_attention(self, x, memory, name):
        """x [B, T, D], memory [B, M, D] of the rows that are filled."""
        heads, width = self.case.heads, self.case.d // self.case.heads
        rows, remembered = x.shape[1], memory.shape[1]
        every = torch.cat([memory, x], 1)
        distance = torch.arange(rows)[:, None] + remembered - torch.arange(remembered + rows)[None, :]  # [T, K]

        def project(y, part):
            return F.linear(y, self.p[f"{name}.{part}.weight"])

        def split(y):
            return y.unflatten(-1, (heads, width))

        q, k, v = split(project(x, "q")), split(project(every, "k")), split(project(every, "v"))
        r = split(project(self.distances(), "r"))[distance.clamp(min=0)]  # [T, K, H, width]
        content = torch.einsum("bihw,bjhw->bhij", q + split(self.p["u"]), k)
        place = torch.einsum("bihw,ijhw->bhij", q + split(self.p["w"]), r)
        scores = ((content + place) / math.sqrt(width)).masked_fill(distance < 0, -math.inf)
        weights = torch.softmax(scores, -1)
        outer = np.arange(rows)[:, None] + (np.arange(heads)[:, None, None] << 16)
        weights = self.dropout(weights, self.case.dropout["attention"], name + ".weights", np.arange(remembered + rows), outer,
                               self.lines[..., None])
        return project(torch.einsum("bhij,bjhw->bihw", weights, v).flatten(2), "o")

    def distances(self):
        """[M + T, D], one mask for all streams, layers and heads."""
        count, d = self.case.memory + SEGMENT, self.case.d
        angles = torch.arange(count, dtype=torch.float64)[:, None] / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
        vectors = torch.cat([angles.sin(), angles.cos()], 1).float().double()
        return self.dropout(vectors, self.case.dropout["residual"], "distances", np.arange(d), np.arange(count)[:, None], 0)

    def read(self, number):
        """→ logits [B, T, V] of segment `number`; moves the memory on."""
        tokens = text()[:, number * SEGMENT:(number + 1) * SEGMENT]
        scale = self.case.inputs.get("embedding_scale", math.sqrt(self.case.d))
        x = self.residual_dropout(scale * F.embedding(tokens, self.table("embedding")), "embedding", self.case.dropout.get("embedding"))
        for layer in range(self.case.layers):
            memory, kept = self.case.memories[layer], []

            def attention(y, name):
                kept.append(y.detach())
                return self.relative_attention(y, memory, name)

            for sublayer, function in (("relative_attention", attention), ("ffn", self.ffn)):
                name = f"decoder.{layer + 1}.{sublayer}"
                x = self.sublayer(x, name, lambda y: function(y, name))
            every = torch.cat([memory, kept[0]], 1)
            self.case.memories[layer] = every[:, max(0, every.shape[1] - self.case.memory):]
        x = self.residual_dropout(self.final(x, "decoder"), "output")
        return F.linear(x, self.table("embedding"), self.p.get("output.bias"))

    def loss(self):
        number = max(self.update, 1)
        logits = self.read(number).flatten(0, 1)
        labels = text()[:, number * SEGMENT + 1:(number + 1) * SEGMENT + 1].flatten()
        return make_golden.losses(logits, labels)

    def dropped(self):
        return [int((self.dropout(torch.ones(4, 8), 0.2, "distances", np.arange(8), np.arange(4)[:, None], 0) == 0).sum())]


def cases():
    for kind in ("layer_norm", "none", "scale_norm", "ada_norm"):
        yield f"{kind}_post", LanguageModelCase(kind)
    yield "layer_norm_pre_xavier", LanguageModelCase("layer_norm", "pre", init="xavier_normal")
    yield "layer_norm_post_four_heads", LanguageModelCase("layer_norm", heads=4, f=7, layers=3)
    yield "rms_norm_pre_fix_norm", LanguageModelCase("rms_norm", "pre", fix_norm=True, output_bias=False, inputs={"embedding_scale": 3.0})
    yield "layer_norm_post_without_memory", LanguageModelCase("layer_norm", memory=0)
    yield "layer_norm_post_memory_of_two", LanguageModelCase("layer_norm", memory=2, dropout={
        "residual": 0.1, "attention": 0.0, "relu": 0.1, "embedding": 0.3})
    yield "layer_norm_post_no_dropout", LanguageModelCase("layer_norm", dropout={"residual": 0.0, "attention": 0.0, "relu": 0.0})


def main():
    make_golden.check_philox()
    make_golden.write(pathlib.Path(sys.argv[1]) / "language_model_parity", LanguageModel, cases())


if __name__ == "__main__":
    main()
