"""Does the explorer find what produced a number? A two-stage model of Flickr30k's size, published in several ways.

Numbers are made here by the published evaluation's own steps (the k best by contrastive score keep their matching
score, all other cells -100, ``argsort()[::-1]``), by nothing of ours. The explorer gets scores and numbers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.memory import peak_mb
from benchmarks.table import Line

__all__ = ["measure"]

N, PER_IMAGE, WIDTH = 1000, 5, 96
SEEDS = (0, 1, 2)


def _model(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contrastive scores, better matching scores, and the image of each text."""
    random = np.random.default_rng(seed)
    home = np.repeat(np.arange(N), PER_IMAGE)
    meaning = random.standard_normal((N, WIDTH), dtype=np.float32)

    def scores(noise: float) -> np.ndarray:
        images = meaning + 0.2 * noise * random.standard_normal((N, WIDTH), dtype=np.float32)
        texts = meaning[home] + noise * random.standard_normal((len(home), WIDTH), dtype=np.float32)
        product: np.ndarray = images @ texts.T / WIDTH
        return product

    return scores(2.6), scores(3.2), home


def _recalls(contrastive: np.ndarray, matching: np.ndarray, home: np.ndarray, k: int) -> dict[str, float]:
    """As the published evaluations of ALBEF and X-VLM count."""
    found: dict[str, float] = {}
    for side, first, second in (("i2t", contrastive, matching), ("t2i", contrastive.T, matching.T)):
        table = np.full(first.shape, -100.0)
        for query, row in enumerate(first):
            best = np.argsort(-row, kind="stable")[:k]
            table[query, best] = second[query, best]
        places = []
        for query, row in enumerate(table):
            order = np.argsort(row)[::-1]
            right = home[order] == query if side == "i2t" else order == home[query]
            places.append(int(np.argmax(right)))
        for cutoff in (1, 5, 10):
            found[f"{side} R@{cutoff}"] = 100 * float(np.mean(np.asarray(places) < cutoff))
    return found


def _child() -> None:
    from diptych.evaluation.variants.explore import explore_scores

    cases = []
    for seed in SEEDS:
        contrastive, matching, home = _model(seed)
        for k in (2, 4, 128):
            first = k == 128
            columns = np.arange(0, len(home), PER_IMAGE) if first else np.arange(len(home))
            exact = _recalls(contrastive[:, columns], matching[:, columns], home[columns], k)
            target = {name: round(value, 2) for name, value in exact.items()}
            before, begun = peak_mb(forget=True), time.perf_counter()
            found = explore_scores(contrastive, home, target, matching=matching)
            cases.append(
                {
                    "made": f"k_test = {k}" + (", captions = first" if first else ""),
                    "found": found.explanations[0].line() if found.explanations else "nothing",
                    "exact": [one.line() for one in found.exact_explanations],
                    "seconds": time.perf_counter() - begun,
                    "megabytes": peak_mb() - before,
                    "target": target,
                    "tried": len(found.variants),
                }
            )
    print(json.dumps(cases))


def measure() -> list[Line]:
    """In a process of its own, so that its peak memory is its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.protocol"], check=True, capture_output=True, text=True
    )
    cases = json.loads(done.stdout)
    lines = []
    size = f"{N:,} × {N * PER_IMAGE:,} scores, seeds {SEEDS[0]} to {SEEDS[-1]}"
    for made in dict.fromkeys(case["made"] for case in cases):
        own = [case for case in cases if case["made"] == made]
        right = [sorted(case["found"].split(", ")) == sorted(made.split(", ")) for case in own]
        printed = own[0]["target"]
        shown = " / ".join(f"{printed[name]:.1f}" for name in sorted(printed, key=_order))
        lines.append(
            Line(
                f"protocol explorer, numbers made with {made}",
                f"first explanation right {sum(right)} of {len(right)} times ({own[0]['found']}); "
                f"{own[0]['tried']} variants in {max(case['seconds'] for case in own):.1f} s",
                "all",
                all(right),
                f"{size}; published steps; seed 0 prints i2t and t2i R@1/5/10 {shown}",
            )
        )
    return lines


def _order(name: str) -> tuple[str, int]:
    side, cutoff = name.split(" R@")
    return side, int(cutoff)


if __name__ == "__main__":
    _child()
