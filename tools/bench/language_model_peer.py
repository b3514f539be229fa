#!/usr/bin/env python3
"""language_model_peer.py CONFIG.toml: task = "language_model" in plain PyTorch, for tools/bench/language_model.py to time.

Transformer-XL as a careful user writes it today: the relative shift pads and reshapes as the released code does, F.layer_norm,
F.cross_entropy, clip_grad_norm_, fused Adam, autograd, fp32. Where PyTorch offers several plain ways, here is the one measured to be the
fastest: heads before streams, so that the scores of distances are one matmul a head; q, k and v of the segment in one matmul, k and v of
the memory in another (the released code computes q of the memory too, and drops it); in training explicit softmax of scores that baddbmm
adds to those of distances, in evaluation `scaled_dot_product_attention`, whose fused kernel has no gradient of them.

--turns speaks the protocol of `tearless-engine bench --turns`: a line {"ready": true, …} when warm; then for each line on standard
input one line of answer:
    {"updates": N}                       → {"seconds": [N numbers]}, of one batch over and over, the memory full
    {"train": N, "text": FILE}           → {"bpc": [N numbers]}: of a new model, N updates over the text
    {"evaluate": true, "text": FILE}     → {"seconds": s, "symbols": n, "bpc": b}: one pass with an empty memory, without gradients
"""

import argparse
import json
import math
import pathlib
import sys
import time

from layers import F, TrainSettings, nn, read_settings, torch

WARM_UP_UPDATES = 5


# --- settings ---------------------------------------------------------------------------------------------------------------------
class Settings(TrainSettings):
    def __init__(self, file, settings, vocabulary):
        super().__init__(file, settings, {
            "task": ("translate", "language_model"), "model.placement": ("post", "post"), "model.init": ("txl", "txl"),
            "model.norm.kind": ("layer_norm", "layer_norm"), "model.fix_norm": (False, False), "model.output_bias": (True, True),
            "evaluate.clamp": (0, 0), "evaluate.window": (0, 0), "text.unit": ("byte", "byte"), "text.newlines": (False, False),
            "train.schedule.kind": ("cosine", "cosine"), "run.device": ("cpu", "cpu")})
        model, train, evaluate = settings.get("model", {}), settings.get("train", {}), settings.get("evaluate", {})
        batch, schedule, dropout = train.get("batch", {}), train.get("schedule", {}), model.get("dropout", {})
        self.vocabulary = vocabulary
        self.layers, self.d, self.f, self.heads, self.memory = (
            model.get(key, value) for key, value in (("layers", 12), ("d_model", 512), ("d_ff", 2048), ("heads", 8), ("memory", 512)))
        self.residual_dropout, self.attention_dropout, self.relu_dropout = (
            dropout.get(site, rate) for site, rate in (("residual", 0.1), ("attention", 0.0), ("relu", 0.1)))
        self.streams, self.segment = batch.get("streams", 22), batch.get("segment", 512)
        self.evaluate_streams, self.evaluate_segment, self.evaluate_memory = (
            evaluate.get(key, value) for key, value in (("streams", 10), ("segment", 128), ("memory", 896)))
        self.smoothing, self.clip_norm = train.get("label_smoothing", 0.0), train.get("clip_norm", 0.25)
        self.warmup, self.peak = schedule.get("warmup_updates", 1), schedule.get("peak_lr", 2.5e-4)
        self.floor = schedule.get("cosine", {}).get("floor", 1e-6)

    def rate(self, update, updates):
        if update <= self.warmup:
            return self.peak * update / self.warmup
        part = min(1.0, (update - self.warmup) / (updates - self.warmup))
        return self.floor + 0.5 * (self.peak - self.floor) * (1 + math.cos(math.pi * part))


# --- the model --------------------------------------------------------------------------------------------------------------------
def shifted(scores):
    """scores [H, B, T, K] of distances K - 1 … 0 → of the keys: row t moves T - 1 - t places to the left. What comes in at the right is
    masked."""
    h, b, t, k = scores.shape
    return F.pad(scores, (1, 0)).view(h, b, k + 1, t)[:, :, 1:].view(h, b, t, k)


