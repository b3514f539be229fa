#!/usr/bin/env python3
"""Writes tests/golden/digits_parity/*.json: what the network of the task digits must compute, as make_golden.py has it for Transformers.

Plain PyTorch: images with channels first, conv2d, max_pool2d, autograd. The engine has channels last: the order of a kernel's columns, of a
norm's gain and of the numbers that a linear layer reads is changed here, at the border to the file.

    python3 tools/make_golden_digits.py tests/golden
"""
import math
import pathlib
import sys
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

import make_golden
from make_golden import LABEL_SMOOTHING, dropout, random_bits, uniform

HEIGHT, WIDTH, KERNEL = 14, 12, 3
CONV1, CONV2, HIDDEN, DIGITS = 2, 4, 11, 10  # so many that ReLU and dropout leave a norm of an input more than one number
# Four images; their numbers in the set determine their dropout masks.
NUMBERS = [3, 70_000, 12, 54_999]
LABELS = [7, 0, 9, 0]
MEAN, DEVIATION = 0.1307, 0.3081


def pixels():
    """[N, H, W] bytes: a bar in noise."""
    image = np.arange(len(LABELS))[:, None, None]
    y, x = np.arange(HEIGHT)[None, :, None], np.arange(WIDTH)[None, None, :]
    noise = random_bits(5, "pixels", x, y, image).astype(np.int64) % 64
    return np.where(x == 2 + 2 * image, 160 + noise, noise)


def standardised():
    """As the engine gives them to the network: rounded to float."""
    return ((pixels() / 255 - MEAN) / DEVIATION).astype(np.float32).astype(np.float64)


@dataclass
class DigitsCase:
    norm: str
    norm_sites: str = "activations"
    arch: str = "pytorch_example"
    init: str = "torch_default"
    norm_settings: dict = field(default_factory=dict)
    dropout: dict = field(default_factory=lambda: {"conv": 0.2, "hidden": 0.3})

    def __post_init__(self):
        if self.arch == "conv_conv_fc":
            self.dropout = {"conv": self.dropout["conv"], "hidden": 0.0}

    def settings(self):
        model = {
            "arch": self.arch, "conv1_channels": CONV1, "conv2_channels": CONV2, "kernel": KERNEL, "hidden": HIDDEN,
            "norm_sites": self.norm_sites, "init": self.init, "norm.kind": self.norm,
        } | {"dropout." + key: p for key, p in self.dropout.items()} | {"norm." + key: v for key, v in self.norm_settings.items()}
        return {"model." + key: value for key, value in model.items()}

    def rates(self):
        return [0.005] * make_golden.UPDATES

    def layers(self):
        """(name, shape of the input of one image, shape of the output, whether ReLU follows), shapes as [H, W, C]."""
        def convolved(shape, channels):
            return shape[0] - KERNEL + 1, shape[1] - KERNEL + 1, channels

        def pooled(shape):
            return shape[0] // 2, shape[1] // 2, shape[2]

        image = (HEIGHT, WIDTH, 1)
        after1 = convolved(image, CONV1)
        after2 = convolved(pooled(after1), CONV2)
        flat = pooled(after2)
        yield "conv1", image, after1, True
        yield "conv2", pooled(after1), after2, True
        if self.arch == "pytorch_example":
            yield "fc1", flat, (1, 1, HIDDEN), True
            yield "fc2", (1, 1, HIDDEN), (1, 1, DIGITS), False
        else:
            yield "fc", flat, (1, 1, DIGITS), False

    def norm_shape(self, name, shape_in, shape_out, has_relu):
        """What the layer's norm is over; None: it has none."""
        if self.norm_sites == "inputs":
            return shape_in
        if self.norm_sites == "linear":
            return shape_out if name == "fc1" else None
        return shape_out if has_relu else None


def channels_last(x):
    """[N, C, H, W] → [N, H · W · C]."""
    return x.permute(0, 2, 3, 1).flatten(1)


def channels_first(x, shape):
    """[N, H · W · C] → [N, C, H, W]."""
    return x.view(-1, *shape).permute(0, 3, 1, 2)


