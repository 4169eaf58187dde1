"""Recall both ways at MS COCO's size against the bare matrix product of the same size."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from benchmarks.memory import peak_mb
from benchmarks.table import Line, interleaved, ratio
from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth

__all__ = ["measure"]

N_IMAGES, PER_IMAGE, WIDTH = 5000, 5, 256


def _inputs() -> tuple[np.ndarray, np.ndarray, GroundTruth]:
    """Captions near their image: recall is neither nothing nor everything."""
    random = np.random.default_rng(0)
    images = random.standard_normal((N_IMAGES, WIDTH), dtype=np.float32)
    noise = random.standard_normal((N_IMAGES * PER_IMAGE, WIDTH), dtype=np.float32)
    texts = np.repeat(images, PER_IMAGE, axis=0) + 3.0 * noise
    for rows in (images, texts):
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return images, texts, GroundTruth.from_caption_image(np.repeat(np.arange(N_IMAGES), PER_IMAGE), N_IMAGES)


def _child() -> None:
    images, texts, truth = _inputs()
    product_block = np.empty((500, len(texts)), dtype=np.float32)

    def product() -> None:
        for start in range(0, N_IMAGES, 500):
            np.matmul(images[start : start + 500], texts.T, out=product_block)

    before = peak_mb(forget=True)
    result = evaluate(images, texts, truth, measures=("R@1", "R@5", "R@10", "rsum", "medr", "meanr"))
    above = peak_mb() - before
    recall, bare = interleaved(
        7,
        lambda: evaluate(images, texts, truth, measures=("R@1", "R@5", "R@10", "rsum")),
        product,
    )
    print(json.dumps({"ratio": ratio(recall, bare), "megabytes": above, "rsum": result.values()["rsum"],
                      "seconds": sorted(recall)[3]}))  # fmt: skip


def measure() -> list[Line]:
    """In a process of its own, so that its peak memory is its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.recall"], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    size = f"{N_IMAGES:,} × {N_IMAGES * PER_IMAGE:,} × {WIDTH}"
    how = f"{size}, R@1/5/10 both ways; product into one 500-row buffer"
    return [
        Line(
            "recall both ways ÷ bare product",
            f"{found['ratio']:.2f}× ({found['seconds']:.2f} s)",
            "≤ 1.3×",
            found["ratio"] <= 1.3,
            how,
        ),
        Line(
            "its peak memory above the inputs",
            f"{found['megabytes']:.0f} MB",
            "≤ 300 MB",
            found["megabytes"] <= 300,
            "peak resident set, freed memory handed back before, a process of its own",
        ),
    ]


if __name__ == "__main__":
    _child()
