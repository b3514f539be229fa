#!/usr/bin/env python3
"""Writes tests/golden/recipes/*.json: twenty updates of the recipes grids/base/ds.toml, joey.toml and ada_*.toml at a small size, from the
lines of a corpus on, by a second program that shares nothing with the engine.

Vocabulary, reading, batches, loss, accumulation, optimiser and schedule are written here as docs/spec/training.md §3 to §5 have them; the
model, in double precision, is make_golden.py's; Adam and the plateau scheduler of JoeyNMT are torch's own. Nothing is read from grids/.
Needs torch and numpy; run by hand when a definition changes, look at the difference, commit it:

    python3 tools/make_golden_recipes.py tests/golden/recipes

A file has:
    base         the file of settings that the case is of, or several, of which later ones win
    small        the settings that are laid over it
    recipe       the values of the recipe of the settings that `small` replaces, or that twenty updates of so small a model do not show
    train, dev, test  pairs of lines
    updates      train.loss, train.grad_norm and train.lr of each
    evaluations  dev.ppl and dev.ppl_smoothed, by update
    epochs       train.loss_sum, by the last update of each
    scores       of the selected model
    dev_outputs  its translations, where the search is greedy
"""
import json
import math
import pathlib
import random
import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch

from make_golden import BOS, EOS, PAD, UNK, Batch, Case, Transformer, check_philox, random_bits

UPDATES = 20
ADAM_EPSILON = 1e-4  # so that it shows what it is added to
SMALL = {"model.d_model": 8, "model.d_ff": 12, "train.adam.eps": ADAM_EPSILON}


# --- text ----------------------------------------------------------------------------------------------------------------------
def made_up(draw, count, longest, source_words, target_words):
    def line(words):
        return " ".join(draw.choice(words) for _ in range(draw.randint(1, longest)))

    return [(line(source_words), line(target_words)) for _ in range(count)]


def repeated(draw, words, count):
    """A line so long that its words are drawn from few."""
    few = [draw.choice(words) for _ in range(5)]
    return " ".join(few[i * i % 7 % 5] for i in range(count))


def numbering(lines):
    """PAD, BOS, EOS, UNK, then the pieces of the training text: frequent ones first, equally frequent ones in the order of their bytes."""
    counts = Counter(piece for line in lines for piece in line.split())
    order = sorted(counts, key=lambda piece: (-counts[piece], piece.encode()))
    return {piece: number for number, piece in enumerate(["<pad>", "<bos>", "<eos>", "<unk>", *order])}


def encode(line, numbers):
    return [numbers.get(piece, UNK) for piece in line.split()] + [EOS]


@dataclass
class Set:
    """Pairs of sentences, each side with its EOS."""
    sources: list
    targets: list

    def __len__(self):
        return len(self.sources)

    def batch(self, pairs, limit=None):
        """Of each side its first `limit` tokens."""
        return Batch(pairs, [self.sources[i][:limit] for i in pairs], [self.targets[i][:limit] for i in pairs])


# --- batches -------------------------------------------------------------------------------------------------------------------
def shuffled(items, seed, pass_number, which):
    """Fisher and Yates, from the last place down. The draws are Philox's of the stream "order"."""
    items = list(items)
    for left in range(len(items), 1, -1):
        bits = int(random_bits(seed, "order", left, which, pass_number))
        other = bits * left >> 32
        items[left - 1], items[other] = items[other], items[left - 1]
    return items


def batches_of_zero(train, seed, pass_number, tokens, buffer_size, leak_ratio, max_length):
    """Reading (training.md §4.2): a sentence is cut to max_length words, gets its EOS, and is cut to max_length columns once more when
    the batch is made. Sentences are sorted by the first of these lengths; leaks are measured by the second."""
    read = [[min(len(side) - 1, max_length) + 1 for side in (train.sources[i], train.targets[i])] for i in range(len(train))]
    batches, waiting, buffers, nexts = [], [], 0, 0
    while True:
        ended = len(waiting) + len(train) - nexts < buffer_size
        take = len(train) - nexts if ended else buffer_size - len(waiting)
        buffer = sorted(waiting + list(range(nexts, nexts + take)), key=lambda i: max(read[i]))
        nexts += take
        cut, batch = [], []
        for i in buffer:
            if batch and (len(batch) + 1) * max(read[i]) >= tokens:
                cut.append(batch)
                batch = []
            batch.append(i)
        cut.append(batch)
        real = [max(sum(min(read[i][side], max_length) for i in batch) for side in (0, 1)) for batch in cut]
        waiting = [i for batch, size in zip(cut, real) if size < leak_ratio * tokens for i in batch]
        kept = [batch for batch, size in zip(cut, real) if size >= leak_ratio * tokens]
        batches += shuffled(kept, seed, pass_number, buffers)
        buffers += 1
        if ended:
            return batches


