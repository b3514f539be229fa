"""The classifiers of the engine in plain PyTorch, for peer.py: task = "classify"."""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import peer

CLASSES = 2


class Settings(peer.CommonSettings):
    """The part of a settings file of task = "classify" that matters here, and defaults as in docs/engine_settings.md."""

    def __init__(self, file, settings, vocabulary):
        super().__init__(file, settings, vocabulary, {"placement": "pre"}, (128, 512, 4))
        dropout = settings.get("model", {}).get("dropout", {})
        self.layers = settings.get("model", {}).get("layers", 4)
        self.residual_dropout, self.attention_dropout, self.relu_dropout, self.pooled_dropout = (
            dropout.get(site, 0.2) for site in ("residual", "attention", "relu", "pooled"))
        if dropout.get("word", 0.0) != 0:
            sys.exit(f"peer: {file}: model.dropout.word must be 0: the peer does not drop words")


def read_lengths(file):
    """[batch][sentence] = rows."""
    try:
        batches = json.loads(pathlib.Path(file).read_text())["batches"]
        assert batches and all(batches) and all(rows >= 1 for batch in batches for rows in batch)
    except OSError as error:
        sys.exit(f"peer: {error}")
    except (ValueError, KeyError, TypeError, AssertionError):
        sys.exit(f'peer: {file}: expected {{"batches": [[rows, …], …]}}, all of them at least 1')
    return batches


class Batch:
    def __init__(self, lengths, vocabulary, packed, device, generator):
        sentences = [torch.randint(peer.FIRST_WORD, vocabulary, (rows,), generator=generator).tolist() for rows in lengths]
        self.source = peer.Side(sentences, packed, device)
        self.labels = torch.tensor([i % CLASSES for i in range(len(lengths))], device=device)
        rows = torch.tensor(lengths, device=device)
        # [N, T] or [N, 1, S]: the mean over a sentence's rows is a matmul with these weights.
        self.weights = (torch.arange(int(rows.max()), device=device) < rows[:, None]).float() / rows[:, None]


class SentenceClassifier(nn.Module):
    """Pre-norm encoder with a final norm; mean of the rows, dropout, linear."""

    def __init__(self, o, longest):
        super().__init__()
        self.options = o
        self.embedding = nn.Embedding(o.vocabulary, o.d)
        self.layers = nn.ModuleList(peer.EncoderLayer(o) for _ in range(o.layers))
        self.norm, self.output = nn.LayerNorm(o.d), nn.Linear(o.d, CLASSES)
        self.dropout, self.pooled_dropout = nn.Dropout(o.residual_dropout), nn.Dropout(o.pooled_dropout)
        self.register_buffer("places", peer.sinusoids(longest, o.d), persistent=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=o.d**-0.5)

    def forward(self, batch):
        """→ the mean cross-entropy."""
        source = batch.source
        x = self.embedding(source.tokens) * self.options.d**0.5 + F.embedding(source.positions, self.places)
        x = self.dropout(x)
        for layer in self.layers:
            x = layer(x, source)
        rows = source.side_by_side(self.norm(x))  # [N, S, D]
        pooled = (batch.weights[:, None, :] @ rows)[:, 0]
        return F.cross_entropy(self.output(self.pooled_dropout(pooled)), batch.labels, label_smoothing=self.options.smoothing)
