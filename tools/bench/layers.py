"""What the models of the peers have in common: settings, packed and padded rows, and the layers of an encoder."""

import json
import math
import pathlib
import sys

try:
    import tomllib
except ImportError:
    sys.exit("peer: this Python has no tomllib: use Python 3.11 or newer")
try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    sys.exit("peer: this Python has no torch: pip install torch==2.11.0")

PAD, BOS, EOS, FIRST_WORD = 0, 1, 2, 4


# --- settings and rows ------------------------------------------------------------------------------------------------------------
def read_settings(file):
    try:
        return tomllib.loads(pathlib.Path(file).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        sys.exit(f"peer: {file}: {error}")


def read_lengths(file, what, rows_of):
    """[batch][example]; rows_of(example), all of them at least 1. `what`: an example, for the message."""
    try:
        batches = json.loads(pathlib.Path(file).read_text())["batches"]
        assert batches and all(batches) and all(min(rows_of(example)) >= 1 for batch in batches for example in batch)
    except OSError as error:
        sys.exit(f"peer: {error}")
    except (ValueError, KeyError, TypeError, AssertionError):
        sys.exit(f'peer: {file}: expected {{"batches": [[{what}, …], …]}}, all of them at least 1')
    return batches


class TrainSettings:
    """The part of an engine's settings that every task has and that matters here, and defaults as in docs/engine_settings.md. `fixed`: settings
    that the peer has at one value alone, with the default."""

    def __init__(self, file, settings, fixed):
        for key, (default, value) in fixed.items():
            found = settings
            for part in key.split("."):
                found = found.get(part, {})
            if (found if found != {} else default) != value:
                sys.exit(f"peer: {file}: {key} must be {json.dumps(value)}: the peer has no other")
        train = settings.get("train", {})
        adam = train.get("adam", {})
        self.smoothing, self.clip_norm = train.get("label_smoothing", 0.1), train.get("clip_norm", 1.0)
        self.betas, self.adam_eps = (adam.get("beta1", 0.9), adam.get("beta2", 0.999)), adam.get("eps", 1e-8)
        self.device, self.seed = settings.get("run", {}).get("device", "cpu"), train.get("seed", 147)


class CommonSettings(TrainSettings):
    """Those of a model of Transformer layers. `sizes`: the defaults of d_model, d_ff and heads."""

    FIXED = {"model.placement": ("pre", "pre"), "model.norm.kind": ("layer_norm", "layer_norm"), "model.fix_norm": (False, False),
             "train.schedule.kind": ("invsqrt", "invsqrt")}

    def __init__(self, file, settings, vocabulary, fixed, sizes):
        super().__init__(file, settings, self.FIXED | fixed)
        model, schedule = settings.get("model", {}), settings.get("train", {}).get("schedule", {})
        self.vocabulary = vocabulary
        self.d, self.f, self.heads = (model.get(key, size) for key, size in zip(("d_model", "d_ff", "heads"), sizes))
        self.warmup = schedule.get("warmup_updates", 8000)
        self.peak = schedule.get("peak_lr", schedule.get("scale", 1.0) * (self.d * self.warmup) ** -0.5)

    def rate(self, update):
        return self.peak * min(update / self.warmup, (self.warmup / update) ** 0.5)


class Side:
    """One side of a batch. `tokens` and `positions` are [B, S] when padded, [T] when packed; x of shape tokens.shape + [D]."""

    def __init__(self, sentences, packed, device):
        lengths = [len(sentence) for sentence in sentences]
        self.count, self.longest, self.rows = len(lengths), max(lengths), sum(lengths)
        self.ragged, self.packed = min(lengths) < self.longest, packed
        grid = torch.tensor([sentence + [PAD] * (self.longest - len(sentence)) for sentence in sentences])
        real = torch.arange(self.longest) < torch.tensor(lengths)[:, None]  # [B, S]
        place = torch.arange(self.longest).expand(self.count, -1)
        self.tokens = (grid[real] if packed else grid).to(device)
        self.positions = (place[real] if packed else place).to(device)
        # Added to scores: no query attends to a padded key. Without padding there is nothing to mask.
        self.key_mask = None
        if self.ragged:
            self.key_mask = torch.zeros(real.shape).masked_fill(~real, -math.inf)[:, None, None, :].to(device)
        if self.ragged and packed:
            self.rows_of_grid = (real.flatten().cumsum(0) - 1).clamp_min(0).to(device)  # [B S]; padding repeats a row
            self.grid_of_rows = real.flatten().nonzero()[:, 0].to(device)  # [T]

    def side_by_side(self, x):
        """→ [B, S, ·]"""
        if not self.packed:
            return x
        if self.ragged:
            x = x.index_select(0, self.rows_of_grid)
        return x.view(self.count, self.longest, -1)

    def as_rows(self, x):
        """[B, S, ·] → like tokens"""
        if not self.packed:
            return x
        x = x.flatten(0, 1)
        return x.index_select(0, self.grid_of_rows) if self.ragged else x


# --- layers -----------------------------------------------------------------------------------------------------------------------
def attend(q, k, v, key_mask, causal, dropout):
    """softmax(q kᵀ / √d_h) v with dropout on the probabilities. q [B, H, T, d_h]; k, v [B, H, S, d_h]; causal [T, S] or None."""
    if q.is_cuda:
        if causal is not None:  # padded keys come after every real query, so that no real query attends to them
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        mask = key_mask if key_mask is None else key_mask.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    # With dropout, scaled_dot_product_attention on the CPU is these operations and a few more; it was faster in no size.
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(2, 3)
    mask = key_mask if causal is None else causal
    probabilities = torch.softmax(scores if mask is None else scores + mask, -1)
    if dropout:
        probabilities = F.dropout(probabilities, dropout)
    return probabilities @ v


class Attention(nn.Module):
    def __init__(self, o, cross):
        super().__init__()
        self.heads, self.dropout = o.heads, o.attention_dropout
        if cross:
            self.q, self.kv = nn.Linear(o.d, o.d), nn.Linear(o.d, 2 * o.d)
        else:
            self.qkv = nn.Linear(o.d, 3 * o.d)
        self.o = nn.Linear(o.d, o.d)

    def split(self, x, parts):
        """[B, S, parts·D] → parts times [B, H, S, d_h]"""
        return x.view(*x.shape[:2], parts, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def merge(self, heads):
        """[B, H, S, d_h] → [B, S, D]"""
        return heads.transpose(1, 2).flatten(2)

    def p(self):
        return self.dropout if self.training else 0.0

    def forward(self, x, side, causal):
        q, k, v = self.split(side.side_by_side(self.qkv(x)), 3)
        return self.o(side.as_rows(self.merge(attend(q, k, v, side.key_mask, causal, self.p()))))

    def cross(self, x, side, memory, source):
        (q,) = self.split(side.side_by_side(self.q(x)), 1)
        k, v = self.split(source.side_by_side(self.kv(memory)), 2)
        return self.o(side.as_rows(self.merge(attend(q, k, v, source.key_mask, None, self.p()))))


class FeedForward(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.w1, self.w2, self.dropout = nn.Linear(o.d, o.f), nn.Linear(o.f, o.d), nn.Dropout(o.relu_dropout)

    def forward(self, x):
        return self.w2(self.dropout(F.relu(self.w1(x))))


class EncoderLayer(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.attention, self.attention_norm = Attention(o, cross=False), nn.LayerNorm(o.d)
        self.ffn, self.ffn_norm = FeedForward(o), nn.LayerNorm(o.d)
        self.dropout = nn.Dropout(o.residual_dropout)

    def forward(self, x, source):
        x = x + self.dropout(self.attention(self.attention_norm(x), source, None))
        return x + self.dropout(self.ffn(self.ffn_norm(x)))


def sinusoids(length, d):
    angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)  # [length, D]
