#!/usr/bin/env python3
"""gpu_page.py RESULTS GPU: collects what tools/gpu_suite.sh and gpu_peers.sh left in a folder into gpu.json and the page gpu.md, with the goals."""

import json
import pathlib
import statistics
import sys


ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHES = ("bench_eager", "bench_compiled", "bench_ctranslate2")
LENGTHS = ROOT / "tools/bench/lengths"
PEAK = {"H200": {"bf16": 989.4, "tf32": 494.7, "fp32": 66.9}}  # TFLOP/s without sparsity, as NVIDIA gives them
BANDWIDTH = {"H200": 4800, "H100 80GB HBM3": 3350, "A100-SXM4-80GB": 2039}  # GB/s, as NVIDIA gives them


def read(file):
    try:
        return json.loads(file.read_text())
    except (OSError, json.JSONDecodeError):
        return None


def goal(reached):
    return "reached" if reached else "missed"


def rows_of(batches):
    """Rows of the source and of the target side of a batch, without padding, on average over those of a file of tools/bench/lengths."""
    return [statistics.mean(sum(sentence[side] for sentence in batch) for batch in json.loads((LENGTHS / f"base_cuda_{batches}.json").read_text())["batches"])
            for side in (0, 1)]


def steps_table(gpu, steps):
    """`steps`: what `bench` has measured, by precision and batches: "bf16", of `real` ones, "bf16_equal"."""
    peaks = next((rates for name, rates in PEAK.items() if name in gpu), {})
    yield "## The base model"
    yield ""
    for batches in sorted({name.partition("_")[2] or "real" for name, step in steps.items() if step}, reverse=True):
        source, target = rows_of(batches)
        yield f"Batches `{batches}` have {source:,.0f} source rows and {target:,.0f} target rows on average, without padding."
    for parameters in {step["parameters"] for step in steps.values() if step}:
        yield f"{parameters / 1e6:.1f} million parameters, 8,000 types."
    yield ""
    yield "| precision | batches | update | target tokens/s | share of the card's peak | of matmuls alone | sentences/s, beam 4 |"
    yield "|---|---|---|---|---|---|---|"
    for name, step in steps.items():
        if not step:
            continue
        precision, _, batches = name.partition("_")
        seconds, decode = step["step_seconds"], step.get("decode")
        share = f"{100e-12 * step['operations_per_update'] / seconds / peaks[precision]:.0f} %" if precision in peaks else "–"
        yield (f"| {precision} | {batches or 'real'} | {1e3 * seconds:.2f} ms | {rows_of(batches or 'real')[1] / seconds:,.0f} | {share} | "
               f"{100 * step['matmul_floor_seconds'] / seconds:.0f} % | {format(decode['sentences'] / decode['seconds'], ',.0f') if decode else '–'} |")
    if step := steps.get("bf16"):
        rate = step["decode"]["sentences"] / step["decode"]["seconds"]
        yield ""
        yield f"Update in bf16, `real`: goal 3.7 ms, {goal(step['step_seconds'] <= 3.7e-3)}. Search: goal 8,000 sentences/s, {goal(rate >= 8000)}."


def main(results, gpu):
    document = {"gpu": gpu, "tests": {}, "kernels": read(results / "kernels.json"), "steps": {},
                "bench": [read(results / f"{part}.json") for part in BENCHES]}
    for file in sorted(results.glob("test_*.json")):
        if report := read(file):
            skipped = sum(case.get("result") == "SKIPPED" for suite in report["testsuites"] for case in suite["testsuite"])
            document["tests"][file.stem] = {"tests": report["tests"], "failures": report["failures"], "skipped": skipped}
    for file in sorted(results.glob("step_*.json")):
        document["steps"][file.stem.removeprefix("step_")] = read(file)

    page = [f"# On {gpu}"]
    if document["tests"]:
        page += ["", "| test program | tests | failures | skipped |", "|---|---|---|---|"]
    page += [f"| {name} | {t['tests']} | {t['failures']} | {t['skipped']} |" for name, t in document["tests"].items()]
    if kernels := document["kernels"]:
        variant = read(results / "kernels_norm_backward.json")
        other = {"its backward, variant norm-backward": variant["its backward"]} if variant else {}
        page += ["", "## Single kernels (bf16 rows of 512 channels, 1 GiB)", "", "| kernel | ms | GB/s | share of copy |", "|---|---|---|---|"]
        page += [f"| {name} | {1e3 * k['seconds']:.3f} | {k['gigabytes_per_second']:.0f} | {100 * k['share_of_copy']:.0f} % |"
                 for name, k in {**kernels, **other}.items()]
        nominal = next((rate for name, rate in BANDWIDTH.items() if name in gpu), None)
        if nominal:
            share = kernels["LayerNorm"]["share_of_copy"]
            page += ["", f"LayerNorm: {100 * share:.0f} % of a copy (goal 90 %; a copy is {100 * kernels['copy']['gigabytes_per_second'] / nominal:.0f} % of "
                         f"{nominal} GB/s): {goal(share >= 0.9)}."]
        clip_adam = 1e3 * kernels["clip + Adam"]["seconds"]
        page += ["", f"Clip and Adam: {clip_adam:.3f} ms (goal 0.43): {goal(clip_adam <= 0.43)}."]
    if any(document["steps"].values()):
        page += ["", *steps_table(gpu, document["steps"])]
    text = "\n".join(page) + "\n\n"
    for part in ("sweep", "variants", *BENCHES):
        file = results / f"{part}.md"
        if file.exists():
            text += file.read_text() + "\n"
    (results / "gpu.md").write_text(text)
    (results / "gpu.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