def batches_of_torchtext(train, seed, pass_number, tokens):
    """Batches of JoeyNMT: sentences in random order; whichever makes a batch too large opens the next."""
    def size(batch):
        longest_source = max(len(train.sources[i]) - 1 for i in batch)
        longest_target = max(len(train.targets[i]) - 1 + 2 for i in batch)  # with BOS and EOS
        return len(batch) * max(longest_source, longest_target)

    batches, batch = [], []
    for i in shuffled(range(len(train)), seed, pass_number, 0):
        batch.append(i)
        if size(batch) == tokens:
            batches.append(batch)
            batch = []
        elif size(batch) > tokens:
            batches.append(batch[:-1])
            batch = batch[-1:]
    return [b for b in [*batches, batch] if b]


def batches_of_fairseq(train, seed, pass_number, tokens):
    """training.md §2.1: sorted by the target's length, and stably by the source's; each length has its EOS. A batch that the next pair would
    make too large keeps a multiple of 8 sentences, or all if it has fewer than 8; the others open the next one. Only the order of the
    batches changes from pass to pass."""
    def size(batch):
        return len(batch) * max(max(len(train.sources[i]), len(train.targets[i])) for i in batch)

    order = shuffled(range(len(train)), seed, 0, 0)
    order.sort(key=lambda i: len(train.targets[i]))
    order.sort(key=lambda i: len(train.sources[i]))
    batches, batch = [], []
    for i in order:
        if batch and size([*batch, i]) > tokens:
            kept = len(batch) if len(batch) < 8 else len(batch) - len(batch) % 8
            batches.append(batch[:kept])
            batch = batch[kept:]
        batch.append(i)
    return shuffled([*batches, batch], seed, pass_number, 1)


# --- losses --------------------------------------------------------------------------------------------------------------------
def smoothed_labels(labels, vocabulary, epsilon, form):
    """[N, V]"""
    if form == "fairseq":
        return (1 - epsilon) * torch.eye(vocabulary)[labels] + epsilon / vocabulary
    others = {"zero": vocabulary - 1, "joey": vocabulary - 2}[form]
    q = torch.full((len(labels), vocabulary), epsilon / others)
    if form == "joey":
        q[:, PAD] = 0
    q[torch.arange(len(labels)), labels] = 1 - epsilon
    return q


def losses(model, epsilon, form):
    """Of each label: the Kullback-Leibler divergence (of fairseq the cross-entropy), -log p, and the sentence that it is of."""
    labels = torch.tensor([label for sentence in model.batch.labels for label in sentence])
    sentence = torch.tensor([i for i, labels in enumerate(model.batch.labels) for _ in labels])
    logits = torch.cat([rows[:len(labels)] for rows, labels in zip(model.logits(), model.batch.labels)])
    logp = torch.log_softmax(logits, -1)
    q = smoothed_labels(labels, logits.shape[1], epsilon, form)
    entropy = 0 if form == "fairseq" else torch.xlogy(q, q)
    divergence = (entropy - q * logp).sum(-1)
    return divergence, -logp[torch.arange(len(labels)), labels], sentence


# --- optimisers ----------------------------------------------------------------------------------------------------------------
class TensorFlowAdam:
    """ε is added to the root as it is; the corrections are the learning rate's. fairseq's, too, which has a decay before each step."""

    def __init__(self, parameters, beta1, beta2, epsilon, decay=0.0):
        self.parameters, self.beta1, self.beta2, self.epsilon, self.decay = parameters, beta1, beta2, epsilon, decay
        self.m, self.v = [torch.zeros_like(p) for p in parameters], [torch.zeros_like(p) for p in parameters]
        self.t = 0

    @torch.no_grad()
    def step(self, rate):
        self.t += 1
        for p in self.parameters:
            p -= rate * self.decay * p
        rate *= math.sqrt(1 - self.beta2**self.t) / (1 - self.beta1**self.t)
        for p, m, v in zip(self.parameters, self.m, self.v):
            m += (1 - self.beta1) * (p.grad - m)
            v += (1 - self.beta2) * (p.grad**2 - v)
            p -= rate * m / (v.sqrt() + self.epsilon)