class DigitNetwork:
    """One forward pass: the parameters, and the update that the dropout masks depend on (0: evaluation, no dropout)."""

    def __init__(self, case, parameters, update):
        self.case, self.p, self.update = case, parameters, update

    @staticmethod
    def initial_parameters(case):
        p = {}
        for name, shape_in, shape_out, has_relu in case.layers():
            window = KERNEL**2 if name.startswith("conv") else 1
            fan_in = window * shape_in[2] if name.startswith("conv") else math.prod(shape_in)
            out = shape_out[2]
            torch_default = case.init == "torch_default"
            bound = 1 / math.sqrt(fan_in) if torch_default else math.sqrt(6 / (fan_in + window * out))
            p[name + ".weight"] = uniform(name + ".weight", (out, fan_in), bound)
            p[name + ".bias"] = uniform(name + ".bias", (1, out), bound)[0] if torch_default else np.zeros(out)
            shape = case.norm_shape(name, shape_in, shape_out, has_relu)
            if shape is not None:
                p |= make_golden.norm_parameters(case.norm, name, math.prod(shape))
        return make_golden.rounded(p)

    @staticmethod
    def data(case):
        return {"label_smoothing": LABEL_SMOOTHING, "height": HEIGHT, "width": WIDTH, "mean": MEAN, "deviation": DEVIATION,
                "numbers": NUMBERS, "labels": LABELS, "pixels": pixels().flatten().tolist()}

    def norm(self, x, name):
        return make_golden.norm(self.case.norm, self.case.norm_settings, x, self.p.get(name + ".norm.gain"), self.p.get(name + ".norm.bias"))

    def dropout(self, x, name, shape):
        """x [N, H · W · C]; a mask for each number of each pixel."""
        pixel = np.arange(shape[0] * shape[1])[None, :, None]
        channel = np.arange(shape[2])[None, None, :]
        p = self.case.dropout["conv" if name.startswith("conv") else "hidden"]
        mask = dropout(torch.ones(len(NUMBERS), shape[0] * shape[1], shape[2]), p, name, channel, pixel,
                       np.array(NUMBERS)[:, None, None], self.update)
        return x * mask.flatten(1)

    def logits(self):
        x = torch.from_numpy(standardised()).flatten(1)
        for name, shape_in, shape_out, has_relu in self.case.layers():
            if self.case.norm_sites == "inputs":
                x = self.norm(x, name)
            weight, bias = self.p[name + ".weight"], self.p[name + ".bias"]
            if name.startswith("conv"):
                kernel = weight.view(shape_out[2], KERNEL, KERNEL, shape_in[2]).permute(0, 3, 1, 2)
                x = channels_last(F.conv2d(channels_first(x, shape_in), kernel, bias))
            else:
                x = F.linear(x, weight, bias)
            if not has_relu:
                continue
            if self.case.norm_sites != "inputs" and self.case.norm_shape(name, shape_in, shape_out, has_relu):
                x = self.norm(x, name)
            x, shape = torch.relu(x), shape_out
            if name.startswith("conv"):
                shape = (shape_out[0] // 2, shape_out[1] // 2, shape_out[2])
                x = channels_last(F.max_pool2d(channels_first(x, shape_out), 2))
            x = self.dropout(x, name, shape)
        return x

    def loss(self):
        return make_golden.losses(self.logits(), torch.tensor(LABELS))

    def dropped(self):
        """The numbers dropped after each layer but the last: of what the next layer reads."""
        layers = list(self.case.layers())
        inputs = [(name, following[1]) for (name, *_), following in zip(layers, layers[1:])]
        return [int((self.dropout(torch.ones(len(NUMBERS), math.prod(shape)), name, shape) == 0).sum()) for name, shape in inputs]


def cases():
    for sites in ("activations", "linear", "inputs"):
        for kind in ("layer_norm", "scale_norm", "ada_norm"):
            yield f"{kind}_{sites}", DigitsCase(kind, sites)
            if sites != "linear":
                yield f"{kind}_{sites}_conv_conv_fc", DigitsCase(kind, sites, "conv_conv_fc")
    yield "none", DigitsCase("none")
    yield "none_conv_conv_fc_xavier", DigitsCase("none", arch="conv_conv_fc", init="xavier_uniform")
    yield "rms_norm_inputs_xavier", DigitsCase("rms_norm", "inputs", init="xavier_uniform")
    yield "ln_simple_activations_as_in_the_code", DigitsCase("ln_simple", norm_settings={"eps_mode": "std_add", "deviation": "unbiased"})
    yield "detach_norm_activations", DigitsCase("detach_norm")
    yield "scale_norm_fixed_linear_no_dropout", DigitsCase("scale_norm_fixed", "linear", dropout={"conv": 0.0, "hidden": 0.0})


def main():
    make_golden.check_philox()
    make_golden.write(pathlib.Path(sys.argv[1]) / "digits_parity", DigitNetwork, cases())


if __name__ == "__main__":
    main()
