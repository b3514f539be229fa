#!/usr/bin/env python3
"""peer.py CONFIG.toml --vocabulary V --lengths FILE: the engine's model in plain PyTorch, for tools/bench/compare.py to time.

As a careful user would write it today: nn.Linear, nn.Embedding, F.layer_norm, F.cross_entropy, clip_grad_norm_, torch.optim.Adam;
autograd; no cleverness beyond choosing, where PyTorch offers several plain ways, the one measured to be the fastest. Parameters are as
many as the engine's, and so is the work of an update: forward with dropout, loss, backward, clipping, Adam.

--form padded   sentences side by side as [B, S], with masks where lengths differ
--form packed   the same sentences as rows [T] without padding; only attention sees them side by side
--variant eager on the CPU in fp32, on CUDA in bf16 (autocast) with scaled_dot_product_attention and fused Adam
--variant compile, compile-graphs   the same under torch.compile, its mode default or reduce-overhead (CUDA graphs)
--variant compile-layers   layers alone are compiled, once for all that are alike: a fraction of the time that the whole model takes to compile

--turns speaks the protocol of `tearless-engine bench --turns`: a line {"ready": true, …} when warm; then for each line on standard
input one line of answer, {"updates": N} → {"seconds": [N numbers]} and {"decode": true} → {"seconds": s, "sentences": n, "tokens": t};
{"decode": true, "search": "cached"} is a search with key/value caches instead of one that runs whole prefixes again.
"""

import argparse
import json
import math
import sys
import time

from layers import (BOS, EOS, FIRST_WORD, PAD, Attention, CommonSettings, EncoderLayer, FeedForward, F, Side, attend, nn, read_lengths,
                    read_settings, sinusoids, torch)

import classifiers

WARM_UP_UPDATES = 3


# --- settings and batches ---------------------------------------------------------------------------------------------------------
class Settings(CommonSettings):
    """Those of task = "translate"."""

    def __init__(self, file, settings, vocabulary):
        super().__init__(file, settings, vocabulary, {
            "model.tied_embeddings": ("all", "all"), "model.output_bias": (True, True), "model.mask_target_vocabulary": (True, False),
            "model.dropout.word": (0.1, 0)}, (512, 2048, 8))
        model, decode = settings.get("model", {}), settings.get("decode", {})
        dropout = model.get("dropout", {})
        self.encoder_layers, self.decoder_layers = model.get("encoder_layers", 6), model.get("decoder_layers", 6)
        self.residual_dropout, self.attention_dropout, self.relu_dropout = (
            dropout.get(site, 0.3) for site in ("residual", "attention", "relu"))
        self.beam, self.alpha = decode.get("beam", 4), decode.get("alpha", 0.6)
        self.max_extra, self.batch_tokens = decode.get("max_extra", 50), decode.get("batch_tokens", 4096)


def random_sentences(lengths, vocabulary, generator):
    """[(source ids, target ids without EOS)]: words drawn evenly."""
    def words(count):
        return torch.randint(FIRST_WORD, vocabulary, (count,), generator=generator).tolist()
    return [(words(s - 1) + [EOS], words(t - 1)) for s, t in lengths]


class Batch:
    def __init__(self, sentences, packed, device):
        self.source = Side([source for source, _ in sentences], packed, device)
        self.target = Side([[BOS] + target for _, target in sentences], packed, device)
        self.labels = Side([target + [EOS] for _, target in sentences], packed, device).tokens.flatten()


