#!/usr/bin/env python3
"""parser_peer.py CONFIG.toml TRAIN.conllu DEV.conllu: the parser of task = "parse" in plain PyTorch, for tools/bench/parser.py to time.

Trees, oracle and features are read and derived here, from docs/spec/tasks.md §4, once before anything is timed. The network is what a
careful user would write: nn.Embedding, nn.Linear, nn.LayerNorm, F.cross_entropy of logits in which illegal transitions have a large
negative number added, autograd, fused torch.optim. The examples are one tensor from which index_select takes a batch. Indices of 64
bits, index_select for the embeddings, and optimisers that are not fused were no faster.

A line {"ready": true, …} when warm; then for each line {"seed": S, "updates": N} on standard input one line of answer, for the first N
updates of a pass (null: for all) of a network with new weights: {"seconds": s, "losses": [of each update], "dev_loss": loss}.
"""

import argparse
import dataclasses
import json
import sys
import time

from layers import F, TrainSettings, nn, read_settings, torch

WORDS, CHILDREN = 18, 12
ILLEGAL = -1e30
NULL, ROOT, UNKNOWN, FIRST = 0, 1, 2, 3  # tokens of words, and likewise of tags
WARM_UP_UPDATES = 3


class Settings(TrainSettings):
    """The part of a settings file of task = "parse" that matters here."""

    def __init__(self, file, settings):
        super().__init__(file, settings, {
            "task": ("translate", "parse"), "model.softmax": ("legal", "legal"), "model.features": ("all", "all"),
            "model.embedding_init": ("uniform", "uniform"), "train.schedule.kind": ("nowarmup", "nowarmup")})
        model, train = settings.get("model", {}), settings.get("train", {})
        dropout, optimiser = model.get("dropout", {}), train.get("optimiser", {})
        self.embedding, self.hidden, self.layers = (model.get(key, size) for key, size in (("embedding", 50), ("hidden", 512),
                                                                                            ("hidden_layers", 2)))
        self.activation = {"relu": F.relu, "cube": lambda x: x * x * x}[model.get("activation", "relu")]
        self.norm = {"layer_norm": nn.LayerNorm, "none": nn.Identity}[model.get("norm", {}).get("kind", "layer_norm")]
        self.init, self.output_bias = model.get("init", "torch_default"), model.get("output_bias", True)
        self.dropout, self.rescale = dropout.get("hidden", 0.2), dropout.get("rescale", True)
        self.batch, self.learning_rate = train.get("batch", {}).get("examples", 1024), train.get("schedule", {}).get("lr", 1e-3)
        self.optimiser, self.l2 = optimiser.get("kind", "adam"), optimiser.get("l2", 0.0)
        self.adagrad_eps = optimiser.get("adagrad", {}).get("eps", 1e-6)

    def make_optimiser(self, parameters):
        options = {"lr": self.learning_rate, "weight_decay": self.l2, "fused": True}
        if self.optimiser == "adam":
            return torch.optim.Adam(parameters, betas=self.betas, eps=self.adam_eps, **options)
        # ε inside the root, as CoreNLP has it: without it the first updates of so small a network as this would be far larger.
        return torch.optim.Adagrad(parameters, eps=0, initial_accumulator_value=self.adagrad_eps, **options)


# --- trees --------------------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class Tree:
    """Of n words; each list has n + 1 entries, with ROOT at 0."""
    words: list
    tags: list
    heads: list
    labels: list


def read_trees(file):
    """Of a file in CoNLL-U: forms, XPOS, heads, and labels up to a colon. Ranges and empty nodes are left out."""
    with open(file, encoding="utf-8") as lines:
        for sentence in lines.read().split("\n\n"):
            rows = [line.split("\t") for line in sentence.splitlines() if line[:1].isdigit()]
            rows = [row for row in rows if row[0].isdigit()]
            if rows:
                yield Tree([None, *(row[1] for row in rows)], [None, *(row[4] for row in rows)], [-1, *(int(row[6]) for row in rows)],
                           [None, *(row[7].split(":")[0] for row in rows)])


def is_projective(heads):
    """Whether no two arcs cross, those from ROOT included."""
    arcs = [(min(child, head), max(child, head)) for child, head in enumerate(heads) if child]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def numbered(texts, first):
    return {text: first + i for i, text in enumerate(dict.fromkeys(texts))}