# --- recipes -------------------------------------------------------------------------------------------------------------------
class Recipe:
    """What the two share: a loop over updates, and what it reports."""

    def __init__(self, texts, numbers_of_source, numbers_of_target, case, seed, epsilon, form):
        self.texts, self.case, self.seed, self.epsilon, self.form = texts, case, seed, epsilon, form
        self.pieces = list(numbers_of_target)
        self.sets = {name: Set([encode(source, numbers_of_source) for source, _ in pairs],
                               [encode(target, numbers_of_target) for _, target in pairs]) for name, pairs in texts.items()}
        self.parameters = Transformer.initial_parameters(case)
        self.leaves = list(self.parameters.values())
        self.updates, self.evaluations, self.epochs = {"train.loss": [], "train.grad_norm": [], "train.lr": []}, {}, {}
        self.sum_of_epoch = 0.0
        self.pass_number, self.waiting = -1, []
        self.kept = {}  # parameters, by the update of an evaluation

    def next_batch(self):
        """Pairs; and whether a pass ends with them."""
        if not self.waiting:
            self.pass_number += 1
            self.waiting = self.batches()
        return self.waiting.pop(0), not self.waiting

    def perplexities(self, name):
        """Over all labels of that set, without dropout."""
        sums = np.zeros(2)
        everything = self.sets[name]
        with torch.no_grad():
            for i in range(len(everything)):
                divergence, nll, _ = losses(Transformer(self.case, self.parameters, 0, everything.batch([i])), self.epsilon, self.form)
                sums += [divergence.sum().item(), nll.sum().item()]
        smoothed, exact = np.exp(sums / sum(map(len, everything.targets))).tolist()
        return {name + ".ppl": exact, name + ".ppl_smoothed": smoothed}

    def evaluate(self, update):
        self.evaluations[update] = self.perplexities("dev")
        self.kept[update] = [p.detach().clone() for p in self.leaves]

    def load_mean(self, updates):
        with torch.no_grad():
            for i, p in enumerate(self.leaves):
                p.copy_(sum(self.kept[u][i] for u in updates) / len(updates))

    def backward(self, update, pairs, limit, share, by_sentence):
        """Adds `share` of the gradient of the batch's mean loss. The sum of the losses of its labels, and their number."""
        model = Transformer(self.case, self.parameters, update, self.sets["train"].batch(pairs, limit))
        divergence, _, sentence = losses(model, self.epsilon, self.form)
        if by_sentence:
            mean = torch.stack([divergence[sentence == i].mean() for i in range(len(pairs))]).mean()
        else:
            mean = divergence.sum() / len(divergence)
        (mean * share).backward()
        return np.array([divergence.sum().item(), len(divergence)])

    def report(self, update, loss, rate, ends_epoch):
        norm = math.sqrt(sum((p.grad**2).sum().item() for p in self.leaves))
        for name, value in (("train.loss", loss), ("train.grad_norm", norm), ("train.lr", rate)):
            self.updates[name].append(value)
        self.sum_of_epoch += loss
        if ends_epoch:
            self.epochs[update], self.sum_of_epoch = self.sum_of_epoch, 0.0

    def zero_gradients(self):
        for p in self.leaves:
            p.grad = torch.zeros_like(p)


