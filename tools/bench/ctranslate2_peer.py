#!/usr/bin/env python3
"""ctranslate2_peer.py RUN TOKENS: decodes the test set of a trained run with CTranslate2, for tools/bench/ctranslate2.py to time.

Writes the weights of RUN/model.safetensors as a model of CTranslate2 in a temporary folder and loads it in a compute type. TOKENS is the run's
prepared corpus (engine/data/token_file.h), of which it takes the vocabulary and the test set's source sentences. Says {"ready": true} when
it is warm, then answers each line of JSON on standard input, {"threads": "intra" or "inter", …} and arguments of translate_batch(), and
"first": n where only so many sentences are decoded, with {"seconds": s, "lines": [translations]}. "inter": each thread decodes batches of
its own; "intra": they share the work of a batch.

Start it with `python -P`: ctranslate2.py lies beside it.
"""

import argparse
import json
import pathlib
import struct
import sys
import tempfile
import time
import tomllib

import ctranslate2
import numpy
from ctranslate2.specs import TransformerSpec

TOKEN_FILE_FORMAT = 3
PAD, BOS, EOS = 0, 1, 2
POSITIONS = 1024
# What the model below is. Settings at these values may be missing from run.toml.
MODEL = {"model.placement": "pre", "model.norm.kind": "layer_norm", "model.norm.scope": "all", "model.norm.eps_mode": "sqrt_add",
         "model.norm.deviation": "biased", "model.tied_embeddings": "all", "model.output_bias": True, "model.mask_target_vocabulary": False,
         "model.decoder_start": "bos", "model.language_embedding": False, "model.fix_norm": False, "model.positions.form": "interleaved",
         "model.positions.first": 0, "model.embedding_scale": "sqrt_d", "text.vocabulary": "joint", "text.kind": "bpe"}
DEFAULT_EPS = 1e-5


def fail(message):
    sys.exit(f"ctranslate2_peer: {message}")


# --- what the engine left --------------------------------------------------------------------------------------------------------
class TokenFile:
    """Lists of numbers and texts, each after its size in bytes."""

    def __init__(self, file):
        header, self.rest = file.read_bytes().split(b"\n", 1)
        header = json.loads(header)
        if header["format"] != TOKEN_FILE_FORMAT:
            fail(f"{file} has format {header['format']}; this program knows {TOKEN_FILE_FORMAT}")
        narrow = numpy.uint16 if header["vocabulary"] <= 65535 else numpy.int32
        self.bytes()  # the sub-word model
        self.pieces = self.texts()
        self.bytes()  # which of them the target side has
        for _ in range(4):  # train and dev, source and target
            self.lines(narrow)
        self.test = self.lines(narrow)

    def bytes(self):
        size, = struct.unpack_from("<Q", self.rest)
        taken, self.rest = self.rest[8:8 + size], self.rest[8 + size:]
        return taken

    def numbers(self, kind):
        return numpy.frombuffer(self.bytes(), kind)

    def texts(self):
        ends = numpy.cumsum(self.numbers(numpy.uint64)).tolist()
        spelled = self.bytes()
        return [spelled[begin:end].decode() for begin, end in zip([0, *ends], ends)]

    def lines(self, kind):
        offsets, tokens = self.numbers(numpy.uint64).tolist(), self.numbers(kind).tolist()
        return [tokens[begin:end] for begin, end in zip(offsets, offsets[1:])]


def read_weights(file):
    """{name: fp32 array} of a file of safetensors."""
    stored = file.read_bytes()
    size, = struct.unpack_from("<Q", stored)
    header = json.loads(stored[8:8 + size])
    header.pop("__metadata__")
    return {name: numpy.frombuffer(stored[8 + size + begin:8 + size + end], numpy.float32).reshape(entry["shape"])
            for name, entry in header.items() for begin, end in [entry["data_offsets"]]}


def read_settings(run):
    """The flat settings of run.toml; ends where the model is another than this program writes."""
    settings = {}
    for line in (run / "run.toml").read_text().splitlines():
        key, value = line.split(" = ", 1)
        settings[key] = tomllib.loads(f"value = {value}")["value"]
    for key, wanted in MODEL.items():
        if settings.get(key, wanted) != wanted:
            fail(f"{run}: {key} must be {wanted!r}, for which this program writes a model of CTranslate2")
    return settings