class Treebank:
    """Token numbers of what the projective training trees have: words, tags and labels in one table."""

    def __init__(self, trees):
        self.words = numbered((word for tree in trees for word in tree.words[1:]), FIRST)
        self.tags = numbered((tag for tree in trees for tag in tree.tags[1:]), FIRST)
        self.labels = numbered((label for tree in trees for label in tree.labels[1:]), 0)
        self.no_tag = FIRST + len(self.words)
        self.no_label = self.no_tag + FIRST + len(self.tags)
        self.types = self.no_label + 1 + len(self.labels)
        self.root_label = self.labels["root"]

    @property
    def transitions(self):
        return 2 * len(self.labels) + 1

    def illegal(self):
        """[4, K]: what is added to the logits where only SHIFT is legal, only the arc from ROOT, all arcs between words, these and SHIFT."""
        count, shift = len(self.labels), self.transitions - 1
        arcs = [i for i in range(shift) if i % count != self.root_label]
        table = torch.full((4, self.transitions), ILLEGAL)
        for row, legal in enumerate(([shift], [count + self.root_label], arcs, [*arcs, shift])):
            table[row, legal] = 0
        return table

    def examples(self, trees):
        """→ tokens [N, 48], rows of illegal() [N], transitions [N]: those that the static oracle takes."""
        tokens, rows, transitions = [], [], []
        for tree in trees:
            for features, row, transition in self.derivation(tree):
                tokens.append(features)
                rows.append(row)
                transitions.append(transition)
        return torch.tensor(tokens, dtype=torch.int32), torch.tensor(rows), torch.tensor(transitions)

    def derivation(self, tree):
        # A word that does not exist is -1, so NULL is the last of each list.
        words = [ROOT, *(self.words.get(word, UNKNOWN) for word in tree.words[1:]), NULL]
        tags = [self.no_tag + tag for tag in (ROOT, *(self.tags.get(tag, UNKNOWN) for tag in tree.tags[1:]), NULL)]
        gold = [None, *(self.labels.get(label, -1) for label in tree.labels[1:])]
        size = len(tree.heads) - 1
        waiting = [0] * (size + 1)  # children that are not attached yet
        for head in tree.heads[1:]:
            waiting[head] += 1
        left, right = [[] for _ in range(size + 1)], [[] for _ in range(size + 1)]  # children, the outermost last
        arc = [self.no_label] * (size + 2)  # tokens of the labels
        shift, arcs = self.transitions - 1, len(self.labels)

        def child(children, word, k):
            return children[word][-k] if word >= 0 and len(children[word]) >= k else -1

        stack, front = [0], 1
        while len(stack) > 1 or front <= size:
            top, second = stack[-1], stack[-2] if len(stack) > 1 else -1
            places = [stack[-k] if len(stack) >= k else -1 for k in (3, 2, 1)]
            places += [word if word <= size else -1 for word in range(front, front + 3)]
            for word in (top, second):
                first, last = child(left, word, 1), child(right, word, 1)
                places += [first, last, child(left, word, 2), child(right, word, 2), child(left, first, 1), child(right, last, 1)]
            features = [words[i] for i in places] + [tags[i] for i in places] + [arc[i] for i in places[-CHILDREN:]]
            has_buffer = front <= size
            row = (3 if has_buffer else 2) if len(stack) > 2 else (0 if has_buffer else 1)
            if second > 0 and tree.heads[second] == top:
                attached, head, children, transition = second, top, left, gold[second]
                del stack[-2]
            elif second >= 0 and tree.heads[top] == second and not waiting[top]:
                attached, head, children, transition = top, second, right, arcs + gold[top]
                del stack[-1]
            else:
                yield features, row, shift
                stack.append(front)
                front += 1
                continue
            children[head].append(attached)
            arc[attached] = self.no_label + 1 + max(gold[attached], 0)
            waiting[head] -= 1
            yield features, row, transition if gold[attached] >= 0 else -1


# --- the network --------------------------------------------------------------------------------------------------------------------
class Parser(nn.Module):
    def __init__(self, options, treebank):
        super().__init__()
        self.options = options
        widths = [options.embedding * (2 * WORDS + CHILDREN)] + [options.hidden] * options.layers
        self.embedding = nn.Embedding(treebank.types, options.embedding)
        self.hidden = nn.ModuleList(nn.Linear(*pair) for pair in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(options.norm(width) for width in widths[1:])
        self.output = nn.Linear(options.hidden, treebank.transitions, bias=options.output_bias)
        self.register_buffer("illegal", treebank.illegal(), persistent=False)
        nn.init.uniform_(self.embedding.weight, -0.01, 0.01)
        for linear in (*self.hidden, self.output):
            bound = linear.in_features**-0.5 if options.init == "torch_default" else 0.01
            for parameter in linear.parameters():
                nn.init.uniform_(parameter, -bound, bound)

    def forward(self, tokens, rows, transitions):
        """→ the mean cross-entropy over legal transitions."""
        x = self.embedding(tokens).flatten(1)
        for linear, norm in zip(self.hidden, self.norms):
            x = F.dropout(self.options.activation(norm(linear(x))), self.options.dropout, self.training)
            if self.training and not self.options.rescale:
                x = x * (1 - self.options.dropout)
        return F.cross_entropy(self.output(x) + self.illegal[rows], transitions, ignore_index=-1)


def train(options, treebank, examples, seed, updates):
    """Trains a new network for a pass, or its first so many updates. → it, seconds, the loss of each update"""
    torch.manual_seed(seed)
    model = Parser(options, treebank)
    optimiser = options.make_optimiser(model.parameters())
    losses = []
    start = time.perf_counter()
    for batch in torch.randperm(len(examples[-1])).split(options.batch)[:updates]:
        loss = model(*(tensor.index_select(0, batch) for tensor in examples))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    seconds = time.perf_counter() - start
    return model, seconds, [loss.item() for loss in losses]


@torch.no_grad()
def loss_of(model, examples):
    model.eval()
    batches = list(zip(*(tensor.split(4096) for tensor in examples)))
    known = [int((transitions >= 0).sum()) for _, _, transitions in batches]
    return sum(model(*batch).item() * count for batch, count in zip(batches, known)) / sum(known)


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="settings of the engine: [model] and [train]")
    parser.add_argument("train", metavar="TRAIN.conllu")
    parser.add_argument("dev", metavar="DEV.conllu")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    options = Settings(arguments.config, read_settings(arguments.config))
    trees, dev_trees = ([tree for tree in read_trees(file) if is_projective(tree.heads)] for file in (arguments.train, arguments.dev))
    treebank = Treebank(trees)
    examples, dev = treebank.examples(trees), treebank.examples(dev_trees)
    model, _, _ = train(options, treebank, examples, seed=0, updates=WARM_UP_UPDATES)
    say({"ready": True, "parameters": sum(parameter.numel() for parameter in model.parameters()), "trees": len(trees),
         "examples": len(examples[-1]), "torch": torch.__version__})
    for line in sys.stdin:
        model, seconds, losses = train(options, treebank, examples, **json.loads(line))
        say({"seconds": seconds, "losses": losses, "dev_loss": loss_of(model, dev)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
