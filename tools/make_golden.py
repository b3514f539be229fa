#!/usr/bin/env python3
"""Writes tests/golden/parity/*.json and tests/golden/classifier_parity/*.json: what the models must compute, by a second implementation
that shares nothing with the engine.

Plain PyTorch: padded batches, masks, autograd, torch's own layer norm, embedding, cross-entropy, clipping and Adam; a Philox in
numpy. Numbers are computed in double precision from starting values rounded to float, so what the test allows is the engine's own
rounding. Needs torch and numpy; run by hand when a definition changes, look at the difference, commit it:

    python3 tools/make_golden.py tests/golden

It writes all cases, and another processor rounds otherwise. After a new case keep its file alone: git add that file, git checkout tests/golden.
"""
import json
import math
import pathlib
import sys
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

PAD, BOS, EOS, UNK = 0, 1, 2, 3
INIT_SEED, DROPOUT_SEED = 41, 231  # 231 drops words of both sides in update 1, a BOS and two EOS among them
VOCABULARY = 17
NOT_KEPT = (PAD, BOS, 6, 11)  # tokens that the training targets do not have
LABEL_SMOOTHING = 0.1
UPDATES = 10
FINAL = ("pre", "joey_post")  # placements with a norm after each stack
PAIRS = {"matt_self": ("self_attention", "cross_attention"), "matt_aan": ("aan", "cross_attention")}  # whose outputs are added
USUAL_SUBLAYERS = {"encoder": "self_attention, ffn", "decoder": "self_attention, cross_attention, ffn"}

# Four sentence pairs of different lengths; their sentence ids determine their random numbers.
LINES = [3, 70_000, 12, 2_000_000_123]
SOURCES = [[4, 5, 6, 7, 8, EOS], [9, EOS], [11, 6, 12, 5, 13, 14, 16, 11, EOS], [15, 6, 4, EOS]]
TARGETS = [[10, 4, 5, 12], [7, 16, 9, 9, 8, 15, 13, 4], [14], [UNK, 5, 10]]


@dataclass
class Batch:
    lines: list  # sentence ids
    sources: list
    labels: list  # of each sentence, EOS included; the inputs are all but the last of them, after the start

    def inputs(self, start):
        return pad([[start] + labels[:-1] for labels in self.labels])


BATCH = Batch(LINES, SOURCES, [target + [EOS] for target in TARGETS])

# The classifier's: the sources without EOS.
SENTENCES = [tokens[:-1] for tokens in SOURCES]
CLASSES = [2, 0, 1, 0]
CLASS_COUNT = 3


# --- random numbers ------------------------------------------------------------------------------------------------------------
def philox4x32(key, counter):
    """Ten rounds of Philox4x32 (Salmon et al. 2011). counter: four uint64 arrays of 32-bit values."""
    low32, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    k0, k1 = int(key[0]), int(key[1])
    c0, c1, c2, c3 = (np.asarray(c, dtype=np.uint64) for c in counter)
    for _ in range(10):
        a = c0 * np.uint64(0xD2511F53)
        b = c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (b >> shift) ^ c1 ^ np.uint64(k0), b & low32, (a >> shift) ^ c3 ^ np.uint64(k1), a & low32
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def check_philox():
    """The known answers published with Random123."""
    assert [int(x) for x in philox4x32((0, 0), (0, 0, 0, 0))] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 0xFFFFFFFF
    assert [int(x) for x in philox4x32((ones, ones), (ones,) * 4)] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def fnv1a32(text):
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