class Ds(Recipe):
    BASE = "ds.toml"
    SMALL = SMALL | {
        "text.kind": "segmented", "model.heads": 2, "model.encoder_layers": 2, "model.decoder_layers": 2, "train.epoch_updates": 5,
        "train.max_epochs": 4, "train.batch.tokens": 40, "train.batch.buffer": 14, "train.schedule.scale": 0.1,
        "train.schedule.warmup_updates": 8, "train.select.count": 2}
    RECIPE = {
        "model.d_model": 512, "model.d_ff": 2048, "model.heads": 8, "model.encoder_layers": 6, "model.decoder_layers": 6,
        "train.epoch_updates": 5000, "train.max_epochs": 60, "train.batch.tokens": 6250, "train.batch.buffer": 60000,
        "train.schedule.scale": 1.0, "train.schedule.warmup_updates": 4000, "train.select.count": 5,
        "text.kind": "bpe", "text.merges": 32000, "text.learned": "per_side", "train.early_stop": 0, "train.min_lr": 0.0,
        "train.adam.eps": 1e-8, "model.norm.eps": 1e-8, "model.special_outputs": True, "train.clip_norm": 0.0, "train.select.kind": "last",
        "decode.search": "t2t", "decode.beam": 4, "decode.length_penalty": "gnmt", "decode.alpha": 0.6, "decode.max_extra": 50}
    MAX_LENGTH, TOKENS, BUFFER, LEAK_RATIO, MICRO_BATCHES = 256, 40, 14, 0.5, 4

    def __init__(self):
        draw = random.Random(11)  # one batch has exactly half of the tokens, and stays; one has a token less
        source_words, target_words = list("abcdefgh"), list("cdpqrst")
        train = made_up(draw, 44, 9, source_words, target_words)
        # Without EOS: cut with and without it, to the word before it, and not at all.
        for place, sides in {3: (300, 2), 9: (2, 256), 17: (255, 255), 26: (256, 300), 38: (1, 257)}.items():
            train[place] = tuple(repeated(draw, words, count) for words, count in zip((source_words, target_words), sides))
        texts = {"train": train} | {name: made_up(draw, 4, 7, source_words + ["new"], target_words + ["new"]) for name in ("dev", "test")}
        texts["dev"].append((repeated(draw, source_words, 258), repeated(draw, target_words, 260)))  # is not cut
        sides = [numbering(line) for line in zip(*train)]
        seed = 147
        case = Case(
            "layer_norm", "post", init="ds_init", fan="fused3_self", tied="target", mask=False, output_bias=False, encoder_layers=2,
            decoder_layers=2, sublayers={"decoder": "matt, ffn"}, norm_settings={"eps": 1e-8},
            dropout={"residual": 0.1, "attention": 0.1, "relu": 0.1, "word": 0.0, "embedding": 0.1},
            inputs={"positions.form": "halves", "decoder_start": "zero", "input_vector": True, "special_outputs": True},
            source_vocabulary=len(sides[0]), target_vocabulary=len(sides[1]), init_seed=seed, dropout_seed=seed)
        super().__init__(texts, *sides, case, seed, 0.1, "zero")

    def batches(self):
        return batches_of_zero(self.sets["train"], self.seed, self.pass_number, self.TOKENS, self.BUFFER, self.LEAK_RATIO, self.MAX_LENGTH)

    def train(self):
        optimiser = TensorFlowAdam(self.leaves, 0.9, 0.98, ADAM_EPSILON)
        for update in range(1, UPDATES + 1):
            self.zero_gradients()
            loss, labels = sum(self.backward(update, self.next_batch()[0], self.MAX_LENGTH, 1 / self.MICRO_BATCHES, by_sentence=True)
                               for _ in range(self.MICRO_BATCHES))
            rate = 0.1 * 8**-0.5 * min(update**-0.5, update * 8**-1.5)
            self.report(update, loss / labels, rate, update % 5 == 0)
            optimiser.step(rate)
            if update % 5 == 0:
                self.evaluate(update)
        self.load_mean([15, 20])
        return self.perplexities("dev") | self.perplexities("test") | {"selected_step": 20, "averaged_checkpoints": 2}, None