# --- the model --------------------------------------------------------------------------------------------------------------------
class DecoderLayer(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.attention, self.attention_norm = Attention(o, cross=False), nn.LayerNorm(o.d)
        self.cross, self.cross_norm = Attention(o, cross=True), nn.LayerNorm(o.d)
        self.ffn, self.ffn_norm = FeedForward(o), nn.LayerNorm(o.d)
        self.dropout = nn.Dropout(o.residual_dropout)

    def forward(self, x, target, memory, source, causal):
        x = x + self.dropout(self.attention(self.attention_norm(x), target, causal))
        x = x + self.dropout(self.cross.cross(self.cross_norm(x), target, memory, source))
        return x + self.dropout(self.ffn(self.ffn_norm(x)))


class Transformer(nn.Module):
    """Pre-norm with final norms; one matrix for source input, target input and output."""

    def __init__(self, o, longest):
        super().__init__()
        self.options = o
        self.embedding = nn.Embedding(o.vocabulary, o.d)
        self.output_bias = nn.Parameter(torch.zeros(o.vocabulary))
        self.encoder = nn.ModuleList(EncoderLayer(o) for _ in range(o.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(o) for _ in range(o.decoder_layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(o.d), nn.LayerNorm(o.d)
        self.dropout = nn.Dropout(o.residual_dropout)
        self.register_buffer("places", sinusoids(longest, o.d), persistent=False)
        self.register_buffer("causal", torch.full((longest, longest), -math.inf).triu(1), persistent=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_normal_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=o.d**-0.5)

    def embed(self, tokens, positions):
        x = self.embedding(tokens) * math.sqrt(self.options.d)
        return self.dropout(x + F.embedding(positions, self.places))

    def encode(self, source):
        x = self.embed(source.tokens, source.positions)
        for layer in self.encoder:
            x = layer(x, source)
        return self.encoder_norm(x)

    def decode(self, target, memory, source):
        """→ hidden rows, shaped like target.tokens with D behind."""
        causal = self.causal[:target.longest, :target.longest]
        x = self.embed(target.tokens, target.positions)
        for layer in self.decoder:
            x = layer(x, target, memory, source, causal)
        return self.decoder_norm(x)

    def logits(self, x):
        return F.linear(x, self.embedding.weight, self.output_bias)

    def forward(self, batch):
        """→ smoothed cross-entropy, its mean over the labels that are not PAD."""
        logits = self.logits(self.decode(batch.target, self.encode(batch.source), batch.source))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), batch.labels, ignore_index=PAD,
                               label_smoothing=self.options.smoothing)


# --- training ---------------------------------------------------------------------------------------------------------------------
class Trainer:
    def __init__(self, model, batches, options, variant):
        self.model, self.batches, self.options = model, batches, options
        self.cuda = options.device == "cuda"
        self.loss = model
        if variant != "eager":
            # Shapes that differ are compiled once as sizes that vary, which is what torch.compile does unless told otherwise.
            torch._dynamo.config.recompile_limit = 4 * len(batches)
        if variant == "compile-layers":
            for layer in (*model.encoder, *model.decoder):
                layer.compile()
        elif variant != "eager":
            self.loss = torch.compile(model, mode="reduce-overhead" if variant == "compile-graphs" else None)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=options.betas, eps=options.adam_eps, fused=True)
        self.done = 0

    def update(self):
        batch = self.batches[self.done % len(self.batches)]
        self.done += 1
        self.optimizer.zero_grad(set_to_none=True)
        if self.cuda:
            with torch.autocast("cuda", torch.bfloat16):
                loss = self.loss(batch)
        else:
            loss = self.loss(batch)
        loss.backward()
        if self.options.clip_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
        self.optimizer.param_groups[0]["lr"] = self.options.rate(self.done)
        self.optimizer.step()
        return loss

    def timed(self, count):
        """Seconds of each of `count` updates."""
        if not self.cuda:
            times = [time.perf_counter()]
            for _ in range(count):
                self.update()
                times.append(time.perf_counter())
            return [after - before for before, after in zip(times, times[1:])]
        # Events, so that the processor may run ahead of the device as it does in training.
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        torch.cuda.synchronize()
        events[0].record()
        for event in events[1:]:
            self.update()
            event.record()
        torch.cuda.synchronize()
        return [before.elapsed_time(after) / 1e3 for before, after in zip(events, events[1:])]


# --- beam search ------------------------------------------------------------------------------------------------------------------
class Prefixes:
    """Straightforward: every step runs all prefixes through the decoder again."""

    def __init__(self, model, memory, source, beam):
        self.model = model
        self.memory = memory.repeat_interleave(beam, 0)
        self.source = Repeated(source, beam)

    def log_probabilities(self, tokens):
        """tokens [N, t] → [N, V] of the next token."""
        target = Prefix(tokens)
        hidden = self.model.decode(target, self.memory, self.source)[:, -1]
        return torch.log_softmax(self.model.logits(hidden).float(), -1)

    def reorder(self, parents):
        pass


class Cached:
    """With key/value caches: every step runs the last tokens alone."""

    def __init__(self, model, memory, source, beam):
        self.model = model
        self.key_mask = Repeated(source, beam).key_mask
        self.memory = [[part.repeat_interleave(beam, 0) for part in layer.cross.split(layer.cross.kv(memory), 2)]
                       for layer in model.decoder]
        self.past = [None] * len(model.decoder)

    def log_probabilities(self, tokens):
        t = tokens.shape[1] - 1
        x = self.model.embed(tokens[:, t:], torch.full((1, 1), t, device=tokens.device))  # [N, 1, D]
        for i, layer in enumerate(self.model.decoder):
            attention = layer.attention
            q, k, v = attention.split(attention.qkv(layer.attention_norm(x)), 3)
            if self.past[i] is not None:
                k, v = (torch.cat([old, new], 2) for old, new in zip(self.past[i], (k, v)))
            self.past[i] = (k, v)
            x = x + attention.o(attention.merge(attend(q, k, v, None, None, 0.0)))
            cross = layer.cross
            (q,) = cross.split(cross.q(layer.cross_norm(x)), 1)
            x = x + cross.o(cross.merge(attend(q, *self.memory[i], self.key_mask, None, 0.0)))
            x = x + layer.ffn(layer.ffn_norm(x))
        return torch.log_softmax(self.model.logits(self.model.decoder_norm(x))[:, 0].float(), -1)

    def reorder(self, parents):
        self.past = [tuple(part.index_select(0, parents) for part in pair) for pair in self.past]


class Repeated:
    """A padded source side, each sentence `beam` times."""

    packed = False

    def __init__(self, source, beam):
        self.key_mask = None if source.key_mask is None else source.key_mask.repeat_interleave(beam, 0)

    def side_by_side(self, x):
        return x


class Prefix(Repeated):
    """Hypotheses of equal length as a padded target side."""

    key_mask = None

    def __init__(self, tokens):
        self.tokens, self.longest = tokens, tokens.shape[1]
        self.positions = torch.arange(self.longest, device=tokens.device).expand_as(tokens)

    def as_rows(self, x):
        return x


@torch.no_grad()
def beam_search(model, source, limits, search):
    """Best hypothesis of each sentence without EOS, as lists. Scores are Σ log p / ((5 + length) / 6)^α; a finished hypothesis keeps
    its score and its place in the beam; a sentence ends when its beam is finished or has `limits` tokens."""
    o, device, sentences = model.options, source.tokens.device, source.count
    decoder = search(model, model.encode(source), source, o.beam)
    tokens = torch.full((sentences * o.beam, 1), BOS, device=device)
    sums = torch.full((sentences, o.beam), -math.inf, device=device)
    sums[:, 0] = 0  # at first all hypotheses of a sentence are the same one
    scores = sums.clone()
    ended = torch.zeros(sentences, o.beam, dtype=torch.bool, device=device)  # finished, or at the limit
    limits = torch.tensor(limits, device=device)
    first = torch.arange(sentences, device=device)[:, None] * o.beam
    for length in range(1, int(limits.max()) + 1):
        log_p = decoder.log_probabilities(tokens).view(sentences, o.beam, -1)
        if length == 1:
            log_p[:, :, EOS] = -math.inf
        next_sums = sums[:, :, None] + log_p
        next_scores = next_sums / ((5 + length) / 6) ** o.alpha
        # A finished hypothesis is extended in one way only, with PAD, at its old score.
        next_scores.masked_fill_(ended[:, :, None], -math.inf)
        next_scores[:, :, PAD] = torch.where(ended, scores, -math.inf)
        next_sums[:, :, PAD] = sums
        scores, chosen = next_scores.flatten(1).topk(o.beam)
        sums = next_sums.flatten(1).gather(1, chosen)
        words = chosen % o.vocabulary
        parents = chosen // o.vocabulary + first  # [B, beam], rows of tokens
        ended = ended.flatten()[parents] | (words == EOS) | (length >= limits)[:, None]
        tokens = torch.cat([tokens[parents.flatten()], words.view(-1, 1)], 1)
        if ended.all():
            break
        decoder.reorder(parents.flatten())
    best = tokens.view(sentences, o.beam, -1)[torch.arange(sentences, device=device), scores.argmax(1)]
    return [[token for token in row if token not in (BOS, EOS, PAD)] for row in best.tolist()]


SEARCHES = {"straightforward": Prefixes, "cached": Cached}


def decoding_batches(sources, batch_tokens):
    """As the engine cuts them: by length, count × 2 × longest source ≤ batch_tokens."""
    batches = []
    for source in sorted(sources, key=len):
        if not batches or (len(batches[-1]) + 1) * 2 * len(source) > batch_tokens:
            batches.append([])
        batches[-1].append(source)
    return batches


def translate(model, sources, search):
    """All best hypotheses, in the order of decoding."""
    o = model.options
    outputs = []
    for batch in decoding_batches(sources, o.batch_tokens):
        side = Side(batch, packed=False, device=o.device)
        outputs += beam_search(model, side, [len(source) + o.max_extra for source in batch], SEARCHES[search])
    return outputs


def timed_translation(trainer, sources, search):
    model = trainer.model.eval()
    start = time.perf_counter()
    with torch.autocast("cuda", torch.bfloat16, enabled=trainer.cuda):
        outputs = translate(model, sources, search)
    if trainer.cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    model.train()
    return {"seconds": seconds, "sentences": len(outputs), "tokens": sum(map(len, outputs))}


# --- talking ----------------------------------------------------------------------------------------------------------------------
def say(answer):
    print(json.dumps(answer), flush=True)


def self_check():
    """Packed equals padded, loss and gradients, over ragged and even batches; one layer's attention equals torch's own; both searches
    find the same, and a beam of 1 is greedy. Without dropout."""
    class Small(Settings):
        def __init__(self):
            self.vocabulary, self.encoder_layers, self.decoder_layers, self.d, self.f, self.heads = 50, 2, 2, 16, 24, 4
            self.residual_dropout = self.attention_dropout = self.relu_dropout = 0.0
            self.smoothing, self.beam, self.alpha, self.max_extra, self.batch_tokens = 0.1, 4, 0.6, 5, 60
            self.device = "cpu"

    worst = {}

    def compare(name, a, b):
        worst[name] = max(worst.get(name, 0.0), float((a - b).abs().max() / b.abs().max().clamp_min(1e-6)))

    generator = torch.Generator().manual_seed(7)
    torch.manual_seed(7)
    model = Transformer(Small(), 64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))  # biases and gains of their own
    ragged, even = [[3, 9], [7, 1], [1, 4], [12, 12], [5, 6]], [[6, 6]] * 4
    for lengths in (ragged, even):
        sentences = random_sentences(lengths, 50, generator)
        results = []
        for packed in (False, True):
            model.zero_grad()
            loss = model(Batch(sentences, packed, "cpu"))
            loss.backward()
            results.append((loss.detach(), [parameter.grad.clone() for parameter in model.parameters()]))
        compare("loss, packed against padded", results[1][0], results[0][0])
        for a, b in zip(results[1][1], results[0][1]):
            compare("gradients, packed against padded", a, b)

    q, k, v = (torch.randn(2, 4, 6, 8, generator=generator) for _ in range(3))
    compare("attention against torch's own", attend(q, k, v, None, model.causal[:6, :6], 0.0),
            F.scaled_dot_product_attention(q, k, v, is_causal=True))

    model.eval()
    sources = [source for source, _ in random_sentences([[n, 1] for n in (3, 9, 9, 4, 1, 6, 12)], 50, generator)]
    found = {search: translate(model, sources, search) for search in SEARCHES}
    same = found["straightforward"] == found["cached"] and len(found["cached"]) == len(sources)
    model.options.beam = 1
    for output, source in zip(translate(model, sources, "cached"), (s for b in decoding_batches(sources, 60) for s in b)):
        side = Side([source], False, "cpu")
        words = [BOS]
        while words[-1] != EOS and len(words) <= len(source) + 5:
            with torch.no_grad():
                logits = model.logits(model.decode(Side([words], False, "cpu"), model.encode(side), side)[0, -1])
            if len(words) == 1:
                logits[EOS] = -math.inf
            words.append(int(logits.argmax()))
        same = same and output == [word for word in words if word not in (BOS, EOS, PAD)]
    for name, difference in worst.items():
        print(f"{name}: relative difference {difference:.1e}")
    print("beam searches " + ("agree" if same else "DIFFER"))
    return 0 if same and all(difference < 1e-5 for difference in worst.values()) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", help="settings of the engine: [model], [train], [decode], [run]")
    parser.add_argument("--vocabulary", type=int, metavar="V")
    parser.add_argument("--lengths", metavar="FILE", help='JSON {"batches": [[[source rows, target rows], …], …]}')
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--form", choices=("padded", "packed"), default="padded")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="instead of [run] device")
    parser.add_argument("--variant", choices=("eager", "compile", "compile-graphs", "compile-layers"), default="eager")
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--self-check", action="store_true", help="check the peer against itself, and time nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.self_check:
        return self_check()
    if not (arguments.config and arguments.vocabulary and arguments.lengths):
        parser.error("CONFIG, --vocabulary and --lengths are needed")
    if arguments.vocabulary <= FIRST_WORD:
        parser.error(f"--vocabulary must be more than {FIRST_WORD}")

    settings = read_settings(arguments.config)
    task = settings.get("task", "translate")
    if task == "digits":
        options = classifiers.DigitSettings(arguments.config, settings)
    else:
        options = (classifiers.Settings if task == "classify" else Settings)(arguments.config, settings, arguments.vocabulary)
    options.device = arguments.device or options.device
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("peer: torch finds no CUDA device here: use --device cpu")
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    packed = arguments.form == "packed"
    sources = []
    if task == "digits":
        batches = [classifiers.DigitBatch(images, options.device, generator)
                   for (images,) in read_lengths(arguments.lengths, "rows", lambda rows: (rows,))]
        model = classifiers.DigitNetwork(options).to(options.device)
    elif task == "classify":
        batches = [classifiers.Batch(lengths, options.vocabulary, packed, options.device, generator)
                   for lengths in read_lengths(arguments.lengths, "rows", lambda rows: (rows,))]
        model = classifiers.SentenceClassifier(options, max(batch.source.longest for batch in batches)).to(options.device)
    else:
        pairs = read_lengths(arguments.lengths, "[source rows, target rows]", lambda pair: (pair[0], pair[1]))
        sentences = [random_sentences(lengths, options.vocabulary, generator) for lengths in pairs]
        batches = [Batch(batch, packed, options.device) for batch in sentences]
        sources = [source for batch in sentences for source, _ in batch]
        longest = max(max(batch.target.longest, batch.source.longest) for batch in batches) + options.max_extra
        model = Transformer(options, longest).to(options.device)
    trainer = Trainer(model, batches, options, arguments.variant)
    trainer.timed(WARM_UP_UPDATES if arguments.variant == "eager" else 2 * len(batches) + WARM_UP_UPDATES)
    trainer.done = 0
    ready = {"ready": True, "parameters": sum(parameter.numel() for parameter in model.parameters()),
             "form": arguments.form, "variant": arguments.variant, "torch": torch.__version__, "seed": options.seed}
    if trainer.cuda:
        ready["gpu"] = torch.cuda.get_device_name()

    if not arguments.turns:
        seconds = sorted(trainer.timed(5 * len(batches)))
        say(ready | {"median_ms": 1e3 * seconds[len(seconds) // 2]})
        return 0
    say(ready)
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("decode"):
            say(timed_translation(trainer, sources, request.get("search", "straightforward")))
        else:
            say({"seconds": trainer.timed(request["updates"])})
    return 0


if __name__ == "__main__":
    sys.exit(main())