# --- the model of CTranslate2 ------------------------------------------------------------------------------------------------------
def sinusoids(width):
    """[POSITIONS, width]: sin and cos in turn."""
    even = numpy.arange(width) // 2 * 2
    angle = numpy.arange(POSITIONS)[:, None] / numpy.power(10000.0, even / width)
    return numpy.where(numpy.arange(width) % 2 == 0, numpy.sin(angle), numpy.cos(angle)).astype(numpy.float32)


def specification(settings, weights, pieces):
    width = settings["model.d_model"]
    spec = TransformerSpec.from_config((settings["model.encoder_layers"], settings["model.decoder_layers"]), settings["model.heads"])

    def norm(to, name):
        to.gamma, to.beta = weights[name + ".norm.gain"], weights[name + ".norm.bias"]

    def linear(to, *names):
        to.weight = numpy.concatenate([weights[name + ".weight"] for name in names])
        to.bias = numpy.concatenate([weights[name + ".bias"] for name in names])

    def feed_forward(to, name):
        norm(to.layer_norm, name)
        linear(to.linear_0, name + ".w1")
        linear(to.linear_1, name + ".w2")

    def self_attention(to, name):
        norm(to.layer_norm, name)
        linear(to.linear[0], *(f"{name}.{part}" for part in "qkv"))
        linear(to.linear[1], name + ".o")

    def cross_attention(to, name):
        norm(to.layer_norm, name)
        linear(to.linear[0], name + ".q")
        linear(to.linear[1], name + ".k", name + ".v")
        linear(to.linear[2], name + ".o")

    for stack, to in {"encoder": spec.encoder, "decoder": spec.decoder}.items():
        to.position_encodings.encodings = sinusoids(width)
        norm(to.layer_norm, f"{stack}.final")
        for number, layer in enumerate(to.layer, 1):
            self_attention(layer.self_attention, f"{stack}.{number}.self_attention")
            if stack == "decoder":
                cross_attention(layer.attention, f"{stack}.{number}.cross_attention")
            feed_forward(layer.ffn, f"{stack}.{number}.ffn")
    embedding = weights["embedding.shared"]
    # CTranslate2 multiplies the inputs by √d, as scale_embeddings is true.
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = spec.decoder.projection.weight = embedding
    bias = weights["output.bias"].copy()
    bias[[PAD, BOS]] = -1e9  # no outputs of the engine
    spec.decoder.projection.bias = bias

    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = "<unk>", pieces[BOS], pieces[EOS]
    spec.config.decoder_start_token = pieces[BOS]
    spec.config.layer_norm_epsilon = settings.get("model.norm.eps", DEFAULT_EPS)
    spec.validate()
    spec.optimize()
    return spec


def joined(pieces):
    """The line that they spell, as join_continued() of engine/data/subwords.h."""
    line = " ".join(pieces).replace("@@ ", "")
    return line.removesuffix("@@")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, metavar="RUN")
    parser.add_argument("tokens", type=pathlib.Path, metavar="TOKENS")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--type", default="float32")
    arguments = parser.parse_args()
    corpus = TokenFile(arguments.tokens)
    spec = specification(read_settings(arguments.run), read_weights(arguments.run / "model.safetensors"), corpus.pieces)
    source = [[corpus.pieces[token] for token in line] for line in corpus.test]
    with tempfile.TemporaryDirectory(prefix="ctranslate2-") as folder:
        spec.save(folder)
        kinds = [("intra", 1, arguments.threads)] + ([("inter", arguments.threads, 1)] if arguments.threads > 1 else [])
        try:
            translators = {kind: ctranslate2.Translator(folder, device=arguments.device, compute_type=arguments.type, inter_threads=inter,
                                                        intra_threads=intra) for kind, inter, intra in kinds}
        except (RuntimeError, ValueError) as error:
            fail(f"{arguments.device}, {arguments.type}: {error}")
    for translator in translators.values():
        translator.translate_batch(source[:8 * arguments.threads], max_batch_size=8)
    print(json.dumps({"ready": True, "sentences": len(source)}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        translator = translators[request.pop("threads")]
        sentences = source[:request.pop("first", None)]
        start = time.monotonic()
        results = translator.translate_batch(sentences, return_end_token=True, **request)  # EOS counts as length
        seconds = time.monotonic() - start
        outputs = [[piece for piece in result.hypotheses[0] if piece != corpus.pieces[EOS]] for result in results]
        print(json.dumps({"seconds": seconds, "lines": [joined(output) for output in outputs]}), flush=True)


if __name__ == "__main__":
    main()