class Joey(Recipe):
    BASE = "joey.toml"
    SMALL = SMALL | {"train.batch.tokens": 60, "train.evaluate_updates": 1, "train.max_updates": UPDATES}
    RECIPE = {
        "model.d_model": 256, "model.d_ff": 512, "train.batch.tokens": 2048, "train.evaluate_updates": 500, "train.max_epochs": 10,
        "train.adam.eps": 1e-8, "model.norm.eps": 1e-6, "model.special_outputs": True,
        "train.early_stop": 0, "train.min_lr": 1e-8, "decode.length_penalty": "gnmt", "decode.alpha": 1.0}
    MAX_WORDS, TOKENS, MAX_OUTPUT = 100, 60, 100

    def __init__(self, placement):
        draw = random.Random(23)  # batches that differ from those of each other way to count their sentences
        source_words, target_words = list("abcdefgh"), list("pqrst")
        train = made_up(draw, 40, 9, source_words, target_words)
        for place, sides in {2: (101, 3), 11: (100, 2), 20: (2, 101), 29: (1, 100)}.items():
            train[place] = tuple(repeated(draw, words, count) for words, count in zip((source_words, target_words), sides))
        # Dev has labels that training makes less likely, so that new bests are few.
        texts = {"train": train, "dev": made_up(draw, 5, 9, source_words, source_words),
                 "test": made_up(draw, 4, 7, source_words + ["new"], target_words + ["new"])}
        usable = [pair for pair in train if all(0 < len(side.split()) <= self.MAX_WORDS for side in pair)]
        numbers = numbering([line for pair in usable for line in pair])
        seed = 42
        case = Case(
            "layer_norm", placement, init="joey", mask=False, output_bias=False, encoder_layers=4, decoder_layers=1, heads=2,
            norm_settings={"eps": 1e-6}, dropout={"residual": 0.0, "attention": 0.0, "relu": 0.0, "word": 0.0},
            inputs={"special_outputs": True}, source_vocabulary=len(numbers), target_vocabulary=len(numbers), init_seed=seed,
            dropout_seed=seed)
        super().__init__(texts | {"train": usable}, numbers, numbers, case, seed, 0.3, "joey")
        self.texts = texts

    def batches(self):
        return batches_of_torchtext(self.sets["train"], self.seed, self.pass_number, self.TOKENS)

    def train(self):
        optimiser = torch.optim.Adam(self.leaves, lr=3e-4, betas=(0.9, 0.999), eps=ADAM_EPSILON)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, mode="min", factor=0.7, patience=8, threshold_mode="abs")
        best = math.inf
        for update in range(1, UPDATES + 1):
            self.zero_gradients()
            pairs, ends_pass = self.next_batch()
            loss, labels = self.backward(update, pairs, None, 1, by_sentence=False)
            self.report(update, loss / labels, optimiser.param_groups[0]["lr"], ends_pass)
            optimiser.step()
            self.evaluate(update)
            perplexity = self.evaluations[update]["dev.ppl_smoothed"]
            assert abs(perplexity - best) > 1.05e-4, "torch's threshold or the engine's rounding may decide this one"
            best = min(best, perplexity)
            plateau.step(perplexity)
        selected = min(self.evaluations, key=lambda update: self.evaluations[update]["dev.ppl_smoothed"])
        self.load_mean([selected])
        return self.perplexities("dev") | self.perplexities("test") | {"selected_step": selected}, self.greedy("dev")

    @torch.no_grad()
    def greedy(self, name):
        """The most probable token of all, until EOS or MAX_OUTPUT tokens."""
        outputs = []
        for i, source in enumerate(self.sets[name].sources):
            output = []
            while len(output) < self.MAX_OUTPUT:
                # The label after the newest token is not read.
                logits = Transformer(self.case, self.parameters, 0, Batch([i], [source], [[*output, EOS]])).logits()[0, -1]
                first, second = logits.topk(2).values.tolist()
                assert first - second > 1e-4, "rounding may decide this one"
                output.append(int(logits.argmax()))
                if output[-1] == EOS:
                    break
            outputs.append(" ".join(self.pieces[token] for token in output if token not in (PAD, BOS, EOS)))
        return outputs