class RelativeAttention(nn.Module):
    def __init__(self, o, u, w):
        super().__init__()
        self.heads, self.width, self.dropout = o.heads, o.d // o.heads, o.attention_dropout
        self.u, self.w = u, w  # of all layers
        self.qkv, self.r, self.o = (nn.Linear(o.d, outs * o.d, bias=False) for outs in (3, 1, 1))

    def forward(self, x, memory, distances, mask):
        """x [B, T, D], memory [B, M, D], distances [K, D] of K - 1 … 0, mask [T, K]"""
        (b, t, d), h = x.shape, self.heads
        q, kv = self.qkv(x).split([d, 2 * d], -1)
        kv = torch.cat([F.linear(memory, self.qkv.weight[d:]), kv], 1)
        k, v = kv.view(b, -1, 2, h, self.width).permute(2, 3, 0, 1, 4).unbind(0)  # [H, B, K, width]
        q = q.view(b, t, h, self.width)
        content, place = (((q + bias) * self.width**-0.5).permute(2, 0, 1, 3) for bias in (self.u, self.w))
        r = self.r(distances).view(-1, h, self.width).permute(1, 2, 0)  # [H, width, K]
        bias = shifted((place.reshape(h, b * t, self.width) @ r).view(h, b, t, -1)) + mask
        if torch.is_grad_enabled():
            scores = torch.baddbmm(bias.view(h * b, t, -1), content.reshape(h * b, t, -1), k.reshape(h * b, -1, self.width).transpose(1, 2))
            weights = F.dropout(torch.softmax(scores, -1), self.dropout, self.training) if self.dropout else torch.softmax(scores, -1)
            heads = weights.view(h, b, t, -1) @ v
        else:
            heads = F.scaled_dot_product_attention(content, k, v, attn_mask=bias, scale=1.0)
        return self.o(heads.permute(1, 2, 0, 3).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, o, u, w):
        super().__init__()
        self.attention, self.attention_norm = RelativeAttention(o, u, w), nn.LayerNorm(o.d)
        self.w1, self.w2, self.ffn_norm = nn.Linear(o.d, o.f), nn.Linear(o.f, o.d), nn.LayerNorm(o.d)
        self.dropout, self.relu_dropout = nn.Dropout(o.residual_dropout), nn.Dropout(o.relu_dropout)

    def forward(self, x, memory, distances, mask):
        x = self.attention_norm(x + self.dropout(self.attention(x, memory, distances, mask)))
        return self.ffn_norm(x + self.dropout(self.w2(self.relu_dropout(F.relu(self.w1(x))))))


