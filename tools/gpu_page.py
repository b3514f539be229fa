#!/usr/bin/env python3
"""gpu_page.py RESULTS GPU: collects the results of tools/gpu_suite.sh from a folder into gpu.json and the page gpu.md, with the goals."""

import json
import pathlib
import sys


BENCHES = ("bench_eager", "bench_compiled")
BANDWIDTH = {"H200": 4800, "H100 80GB HBM3": 3350, "A100-SXM4-80GB": 2039}  # GB/s, as NVIDIA gives them


def read(file):
    try:
        return json.loads(file.read_text())
    except (OSError, json.JSONDecodeError):
        return None


def goal(reached):
    return "reached" if reached else "missed"


def main(results, gpu):
    document = {"gpu": gpu, "tests": {}, "kernels": read(results / "kernels.json"), "steps": {},
                "bench": [read(results / f"{part}.json") for part in BENCHES]}
    for file in sorted(results.glob("test_*.json")):
        if report := read(file):
            skipped = sum(case.get("result") == "SKIPPED" for suite in report["testsuites"] for case in suite["testsuite"])
            document["tests"][file.stem] = {"tests": report["tests"], "failures": report["failures"], "skipped": skipped}
    for file in sorted(results.glob("step_*.json")):
        document["steps"][file.stem.removeprefix("step_")] = read(file)

    page = [f"# On {gpu}", "", "| test program | tests | failures | skipped |", "|---|---|---|---|"]
    page += [f"| {name} | {t['tests']} | {t['failures']} | {t['skipped']} |" for name, t in document["tests"].items()]
    if kernels := document["kernels"]:
        page += ["", "## Single kernels (bf16 rows of 512 channels, 1 GiB)", "", "| kernel | ms | GB/s | share of copy |", "|---|---|---|---|"]
        page += [f"| {name} | {1e3 * k['seconds']:.3f} | {k['gigabytes_per_second']:.0f} | {100 * k['share_of_copy']:.0f} % |"
                 for name, k in kernels.items()]
        nominal = next((rate for name, rate in BANDWIDTH.items() if name in gpu), None)
        if nominal:
            share = kernels["LayerNorm"]["gigabytes_per_second"] / nominal
            page += ["", f"LayerNorm: {100 * share:.0f} % of {nominal} GB/s (goal 88 %): {goal(share >= 0.88)}."]
        clip_adam = 1e3 * kernels["clip + Adam"]["seconds"]
        page += ["", f"Clip and Adam: {clip_adam:.3f} ms (goal 0.43): {goal(clip_adam <= 0.43)}."]
    if any(document["steps"].values()):
        page += ["", "## The base model, batches of 4,096 rows a side", "",
                 "| precision | step | tokens/s | of matmuls alone | sentences/s, beam 4 |", "|---|---|---|---|---|"]
        for precision, step in document["steps"].items():
            if not step:
                continue
            decode = step["decode"]
            page += [f"| {precision} | {1e3 * step['step_seconds']:.2f} ms | {step['tokens_per_second']:.0f} | "
                     f"{100 * step['matmul_floor_seconds'] / step['step_seconds']:.0f} % | {decode['sentences'] / decode['seconds']:.0f} |"]
        if step := document["steps"].get("bf16"):
            rate = step["decode"]["sentences"] / step["decode"]["seconds"]
            page += ["", f"Step in bf16: goal 3.7 ms, {goal(step['step_seconds'] <= 3.7e-3)}. Search: goal 8,000 sentences/s, {goal(rate >= 8000)}."]
    text = "\n".join(page) + "\n\n"
    for part in ("sweep", *BENCHES):
        file = results / f"{part}.md"
        if file.exists():
            text += file.read_text() + "\n"
    (results / "gpu.md").write_text(text)
    (results / "gpu.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