def random_bits(seed, name, inner, outer, line=0, update=0):
    """32 random bits of every element; the four indices broadcast."""
    inner, outer, line, update = np.broadcast_arrays(*(np.asarray(i, dtype=np.uint64) for i in (inner, outer, line, update)))
    block = philox4x32((seed, fnv1a32(name)), (inner // np.uint64(4), outer, line, update))
    return np.choose(inner.astype(np.int64) % 4, block)


def drops(p, name, inner, outer, line, update, seed=DROPOUT_SEED):
    return random_bits(seed, "drop." + name, inner, outer, line, update) < np.uint64(round(p * 2**32))


def dropout(x, p, name, inner, outer, line, update, seed=DROPOUT_SEED):
    """Inverted dropout; the factor is a float32 number."""
    if p == 0 or update == 0:
        return x
    kept = torch.from_numpy(~drops(p, name, inner, outer, line, update, seed))
    return x * kept * float(np.float32(1 / (1 - p)))


# --- settings and starting values ------------------------------------------------------------------------------------------------
@dataclass
class Case:
    norm: str
    placement: str
    init: str = "small_init"
    fan: str = "separate"
    fix_norm: bool = False
    tied: str = "all"
    mask: bool = True
    output_bias: bool = True
    encoder_layers: int = 2
    decoder_layers: int = 1
    sublayers: dict = field(default_factory=dict)  # of a layer, by stack, where they are not USUAL_SUBLAYERS
    d: int = 8
    f: int = 12
    heads: int = 2
    norm_settings: dict = field(default_factory=dict)  # of [model.norm] besides its kind
    scale: float = 0.05  # of the invsqrt schedule, with a warm-up of 4 updates
    dropout: dict = field(default_factory=lambda: {"residual": 0.3, "attention": 0.2, "relu": 0.1, "word": 0.1})
    inputs: dict = field(default_factory=dict)  # of [model]: the settings of the inputs that are not as in TwT
    # Of a corpus and a run, not of [model].
    source_vocabulary: int = VOCABULARY
    target_vocabulary: int = VOCABULARY
    init_seed: int = INIT_SEED
    dropout_seed: int = DROPOUT_SEED

    def model_settings(self):
        """Of [model], besides norm and dropout."""
        return {
            "init_qkv_fan": self.fan, "fix_norm": self.fix_norm, "tied_embeddings": self.tied, "mask_target_vocabulary": self.mask,
            "output_bias": self.output_bias, "encoder_layers": self.encoder_layers, "decoder_layers": self.decoder_layers,
            "d_model": self.d, "d_ff": self.f, "heads": self.heads,
        } | {f"{stack}_sublayers": listed for stack, listed in self.sublayers.items()} | self.inputs

    def start(self):
        """The token of the decoder's first input."""
        return {"bos": BOS, "eos": EOS, "zero": PAD}[self.inputs.get("decoder_start", "bos")]

    def sublayers_of(self, stack):
        return (USUAL_SUBLAYERS | self.sublayers)[stack].split(", ")

    def settings(self):
        model = {"norm.kind": self.norm, "placement": self.placement, "init": self.init} | self.model_settings() | {
            "dropout." + key: p for key, p in self.dropout.items()} | {"norm." + key: v for key, v in self.norm_settings.items()}
        return {"model." + key: value for key, value in model.items()}

    def norms_of(self, sublayer):
        """The names of the norms of a sublayer, in their order; most placements have one."""
        stack, _, kind = sublayer.split(".")
        listed = self.sublayers_of(stack)
        if self.placement != "joey_post":
            return [sublayer]
        if kind == listed[-1]:
            return [sublayer, sublayer + ".second"]
        return [sublayer] if stack == "decoder" and kind == listed[0] else []

    def norm_of(self, name):
        """The kind of norm of a sublayer or stack: "decoder.1.ffn", "encoder.final"."""
        scope, final = self.norm_settings.get("scope", "all"), name.endswith(".final")
        if not {"all": True, "final_only": final, "encoder": name.startswith("encoder"), "decoder": name.startswith("decoder")}[scope]:
            return "layer_norm"
        last = "decoder.final" if self.placement in FINAL else f"decoder.{self.decoder_layers}.{self.sublayers_of('decoder')[-1]}"
        if self.norm == "scale_norm_fixed" and self.fix_norm and name == last and self.placement not in ("pre_no_final", "joey_pre"):
            return "scale_norm"
        return self.norm

    def rates(self):
        return [self.scale * self.d**-0.5 * (n * 4**-1.5 if n < 4 else n**-0.5) for n in range(1, UPDATES + 1)]

    def kept(self):
        if self.inputs.get("special_outputs"):
            return list(range(self.target_vocabulary))
        return [v for v in range(self.target_vocabulary) if v not in (NOT_KEPT if self.mask else (PAD, BOS))]

    def starts_without_token(self):
        """The decoder's first input is a zero vector that is no row of the embedding."""
        return self.start() == PAD and bool(self.inputs.get("special_outputs") or self.inputs.get("input_vector"))


@dataclass
class ClassifierCase(Case):
    init: str = "xavier_uniform"
    dropout: dict = field(default_factory=lambda: {"residual": 0.3, "attention": 0.2, "relu": 0.1, "word": 0.15, "pooled": 0.25})

    def model_settings(self):
        return {
            "init_qkv_fan": self.fan, "fix_norm": self.fix_norm, "layers": self.encoder_layers, "d_model": self.d, "d_ff": self.f,
            "heads": self.heads,
        } | {"sublayers": listed for listed in self.sublayers.values()}


def uniform(name, shape, bound, seed=INIT_SEED):
    rows, columns = np.indices(shape)
    u = (random_bits(seed, "init." + name, columns, rows) + 0.5) / 2**32
    return (2 * u - 1) * bound


def normal(name, shape, std, seed=INIT_SEED):
    rows, columns = np.indices(shape)
    u1 = (random_bits(seed, "init." + name, 2 * columns, rows) + 0.5) / 2**32
    u2 = (random_bits(seed, "init." + name, 2 * columns + 1, rows) + 0.5) / 2**32
    return std * np.sqrt(-2 * np.log(u1)) * np.cos(2 * np.pi * u2)


def norm_parameters(kind, name, d):
    p = {}
    if kind == "scale_norm":
        p[f"{name}.norm.gain"] = np.full(1, math.sqrt(d))
    elif kind in ("layer_norm", "rms_norm"):
        p[f"{name}.norm.gain"] = np.ones(d)
    if kind == "layer_norm":
        p[f"{name}.norm.bias"] = np.zeros(d)
    return p


def rounded(parameters):
    """To float, as the engine's are."""
    return {name: torch.tensor(values.astype(np.float32).astype(np.float64), requires_grad=True) for name, values in parameters.items()}


class Start:
    """The starting values of a model's parameters, in p."""

    def __init__(self, case):
        self.case, self.p = case, {}

    def uniform(self, name, shape, bound):
        return uniform(name, shape, bound, self.case.init_seed)

    def normal(self, name, shape, std):
        return normal(name, shape, std, self.case.init_seed)

    def embedding(self, name):
        words = self.case.source_vocabulary if name == "embedding.source" else self.case.target_vocabulary
        shape = (words, self.case.d)
        self.p[name] = self.uniform(name, shape, 0.01) if self.case.fix_norm else self.normal(name, shape, self.case.d**-0.5)
        if self.case.init == "joey":
            self.p[name] = self.uniform(name, shape, math.sqrt(6 / (words + self.case.d)))
        asked = self.case.inputs.get("init_pad") == "zero" and name.startswith("embedding")
        if asked or self.case.init == "joey" or self.case.init.startswith("fairseq") or (
                self.case.start() == PAD and not self.case.starts_without_token()):
            self.p[name][PAD] = 0

    def torch_linear(self, name, fan_out, fan_in):
        """The weights of torch's linear layers: kaiming_uniform_ with a = √5."""
        self.p[name] = self.uniform(name, (fan_out, fan_in), math.sqrt(2 / (1 + 5)) * math.sqrt(3 / fan_in))

    def xavier(self, name, fan_out, fan_in, seen_fan_out):
        if self.case.init in ("torch_default", "kaiming"):
            self.torch_linear(name, fan_out, fan_in)
        elif self.case.init == "normal":
            self.p[name] = self.normal(name, (fan_out, fan_in), self.case.inputs["init_std"])
        elif self.case.init in ("xavier_uniform", "kaiming_released", "fairseq", "fairseq_0_9", "joey"):
            self.p[name] = self.uniform(name, (fan_out, fan_in), math.sqrt(6 / (fan_in + seen_fan_out)))
        elif self.case.init == "ds_init":  # of zero: variance scaling, scale l^-1/2, mean of the fans, uniform
            layer = int(name.split(".")[1])
            variance = layer**-0.5 / ((fan_in + seen_fan_out) / 2)
            self.p[name] = self.uniform(name, (fan_out, fan_in), math.sqrt(3 * variance))
        else:
            self.p[name] = self.normal(name, (fan_out, fan_in), math.sqrt(2 / (fan_in + seen_fan_out)))

    def bias(self, name, width, fan_in):
        of_inputs = name.endswith((".q.bias", ".k.bias", ".v.bias"))
        drawn = self.case.init == "torch_default" or (self.case.init == "fairseq_0_9" and of_inputs)
        self.p[name] = self.uniform(name, (1, width), 1 / math.sqrt(fan_in))[0] if drawn else np.zeros(width)

    def attention(self, name):
        d = self.case.d
        of_self = name.endswith("self_attention")
        for part in "qkvo":
            weight = f"{name}.{part}.weight"
            if self.case.init == "small_init":
                self.p[weight] = self.normal(weight, (d, d), math.sqrt(2 / (5 * d)))
            elif self.case.init == "kaiming_released":
                self.torch_linear(weight, d, d)
            elif self.case.init.startswith("fairseq"):
                gain = 1 if part == "o" else 1 / math.sqrt(2)  # as torch's xavier_uniform_ takes it
                self.p[weight] = self.uniform(weight, (d, d), gain * math.sqrt(6 / (d + d)))
            else:
                stacked = {"separate": 1, "fused3": 1 if part == "o" else 3, "fused4": 4,
                           "fused3_self": 3 if of_self and part != "o" else 1}[self.case.fan]
                self.xavier(weight, d, d, stacked * d)
            self.bias(f"{name}.{part}.bias", d, d)

    def ffn(self, name):
        d, f = self.case.d, self.case.f
        self.xavier(f"{name}.w1.weight", f, d, f)
        self.xavier(f"{name}.w2.weight", d, f, d)
        self.bias(f"{name}.w1.bias", f, d)
        self.bias(f"{name}.w2.bias", d, f)

    def aan(self, name):
        if name.endswith("aan_ffn"):
            self.ffn(name + ".ffn")
        d = self.case.d
        self.xavier(f"{name}.gate.weight", 2 * d, 2 * d, 2 * d)
        self.bias(f"{name}.gate.bias", 2 * d, 2 * d)

    def sublayer(self, name):
        kind = name.split(".")[-1]
        if kind in PAIRS:
            for part in PAIRS[kind]:
                self.sublayer(f"{name}.{part}")
        else:
            {"ffn": self.ffn, "aan": self.aan, "aan_ffn": self.aan}.get(kind, self.attention)(name)

    def norm(self, name):
        self.p |= norm_parameters(self.case.norm_of(name), name, self.case.d)

    def stack(self, name, layers):
        for layer in range(1, layers + 1):
            for sublayer in self.case.sublayers_of(name):
                self.sublayer(f"{name}.{layer}.{sublayer}")
                for norm in self.case.norms_of(f"{name}.{layer}.{sublayer}"):
                    self.norm(norm)
        if self.case.placement in FINAL:
            self.norm(f"{name}.final")
        if self.case.placement == "joey_pre":
            self.norm(f"{name}.input")

    def parameters(self):
        return rounded(self.p)


# --- the model -----------------------------------------------------------------------------------------------------------------
def pad(sentences):
    length = max(map(len, sentences))
    return np.array([s + [PAD] * (length - len(s)) for s in sentences])


def positions(length, d, form="interleaved", first=0):
    if form == "halves":  # as fairseq and T2T write it
        frequencies = torch.exp(torch.arange(d // 2) * -(math.log(10000) / (d // 2 - 1)))
        angles = torch.arange(first, first + length)[:, None] * frequencies[None, :]
        return F.pad(torch.cat([torch.sin(angles), torch.cos(angles)], dim=1), (0, d % 2))
    table = torch.empty(length, d)
    for p in range(length):
        for i in range(0, d, 2):
            angle = (first + p) / 10000 ** (i / d)
            table[p, i], table[p, i + 1] = math.sin(angle), math.sin(angle) if form == "sin_only" else math.cos(angle)
    return table


def norm(kind, settings, x, gain, bias):
    """Over the last dimension of x."""
    d = x.shape[-1]
    if kind == "layer_norm" and not settings:
        return F.layer_norm(x, (d,), gain, bias, eps=1e-5)
    if kind == "rms_norm" and not settings:
        return gain * x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-8)
    if kind in ("scale_norm", "scale_norm_fixed"):
        return (gain if kind == "scale_norm" else math.sqrt(d)) * F.normalize(x, dim=-1, eps=1e-5)
    if kind == "none":
        return x
    eps = settings.get("eps", 1e-8 if kind == "rms_norm" else 1e-5)
    mean = 0 if kind == "rms_norm" else x.mean(-1, keepdim=True)
    if kind == "rms_norm":
        variance = (x * x).mean(-1, keepdim=True)
    else:
        variance = x.var(-1, keepdim=True, unbiased=settings.get("deviation") == "unbiased")
    denominator = {
        "sqrt_add": lambda: torch.sqrt(variance + eps),
        "std_add": lambda: torch.sqrt(variance) + eps,
        "clamp": lambda: torch.sqrt(variance).clamp(min=eps),
    }[settings.get("eps_mode", "sqrt_add")]()
    if kind in ("detach_norm", "detach_mean"):
        mean = mean.detach()
    if kind in ("detach_norm", "detach_var"):
        denominator = denominator.detach()
    y = (x - mean) / denominator
    if kind == "ada_norm":
        c, k = settings.get("ada_norm.c", 1.0), settings.get("ada_norm.k", 0.1)
        return (c * (1 - k * y)).detach() * y
    y = y if gain is None else gain * y
    return y if bias is None else y + bias


def losses(logits, gold):
    """(mean smoothed loss, sum of it, sum of nll, logits)."""
    # torch smooths over all classes given, the gold one included: with the output vocabulary as classes that is TwT's loss.
    mean = F.cross_entropy(logits, gold, label_smoothing=LABEL_SMOOTHING)
    nll = F.cross_entropy(logits, gold, reduction="sum")
    return mean, mean * len(gold), nll, logits


class Layers:
    """What the models share. One object is one forward pass: the parameters, and the update that the dropout masks depend on
    (0: evaluation, no dropout). `lines`: sentence ids."""

    def __init__(self, case, parameters, update, lines=tuple(LINES)):
        self.case, self.p, self.update = case, parameters, update
        self.lines = np.array(lines)[:, None, None]

    def dropout(self, x, p, name, inner, outer, lines):
        return dropout(x, p, name, inner, outer, lines, self.update, self.case.dropout_seed)

    def residual_dropout(self, x, name, p=None):
        places = np.arange(x.shape[1])[:, None]
        return self.dropout(x, self.case.dropout["residual"] if p is None else p, name, np.arange(x.shape[2]), places, self.lines)

    def word_dropout(self, tokens, name):
        if self.update == 0:
            return tokens
        places = np.arange(tokens.shape[1])
        dropped = drops(self.case.dropout["word"], name, 0, places, self.lines[..., 0], self.update, self.case.dropout_seed)
        return np.where(dropped & (tokens != PAD), UNK, tokens)

    def norm(self, x, name):
        kind = self.case.norm_of(name)
        settings = self.case.norm_settings if kind == self.case.norm else {}
        return norm(kind, settings, x, self.p.get(name + ".norm.gain"), self.p.get(name + ".norm.bias"))

    def sublayer(self, x, name, function):
        if self.case.placement in ("post", "joey_post"):
            x = x + self.residual_dropout(function(x), name)
            for norm in self.case.norms_of(name):
                x = self.norm(x, norm)
            return x
        return x + self.residual_dropout(function(self.norm(x, name)), name)

    def final(self, x, stack):
        return self.norm(x, stack + ".final") if self.case.placement in FINAL else x

    def linear(self, x, name):
        return F.linear(x, self.p[name + ".weight"], self.p[name + ".bias"])

    def attention(self, x, memory, visible, name, beside=None):
        """visible: [B, 1, query or 1, key], True where a query may attend. beside: added to the heads before the output map."""
        heads = self.case.heads

        def split(y):
            return y.view(y.shape[0], y.shape[1], heads, -1).transpose(1, 2)

        q, k, v = split(self.linear(x, name + ".q")), split(self.linear(memory, name + ".k")), split(self.linear(memory, name + ".v"))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.case.d / heads)
        weights = torch.softmax(scores.masked_fill(~visible, -math.inf), -1)
        outer = np.arange(x.shape[1])[:, None] + (np.arange(heads)[:, None, None] << 16)
        weights = self.dropout(weights, self.case.dropout["attention"], name + ".weights", np.arange(memory.shape[1]), outer,
                               self.lines[..., None])
        heads = (weights @ v).transpose(1, 2).flatten(2)
        return self.linear(heads if beside is None else heads + beside, name + ".o")

    @staticmethod
    def mean_so_far(x):
        """[B, T, D]: targets are padded on the right, so the rows of a sentence come first."""
        length = x.shape[1]
        mask = torch.ones(length, length).tril() / torch.arange(1, length + 1)[:, None]
        return mask @ x

    def matt(self, x, memory, visible, name):
        return self.attention(x, memory, visible, name, beside=self.mean_so_far(self.linear(x, name + ".v")))

    def aan(self, x, name):
        mean = self.mean_so_far(x)
        if name.endswith("aan_ffn"):
            mean = self.ffn(mean, name + ".ffn")
        first, second = self.linear(torch.cat([x, mean], -1), name + ".gate").chunk(2, -1)
        return torch.sigmoid(first) * x + torch.sigmoid(second) * mean

    def ffn(self, x, name):
        hidden = torch.relu(self.linear(x, name + ".w1"))
        hidden = self.dropout(hidden, self.case.dropout["relu"], name + ".relu", np.arange(hidden.shape[2]),
                              np.arange(hidden.shape[1])[:, None], self.lines)
        return self.linear(hidden, name + ".w2")

    def table(self, *names):
        matrix = next(self.p[name] for name in names if name in self.p)
        return F.normalize(matrix, dim=1, eps=1e-12) if self.case.fix_norm else matrix

    def embed(self, tokens, name, *tables):
        words = F.embedding(torch.from_numpy(tokens), self.table(*tables), padding_idx=PAD)  # no gradient for PAD
        words = words * torch.from_numpy(tokens != PAD)[..., None]
        inputs = self.case.inputs
        places = positions(tokens.shape[1], self.case.d, inputs.get("positions.form", "interleaved"), inputs.get("positions.first", 0))
        x = inputs.get("embedding_scale", math.sqrt(self.case.d)) * words + places
        if inputs.get("language_embedding"):
            x = x + self.p[name + ".language"]
        if inputs.get("input_vector"):  # of words; where the row is padding it does not matter
            x = x + self.p["embedding.vector"] * torch.from_numpy(tokens != PAD)[..., None]
        if self.case.placement == "joey_pre":
            x = self.norm(x, ("decoder" if name == "embedding.target" else "encoder") + ".input")
        return self.residual_dropout(x, name, self.case.dropout.get("embedding"))

    def stack(self, x, stack, layers, functions):
        """`functions`: of each sublayer, from its input and its name."""
        for layer in range(1, layers + 1):
            for sublayer in self.case.sublayers_of(stack):
                name = f"{stack}.{layer}.{sublayer}"
                x = self.sublayer(x, name, lambda y: functions[sublayer](y, name))
        return self.final(x, stack)

    def encode(self, x, visible):
        return self.stack(x, "encoder", self.case.encoder_layers, {
            "self_attention": lambda y, name: self.attention(y, y, visible, name), "ffn": self.ffn})


class Transformer(Layers):
    """The encoder-decoder."""

    def __init__(self, case, parameters, update, batch=BATCH):
        super().__init__(case, parameters, update, batch.lines)
        self.batch = batch

    @staticmethod
    def initial_parameters(case):
        start = Start(case)
        for name in {"all": ["embedding.shared"], "target": ["embedding.source", "embedding.target"],
                     "none": ["embedding.source", "embedding.target", "output.weight"]}[case.tied]:
            start.embedding(name)
        if case.inputs.get("language_embedding"):
            for side in ("source", "target"):
                language = f"embedding.{side}.language"
                start.p[language] = start.normal(language, (1, case.d), case.d**-0.5)[0]
        if case.inputs.get("input_vector"):
            bound = case.inputs["init_std"] if case.init == "normal" else math.sqrt(3 / case.d)
            drawn = start.normal if case.init == "normal" else start.uniform
            start.p["embedding.vector"] = drawn("embedding.vector", (1, case.d), bound)[0]
        if case.output_bias:
            start.bias("output.bias", case.target_vocabulary, case.d)
        start.stack("encoder", case.encoder_layers)
        start.stack("decoder", case.decoder_layers)
        return start.parameters()

    @staticmethod
    def data(case):
        return {"kept": case.kept(), "label_smoothing": LABEL_SMOOTHING, "lines": LINES, "sources": SOURCES, "targets": TARGETS}

    def embed_side(self, tokens, side):
        return self.embed(self.word_dropout(tokens, "word." + side), "embedding." + side, "embedding." + side, "embedding.shared")

    def logits(self):
        """[B, T, K] over the output vocabulary."""
        source, target = pad(self.batch.sources), self.batch.inputs(self.case.start())
        source_visible = torch.from_numpy(source != PAD)[:, None, None, :]
        causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()[None, None]

        memory = self.encode(self.embed_side(source, "source"), source_visible)

        functions = {
            "self_attention": lambda y, name: self.attention(y, y, causal, name),
            "cross_attention": lambda y, name: self.attention(y, memory, source_visible, name),
            "matt": lambda y, name: self.matt(y, memory, source_visible, name),
            "aan": self.aan, "aan_ffn": self.aan, "ffn": self.ffn}
        for pair, parts in PAIRS.items():
            functions[pair] = lambda y, name, parts=parts: sum(functions[part](y, f"{name}.{part}") for part in parts)
        x = self.stack(self.embed_side(target, "target"), "decoder", self.case.decoder_layers, functions)

        kept = self.case.kept()
        output = self.table("output.weight", "embedding.target", "embedding.shared")[kept]
        bias = self.p["output.bias"][kept] if self.case.output_bias else None
        return F.linear(x, output, bias)

    def loss(self):
        """Of the rows that have a label."""
        labels = torch.from_numpy(pad(self.batch.labels))
        real = labels != PAD
        place = {v: i for i, v in enumerate(self.case.kept())}
        gold = torch.tensor([place[int(v)] for v in labels[real]])
        return losses(self.logits()[real], gold)

    def dropped(self):
        """The words of each side."""
        source, target = pad(self.batch.sources), self.batch.inputs(self.case.start())
        return [int((self.word_dropout(tokens, "word." + side) != tokens).sum()) for tokens, side in ((source, "source"), (target, "target"))]


class Classifier(Layers):
    """The encoder, the mean of each sentence's rows, and a linear map to the classes."""

    @staticmethod
    def initial_parameters(case):
        start = Start(case)
        start.embedding("embedding")
        start.stack("encoder", case.encoder_layers)
        start.xavier("output.weight", CLASS_COUNT, case.d, CLASS_COUNT)
        start.bias("output.bias", CLASS_COUNT, case.d)
        return start.parameters()

    @staticmethod
    def data(case):
        return {"classes": CLASS_COUNT, "label_smoothing": LABEL_SMOOTHING, "lines": LINES, "sentences": SENTENCES, "labels": CLASSES}

    def loss(self):
        tokens = pad(SENTENCES)
        real = torch.from_numpy(tokens != PAD)
        x = self.embed(self.word_dropout(tokens, "word"), "embedding", "embedding")
        x = self.encode(x, real[:, None, None, :])
        pooled = torch.stack([x[i, real[i]].mean(0) for i in range(len(SENTENCES))])
        pooled = self.dropout(pooled, self.case.dropout["pooled"], "pooled", np.arange(self.case.d), 0, self.lines[:, 0])
        return losses(self.linear(pooled, "output"), torch.tensor(CLASSES))

    def dropped(self):
        """The words."""
        tokens = pad(SENTENCES)
        return [int((self.word_dropout(tokens, "word") != tokens).sum())]


# --- the golden file of one case -------------------------------------------------------------------------------------------------
def numbers(tensor, digits=6):
    return [float(f"{x:.{digits}g}") for x in tensor.detach().flatten().tolist()]


def golden(Model, case):
    parameters = Model.initial_parameters(case)
    leaves = list(parameters.values())
    with torch.no_grad():
        _, _, evaluation_nll, _ = Model(case, parameters, 0).loss()
    out = {
        "settings": case.settings(),
        "init_seed": INIT_SEED,
        "dropout_seed": DROPOUT_SEED,
        "vocabulary": VOCABULARY,
    } | Model.data(case) | {
        "rates": case.rates(),
        "evaluation_nll": evaluation_nll.item(),
    }
    optimiser = torch.optim.Adam(leaves, lr=0.0, betas=(0.9, 0.999), eps=1e-8)
    losses, norms = [], []
    for update, rate in enumerate(case.rates(), 1):
        mean, loss_sum, nll_sum, logits = Model(case, parameters, update).loss()
        optimiser.zero_grad()
        mean.backward()
        if update == 1:
            out["loss_sum"], out["nll_sum"] = loss_sum.item(), nll_sum.item()
            out["logits"] = numbers(logits)
            out["gradients"] = {name: numbers(p.grad) for name, p in parameters.items()}
        losses.append(mean.item())
        norms.append(float(torch.nn.utils.clip_grad_norm_(leaves, 1.0)))
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
    out["losses"], out["gradient_norms"] = losses, norms
    return out


def cases():
    for norm in ("none", "layer_norm", "rms_norm", "scale_norm"):
        for placement in ("post", "pre", "pre_no_final", "joey_pre", "joey_post"):
            yield f"{norm}_{placement}", Case(norm, placement)
    code = {"eps_mode": "std_add", "deviation": "unbiased"}  # of the AdaNorm paper's released code
    yield "ln_simple_post", Case("ln_simple", "post")
    yield "ln_simple_pre_as_in_the_code", Case("ln_simple", "pre", norm_settings=code)
    yield "detach_norm_pre", Case("detach_norm", "pre")
    yield "detach_mean_post_clamp", Case("detach_mean", "post", norm_settings={"eps_mode": "clamp", "eps": 0.9})
    yield "detach_var_pre", Case("detach_var", "pre")
    yield "ada_norm_pre", Case("ada_norm", "pre")
    yield "ada_norm_post_as_in_the_code", Case("ada_norm", "post", norm_settings=code | {"ada_norm.c": 1.5, "ada_norm.k": 0.3})
    yield "ada_norm_final_only", Case("ada_norm", "pre", norm_settings={"scope": "final_only", "ada_norm.c": 2.0})
    yield "scale_norm_decoder_only", Case("scale_norm", "pre", norm_settings={"scope": "decoder"})
    yield "rms_norm_encoder_std_add", Case("rms_norm", "post", norm_settings={"scope": "encoder", "eps_mode": "std_add", "eps": 0.1})
    yield "layer_norm_unbiased", Case("layer_norm", "pre", norm_settings={"deviation": "unbiased", "eps": 0.01})
    yield "scale_norm_fixed_post", Case("scale_norm_fixed", "post")
    yield "fix_norm_scale_norm_fixed_pre", Case("scale_norm_fixed", "pre", fix_norm=True)
    yield "fix_norm_scale_norm_fixed_post", Case("scale_norm_fixed", "post", fix_norm=True)
    yield "fix_norm_scale_norm_pre", Case("scale_norm", "pre", fix_norm=True)
    yield "fix_norm_layer_norm_post_tied_target", Case("layer_norm", "post", init="xavier_uniform", fix_norm=True, tied="target")
    yield "fix_norm_untied", Case("rms_norm", "pre", fix_norm=True, tied="none", mask=False)
    yield "tied_target_fused3", Case("layer_norm", "pre", init="xavier_normal", fan="fused3", tied="target")
    yield "untied_fused4", Case("scale_norm", "post", init="xavier_uniform", fan="fused4", tied="none", output_bias=False)
    yield "xavier_normal_four_heads", Case("layer_norm", "post", init="xavier_normal", heads=4, mask=False)
    yield "odd_widths_deep_decoder", Case("layer_norm", "pre", d=6, f=7, heads=3, encoder_layers=1, decoder_layers=2)
    yield "torch_default_untied", Case("layer_norm", "pre", init="torch_default", tied="none")
    yield "kaiming_released", Case("none", "pre", init="kaiming_released")
    # As the AdaNorm paper: of fairseq's inputs PAD is 0, and the softmax has it.
    yield "kaiming", Case("ada_norm", "pre", init="kaiming", tied="target", mask=False, output_bias=False, norm_settings={"ada_norm.c": 2.0},
                          inputs={"init_pad": "zero", "special_outputs": True, "positions.form": "halves", "positions.first": 2, "decoder_start": "eos"})
    yield "kaiming_untied", Case("none", "pre", init="kaiming", tied="none", mask=False, inputs={"init_pad": "zero", "special_outputs": True})
    yield "sublayers_in_another_order", Case("layer_norm", "pre", decoder_layers=2, sublayers={
        "encoder": "ffn, self_attention", "decoder": "cross_attention, ffn, self_attention"})
    yield "sublayers_left_out_post", Case("scale_norm_fixed", "post", fix_norm=True, decoder_layers=2, sublayers={
        "encoder": "self_attention", "decoder": "cross_attention, self_attention"})
    yield "fairseq_inputs", Case("layer_norm", "post", init="fairseq_0_9", mask=False, output_bias=False, inputs={
        "positions.form": "halves", "positions.first": 2, "decoder_start": "eos"})
    yield "fairseq_untied_odd_width", Case("layer_norm", "pre", init="fairseq", d=9, heads=3, tied="none", inputs={
        "positions.form": "halves", "embedding_scale": 1.0})
    yield "zero_start_and_languages", Case(
        "scale_norm", "pre", fix_norm=True, inputs={
            "positions.form": "sin_only", "embedding_scale": 2.5, "decoder_start": "zero", "language_embedding": True},
        dropout={"residual": 0.3, "attention": 0.2, "relu": 0.1, "word": 0.3, "embedding": 0.5})
    ds = {"init": "ds_init", "fan": "fused3_self", "mask": False}
    ds_inputs = {"ds_init.form": "code", "positions.form": "halves"}
    yield "ds_init_post", Case("layer_norm", "post", decoder_layers=2, inputs=ds_inputs, **ds)
    yield "matt_ds_init_post", Case("layer_norm", "post", decoder_layers=2, sublayers={"decoder": "matt, ffn"}, inputs=ds_inputs, **ds)
    yield "matt_pre_beside_self_attention", Case("layer_norm", "pre", sublayers={"decoder": "self_attention, matt, ffn"})
    yield "matt_self_post", Case("layer_norm", "post", init="xavier_uniform", fan="fused3_self", sublayers={"decoder": "matt_self, ffn"})
    yield "matt_aan_post", Case("layer_norm", "post", init="xavier_uniform", decoder_layers=2, sublayers={"decoder": "matt_aan, ffn"})
    yield "aan_pre", Case("layer_norm", "pre", init="xavier_normal", sublayers={"decoder": "aan, cross_attention, ffn"})
    yield "aan_ffn_post", Case("layer_norm", "post", init="xavier_uniform", sublayers={"decoder": "aan_ffn, cross_attention, ffn"})
    # fix_norm: which of the norms is the last one decides what scale_norm_fixed learns.
    yield "fix_norm_scale_norm_fixed_joey_post", Case("scale_norm_fixed", "joey_post", fix_norm=True, decoder_layers=2, sublayers={
        "encoder": "ffn, self_attention", "decoder": "cross_attention, ffn, self_attention"})
    yield "joey_init_post", Case("layer_norm", "joey_post", init="joey", mask=False, output_bias=False,
                                 norm_settings={"eps": 1e-6}, inputs={"init_qkv_fan": "fused3"})
    yield "normal_init", Case("layer_norm", "pre", init="normal", tied="none", inputs={"init_std": 0.2})
    # As the DS paper's code: the zero vector at the start has neither PAD's row nor the vector of the inputs.
    yield "zero_inputs_matt", Case("layer_norm", "post", tied="target", output_bias=False, decoder_layers=2,
                                   sublayers={"decoder": "matt, ffn"}, norm_settings={"eps": 1e-8}, **ds, inputs=ds_inputs | {
                                       "decoder_start": "zero", "input_vector": True, "special_outputs": True})
    yield "input_vector_normal", Case("layer_norm", "pre", init="normal", tied="none", inputs={"init_std": 0.3, "input_vector": True})
    yield "no_dropout", Case("layer_norm", "pre", dropout={"residual": 0.0, "attention": 0.0, "relu": 0.0, "word": 0.0})


def classifier_cases():
    for norm in ("none", "layer_norm", "scale_norm", "ada_norm"):
        for placement in ("post", "pre", "pre_no_final", "joey_pre", "joey_post"):
            yield f"{norm}_{placement}", ClassifierCase(norm, placement)
    yield "fix_norm_scale_norm_pre", ClassifierCase("scale_norm", "pre", fix_norm=True)
    # Without a decoder no norm stands before the output layer of FixNorm: all stay fixed.
    for norm in ("none", "layer_norm"):
        yield f"{norm}_pre_torch_default", ClassifierCase(norm, "pre", init="torch_default")
    yield "none_pre_kaiming_released", ClassifierCase("none", "pre", init="kaiming_released")
    yield "none_pre_kaiming", ClassifierCase("none", "pre", init="kaiming")
    yield "sublayers_in_another_order", ClassifierCase("layer_norm", "pre", sublayers={"encoder": "ffn, self_attention"})
    yield "fix_norm_scale_norm_fixed_post_small_init", ClassifierCase("scale_norm_fixed", "post", fix_norm=True, init="small_init")


def write(folder, Model, named_cases):
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in named_cases:
        out = golden(Model, case)
        # A value a line: differences can be read.
        text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in out.items() if key != "gradients")
        gradients = ",\n".join(f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in out["gradients"].items())
        (folder / f"{name}.json").write_text("{" + text + ',\n"gradients": {\n' + gradients + "}}\n")
        print(f"{name}: dropped {Model(case, {}, 1).dropped()}, losses {out['losses'][0]:.4f} … {out['losses'][-1]:.4f}, "
              f"gradient norms {min(out['gradient_norms']):.3f} … {max(out['gradient_norms']):.3f}")


def main():
    check_philox()
    folder = pathlib.Path(sys.argv[1])
    write(folder / "parity", Transformer, cases())
    write(folder / "classifier_parity", Classifier, classifier_cases())


if __name__ == "__main__":
    main()