class Ada(Recipe):
    """Translation of the AdaNorm paper: fairseq 0.8. One of its corpora, `released` as the released code has it. `accumulate`, `peak`,
    `dropout` and `c` are the recipe's own."""
    SMALL_COMMON = SMALL | {
        "text.kind": "segmented", "model.heads": 2, "model.encoder_layers": 2, "model.decoder_layers": 2, "model.norm.kind": "ada_norm",
        "train.batch.tokens": 60, "train.max_updates": UPDATES, "train.schedule.warmup_updates": 8, "train.optimiser.weight_decay": 0.5}
    RECIPE_COMMON = {
        "model.encoder_layers": 6, "model.decoder_layers": 6, "model.norm.kind": "layer_norm", "train.batch.tokens": 4096, "train.adam.eps": 1e-8,
        "text.max_words": 0, "text.split_unseen": False, "train.early_stop": 0, "train.min_lr": 1e-9, "train.clip_norm": 0.0,
        "decode.search": "fairseq", "decode.length_penalty": "length", "decode.max_length": 201}
    OF_CORPUS = {
        "ada_de_en": dict(tied="all", dropout=(0.3, 0.1, 0.1), c=2.0, peak=1.5e-3, accumulate=2, recipe={
            "model.d_model": 512, "model.d_ff": 1024, "model.heads": 4, "train.schedule.warmup_updates": 8000,
            "train.optimiser.weight_decay": 1e-4, "train.max_epochs": 1000, "train.max_updates": 90000, "decode.beam": 5, "decode.alpha": 1.0,
            "text.kind": "bpe", "text.merges": 10000}),
        "ada_en_vi": dict(tied="none", dropout=(0.1, 0.0, 0.0), c=1.0, peak=1e-3, accumulate=1, recipe={
            "model.d_model": 512, "model.d_ff": 2048, "model.heads": 8, "train.schedule.warmup_updates": 8000,
            "train.optimiser.weight_decay": 1e-4, "train.max_epochs": 1000, "train.max_updates": 90000, "decode.beam": 5, "decode.alpha": 1.0,
            "text.kind": "bpe", "text.merges": 10000, "text.learned": "joint"}),
        "ada_en_de": dict(tied="all", dropout=(0.3, 0.1, 0.1), c=2.0, peak=1e-3, accumulate=1, recipe={
            "model.d_model": 1024, "model.d_ff": 4096, "model.heads": 16, "train.schedule.warmup_updates": 4000,
            "train.optimiser.weight_decay": 0.0, "train.max_epochs": 20, "decode.beam": 4, "decode.alpha": 0.6, "text.kind": "segmented"}),
    }
    TOKENS, WARMUP, DECAY, EPOCHS, NORM_EPS = 60, 8, 0.5, 2, 0.05

    def __init__(self, corpus, released=False):
        own = self.OF_CORPUS[corpus]
        self.accumulate, self.peak, self.released = own["accumulate"], own["peak"], released
        self.BASE = [corpus + ".toml", "ada_released.toml"] if released else corpus + ".toml"
        self.SMALL, self.RECIPE = dict(self.SMALL_COMMON), self.RECIPE_COMMON | own["recipe"]
        if released:
            self.SMALL["model.norm.eps"], self.RECIPE["model.norm.eps"] = self.NORM_EPS, 1e-5
            self.RECIPE |= {"train.select.kind": "best", "train.select.count": 1, "train.select.by": "loss"}
        else:
            self.SMALL["train.select.count"] = self.EPOCHS
            self.RECIPE |= {"train.select.kind": "last_epochs", "train.select.count": 10}
        draw = random.Random(31)
        source_words, target_words = list("abcdefgh"), list("cdpqrst")
        train = made_up(draw, {1: 28, 2: 48}[self.accumulate], 9, source_words, target_words)
        train[7] = (repeated(draw, source_words, 59), "c d")  # with its EOS as long as a batch may be
        texts = {"train": train} | {name: made_up(draw, 5, 7, source_words + ["new"], target_words + ["new"]) for name in ("dev", "test")}
        if released:  # dev has labels that training makes less likely: the last evaluation is not the best
            texts["dev"] = made_up(draw, 5, 16, source_words, list("abefgh"))
        joint = own["tied"] == "all"
        sides = [numbering([line for pair in train for line in pair])] * 2 if joint else [numbering(lines) for lines in zip(*train)]
        residual, attention, relu = own["dropout"]
        norm_settings = {"ada_norm.c": own["c"], "ada_norm.k": 0.1}
        if released:
            norm_settings |= {"scope": "final_only", "eps": self.NORM_EPS, "eps_mode": "std_add", "deviation": "unbiased"}
        seed = 1
        case = Case(
            "ada_norm", "pre", init="kaiming_released" if released else "kaiming", tied=own["tied"], mask=False, output_bias=False,
            encoder_layers=2, decoder_layers=2, norm_settings=norm_settings,
            dropout={"residual": residual, "attention": attention, "relu": relu, "word": 0.0},
            inputs={"positions.form": "halves", "positions.first": 2, "decoder_start": "eos", "init_pad": "zero",
                    "special_outputs": True},  # the loss is over all types; the search here is not
            source_vocabulary=len(sides[0]), target_vocabulary=len(sides[1]), init_seed=seed, dropout_seed=seed)
        super().__init__(texts, *sides, case, seed, 0.1, "fairseq")

    def batches(self):
        return batches_of_fairseq(self.sets["train"], self.seed, self.pass_number, self.TOKENS)

    def rate(self, made):
        """After `made` updates."""
        if made < self.WARMUP:
            return 1e-7 + made * (self.peak - 1e-7) / self.WARMUP
        return self.peak * math.sqrt(self.WARMUP / made)

    def train(self):
        optimiser = TensorFlowAdam(self.leaves, 0.9, 0.98, ADAM_EPSILON, self.DECAY)
        ends = []  # of epochs
        for update in range(1, UPDATES + 1):
            self.zero_gradients()
            batches = [self.next_batch() for _ in range(self.accumulate)]
            labels = [sum(len(self.sets["train"].targets[i]) for i in pairs) for pairs, _ in batches]
            sums = sum(self.backward(update, pairs, None, count / sum(labels), by_sentence=False) for (pairs, _), count in zip(batches, labels))
            assert sums[1] == sum(labels)
            ends_pass = any(ended for _, ended in batches)
            self.report(update, sums[0] / sums[1], self.rate(update - 1), ends_pass)
            optimiser.step(self.rate(update - 1))
            if ends_pass or update == UPDATES:
                self.evaluate(update)
            if ends_pass:
                ends.append(update)
        assert UPDATES not in ends, "the end of the training shall not be that of an epoch"
        by_loss = sorted(self.evaluations, key=lambda update: self.evaluations[update]["dev.ppl_smoothed"])
        assert len(ends) > self.EPOCHS
        assert by_loss[0] != UPDATES or not self.released
        selected = by_loss[:1] if self.released else ends[-self.EPOCHS:]
        self.load_mean(selected)
        scores = {"selected_step": selected[-1]} | ({} if self.released else {"averaged_checkpoints": len(selected)})
        return self.perplexities("dev") | self.perplexities("test") | scores, None