class TransformerXl(nn.Module):
    """Post-norm; one matrix for input and output."""

    def __init__(self, o):
        super().__init__()
        self.options = o
        self.embedding = nn.Embedding(o.vocabulary, o.d)
        self.output_bias = nn.Parameter(torch.zeros(o.vocabulary))
        u, w = (nn.Parameter(torch.empty(o.heads, o.d // o.heads)) for _ in range(2))
        self.layers = nn.ModuleList(Layer(o, u, w) for _ in range(o.layers))
        self.dropout = nn.Dropout(o.residual_dropout)
        longest = max(o.memory + o.segment, o.evaluate_memory + o.evaluate_segment)
        angles = torch.arange(longest)[:, None] / 10000 ** (torch.arange(0, o.d, 2) / o.d)
        self.register_buffer("distances", torch.cat([angles.sin(), angles.cos()], 1).flip(0), persistent=False)
        self.masks = {}
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("norm.weight"):
                nn.init.normal_(parameter, mean=1, std=0.02)
            else:
                nn.init.zeros_(parameter)

    def mask(self, t, k):
        if (t, k) not in self.masks:
            self.masks[t, k] = torch.full((t, k), -math.inf).triu(k - t + 1)
        return self.masks[t, k]

    def forward(self, tokens, labels, memories, limit):
        """tokens, labels [B, T]; memories: of each layer [B, up to `limit`, D] → mean cross-entropy, the next memories"""
        x = self.dropout(self.embedding(tokens) * math.sqrt(self.options.d))
        count = memories[0].shape[1] + tokens.shape[1]
        distances, mask = self.dropout(self.distances[-count:]), self.mask(tokens.shape[1], count)
        kept = []
        for layer, memory in zip(self.layers, memories):
            kept.append(torch.cat([memory, x.detach()], 1)[:, -limit:] if limit else memory)
            x = layer(x, memory, distances, mask)
        logits = F.linear(self.dropout(x), self.embedding.weight, self.output_bias)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=self.options.smoothing), kept

    def no_memories(self, streams):
        return [torch.zeros(streams, 0, self.options.d)] * len(self.layers)


# --- training and evaluation --------------------------------------------------------------------------------------------------------
def segments(text, streams, segment):
    """[(tokens, labels)] of a pass, the last as long as what remains."""
    length = len(text) // streams
    text = text[:streams * length].view(streams, length)
    return [(text[:, at:at + segment][:, :length - 1 - at].contiguous(), text[:, at + 1:at + 1 + segment].contiguous())
            for at in range(0, length - 1, segment)]


class Trainer:
    def __init__(self, options):
        torch.manual_seed(options.seed)
        self.options, self.model = options, TransformerXl(options)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.0, betas=options.betas, eps=options.adam_eps, fused=True)
        self.memories = self.model.no_memories(options.streams)

    def update(self, tokens, labels, rate):
        self.optimizer.zero_grad(set_to_none=True)
        loss, self.memories = self.model(tokens, labels, self.memories, self.options.memory)
        loss.backward()
        if self.options.clip_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()
        return loss

    def timed(self, batch, count):
        """Seconds of each of `count` updates at a rate of 0, as `tearless-engine bench` makes them."""
        times = [time.perf_counter()]
        for _ in range(count):
            self.update(*batch, 0.0)
            times.append(time.perf_counter())
        return [after - before for before, after in zip(times, times[1:])]

    def train(self, text, updates):
        batches, losses = segments(text, self.options.streams, self.options.segment), []
        for i in range(updates):
            if i % len(batches) == 0:
                self.memories = self.model.no_memories(self.options.streams)
            losses.append(self.update(*batches[i % len(batches)], self.options.rate(i + 1, updates)).item() / math.log(2))
        return losses

    @torch.no_grad()
    def evaluate(self, text):
        o, model = self.options, self.model.eval()
        batches = segments(text, o.evaluate_streams, o.evaluate_segment)
        start = time.perf_counter()
        memories, nats, symbols = model.no_memories(o.evaluate_streams), 0.0, 0
        for tokens, labels in batches:
            loss, memories = model(tokens, labels, memories, o.evaluate_memory)
            nats, symbols = nats + loss.item() * labels.numel(), symbols + labels.numel()
        seconds = time.perf_counter() - start
        model.train()
        return {"seconds": seconds, "symbols": symbols, "bpc": nats / symbols / math.log(2)}


def read_text(file, options):
    """The bytes of a file but line feeds, numbered in their order: all `options.vocabulary` of them must occur."""
    found = torch.frombuffer(bytearray(pathlib.Path(file).read_bytes().replace(b"\n", b"")), dtype=torch.uint8)
    types, text = found.unique(return_inverse=True)
    if len(types) != options.vocabulary:
        sys.exit(f"peer: {file}: has {len(types)} kinds of bytes where --vocabulary says {options.vocabulary}")
    return text


# --- talking ------------------------------------------------------------------------------------------------------------------------
def say(answer):
    print(json.dumps(answer), flush=True)


def self_check(options):
    """The loss and its gradients, with an empty, a part of a, and a full memory, against a score for each pair of a query and a key with
    the vector of their distance looked up."""
    def attention(self, x, memory, distances, mask):
        every = torch.cat([memory, x], 1)
        split = lambda y: y.unflatten(-1, (self.heads, self.width))
        q, (k, v), r = split(self.qkv(x).chunk(3, -1)[0]), (split(y) for y in self.qkv(every).chunk(3, -1)[1:]), split(self.r(distances)).flip(0)
        apart = torch.arange(x.shape[1])[:, None] + memory.shape[1] - torch.arange(every.shape[1])
        scores = torch.einsum("bihw,bjhw->bhij", q + self.u, k) + torch.einsum("bihw,ijhw->bhij", q + self.w, r[apart.clamp(min=0)])
        weights = torch.softmax((scores / self.width**0.5).masked_fill(apart < 0, -math.inf), -1)
        return self.o(torch.einsum("bhij,bjhw->bihw", weights, v).flatten(2))

    torch.set_default_dtype(torch.float64)
    fast, worst = RelativeAttention.forward, 0.0
    text = torch.randint(options.vocabulary, (5 * options.segment * options.streams,), generator=torch.Generator().manual_seed(7))
    found = []
    for RelativeAttention.forward in (fast, attention):
        model = Trainer(options).model.eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(5)  # weights of attention that are far from equal
        memories = model.no_memories(options.streams)
        for tokens, labels in segments(text, options.streams, options.segment)[:4]:
            loss, memories = model(tokens, labels, memories, options.memory)
            model.zero_grad()
            loss.backward()
            found.append([loss.detach(), *(parameter.grad for parameter in model.parameters())])
    for a, b in zip(found[:4], found[4:]):
        worst = max(worst, *(float((x - y).abs().max() / y.abs().max().clamp_min(1e-6)) for x, y in zip(a, b)))
    print(f"loss and gradients against scores of single pairs: relative difference {worst:.1e}")
    return 0 if worst < 1e-8 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="settings of the engine: [model], [evaluate], [train]")
    parser.add_argument("--vocabulary", type=int, required=True, metavar="V")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--self-check", action="store_true", help="check the relative shift, and time nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    o = Settings(arguments.config, read_settings(arguments.config), arguments.vocabulary)
    if arguments.self_check:
        return self_check(o)

    trainer = Trainer(o)
    generator = torch.Generator().manual_seed(o.seed)
    tokens = torch.randint(o.vocabulary, (o.streams, o.segment + 1), generator=generator)
    batch = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    trainer.timed(batch, WARM_UP_UPDATES + -(-o.memory // o.segment))
    ready = {"ready": True, "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
             "torch": torch.__version__, "seed": o.seed}
    if not arguments.turns:
        seconds = sorted(trainer.timed(batch, 20))
        say(ready | {"median_ms": 1e3 * seconds[len(seconds) // 2]})
        return 0
    say(ready)
    for line in sys.stdin:
        request = json.loads(line)
        if "updates" in request:
            say({"seconds": trainer.timed(batch, request["updates"])})
        elif "train" in request:
            trainer = Trainer(o)
            say({"bpc": trainer.train(read_text(request["text"], o), request["train"])})
        else:
            say(trainer.evaluate(read_text(request["text"], o)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