def golden(recipe, small):
    scores, outputs = recipe.train()
    settings = recipe.SMALL | small
    assert not set(settings) - {"train.max_updates", "model.placement"} - set(recipe.RECIPE), "replaced, and its value in the recipe not told"
    out = {"base": recipe.BASE, "small": settings, "recipe": recipe.RECIPE} | recipe.texts
    out |= {"updates": recipe.updates, "evaluations": recipe.evaluations, "epochs": recipe.epochs, "scores": scores}
    if outputs is not None:
        out["dev_outputs"] = outputs
    return out


def written(value, depth=0):
    """JSON, a value a line down to lists of numbers and pairs."""
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, dict) and depth < 2:
        return "{\n" + ",\n".join(f"{' ' * (depth + 1)}{json.dumps(str(k))}: {written(v, depth + 1)}" for k, v in value.items()) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {written(v, depth + 1)}" for k, v in value.items()) + "}"
    if isinstance(value, list) and value and isinstance(value[0], (tuple, str)):
        return "[\n" + ",\n".join(" " * (depth + 1) + json.dumps(v) for v in value) + "]"
    if isinstance(value, list):
        return "[" + ", ".join(written(v, depth + 1) for v in value) + "]"
    return json.dumps(value)


def cases():
    yield "ds", Ds(), {}
    yield "joey", Joey("pre"), {}
    for placement in ("joey_pre", "joey_post"):
        yield placement, Joey(placement), {"model.placement": placement}
    for corpus in Ada.OF_CORPUS:
        yield corpus, Ada(corpus), {}
    yield "ada_released", Ada("ada_de_en", released=True), {}


def main():
    check_philox()
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, recipe, small in cases():
        out = golden(recipe, small)
        (folder / f"{name}.json").write_text(written(out) + "\n")
        passes, norms = recipe.pass_number + 1, recipe.updates["train.grad_norm"]
        print(f"{name}: {passes} passes, losses {recipe.updates['train.loss'][0]:.4f} … {recipe.updates['train.loss'][-1]:.4f}, "
              f"gradient norms {min(norms):.3f} … {max(norms):.3f}, dev perplexities "
              f"{[round(e['dev.ppl_smoothed'], 3) for e in recipe.evaluations.values()]}, rates {sorted(set(recipe.updates['train.lr']))}")


if __name__ == "__main__":
    main()
