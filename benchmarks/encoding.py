"""Embedding pictures and captions against the network alone, and where the rest of the time goes.

``DIPTYCH_BENCH_PICTURES=FOLDER`` takes real pictures; ``DIPTYCH_BENCH_LARGE=1`` adds ViT-L/14.

A processor reads, decodes and prepares pictures on the cores that compute the network, so that no
pipeline can be faster than both together: the floor is the forward pass plus the preparation alone, with
all cores. On a graphics card the preparation hides behind the network instead.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.encoding_subjects import captions_like_flickr, clip, mobilenet, pictures, pictures_are
from benchmarks.table import Line, interleaved, ratio
from diptych.core.processes import keep_freed_memory
from diptych.data.collection import Collection
from diptych.data.loading import read_ahead
from diptych.encoders.dual_encoder import unit_rows
from diptych.encoders.encode import encode_collection

__all__ = ["measure"]

BATCH = 64
RUNS = 3
CAPTIONS = 512


def _forward(encoder: Any, pixels: torch.Tensor) -> np.ndarray:
    """The network alone, as the encoder lays out its pictures."""
    with torch.inference_mode():
        if hasattr(encoder, "pixel_features"):
            rows: torch.Tensor = encoder.pixel_features(pixels)
        else:
            rows = encoder.model.image(pixels.to(memory_format=torch.channels_last))
        return rows.numpy()


def _pictures(name: str, encoder: Any, number: int, folder: Path) -> list[Line]:
    """One encoder: the whole of :func:`encode_collection`, its floor, and the parts."""
    collection = pictures(number, folder)
    some = [encoder.prepared(collection.item(row), str(row)) for row in range(min(BATCH, number))]
    pixels = torch.from_numpy(np.stack(some))
    batches = -(-number // BATCH)
    fresh = count()

    def bare() -> None:
        for _ in range(batches):
            _forward(encoder, pixels)

    def prepare() -> None:
        for _ in read_ahead(lambda row: encoder.prepared(collection.item(row), str(row)), range(number)):
            pass

    def whole() -> None:
        encode_collection(encoder, collection, folder / f"embedded-{next(fresh)}")

    seconds, alone, preparing = interleaved(RUNS, whole, bare, prepare)
    floors = [a + b for a, b in zip(alone, preparing, strict=True)]
    found, floor, reached = ratio(alone, seconds), ratio(alone, floors), ratio(floors, seconds)
    rate = number / statistics.median(seconds)
    per_picture = 1000 * statistics.median(alone) / number
    how = (
        f"{number} {pictures_are()}, batches of {BATCH}; files to finished folder, fingerprints included; "
        f"medians of {RUNS} interleaved rounds"
    )
    return [
        Line(
            f"embedding pictures ÷ bare forward pass, {name}",
            f"{found:.2f} ({rate:.1f} pictures/s); decoding and resizing on the same cores leave {floor:.2f}",
            "≥ 0.9",
            found >= 0.9,
            how,
        ),
        Line(
            f"embedding pictures ÷ forward pass and preparation, {name}",
            f"{reached:.2f}",
            "≥ 0.95",
            reached >= 0.95,
            "as above; the preparation alone: files read, decoded, resized and normalised by all cores",
        ),
        Line(
            f"where a picture's time goes, {name}",
            f"{_parts(collection, encoder, folder)}, forward pass {per_picture:.1f} ms",
            "(stated)",
            True,
            "one thread each, medians; the forward pass with all of them, per picture of a batch",
        ),
    ]


def _parts(collection: Collection, encoder: Any, folder: Path) -> str:
    """Milliseconds per picture of every step, each alone and in one thread."""
    number = min(BATCH, collection.n_images)
    items = [collection.item(row) for row in range(number)]
    prepared = [encoder.prepared(item, "x") for item in items]
    rows = np.ones((number, encoder.width), dtype=np.float32)
    steps: dict[str, Callable[[], Any]] = {
        "fingerprint": lambda: [collection.source.content(row) for row in range(number)],
        "decode": lambda: [collection.item(row) for row in range(number)],
        "resize and normalise": lambda: [encoder.prepared(item, "x") for item in items],
        "stack": lambda: np.stack(prepared),
        "unit rows": lambda: unit_rows(rows, "image", range(number)),
    }
    found = [1000 * statistics.median(one) / number for one in interleaved(5, *steps.values())]
    return ", ".join(f"{name} {value:.2f}" for name, value in zip(steps, found, strict=True))


def _two_processes(encoder: Any, number: int, folder: Path) -> list[Line]:
    collection = pictures(number, folder)
    fresh = count()

    def embed(processes: int) -> None:
        place = folder / f"shared-{next(fresh)}"
        encode_collection(encoder, collection, place, processes=processes, accelerator="cpu")

    one, two = interleaved(1, lambda: embed(1), lambda: embed(2))
    begun = time.perf_counter()
    encode_collection(
        encoder, collection.subset([0, 1, BATCH]), folder / "start", processes=2, accelerator="cpu"
    )
    start = time.perf_counter() - begun
    return [
        Line(
            "embedding pictures, time of 1 process ÷ 2 processes",
            f"{ratio(one, two):.2f}× ({statistics.median(two):.0f} s, of which about {start:.0f} s begin)",
            "(stated)",
            True,
            f"{number} {pictures_are()}, MobileNetV2, two cores for one process and one for each of two: "
            "what several gain is cards and machines, not cores",
        )
    ]


def _captions(name: str, encoder: Any) -> Line:
    """Batches of like length against batches in the given order, padded to their longest."""
    texts = captions_like_flickr(CAPTIONS)

    def given() -> None:
        with torch.inference_mode():
            for start in range(0, len(texts), 256):
                part = texts[start : start + 256]
                if hasattr(encoder, "_text_features"):
                    encoder._text_features(part)
                else:
                    tokens, lengths = encoder.model.text.inputs(part).batch(np.arange(len(part)))
                    encoder.model.text(tokens, lengths)

    sorted_, longest = interleaved(RUNS, lambda: encoder.encode_texts(texts), given)
    rate = len(texts) / statistics.median(sorted_)
    return Line(
        f"embedding captions, given order ÷ sorted by length, {name}",
        f"{ratio(longest, sorted_):.2f}× ({rate:,.0f} captions/s)",
        "(stated)",
        True,
        f"{len(texts):,} captions of 11.8 ± 3.9 words, batches of 256 padded to their longest",
    )


def measure() -> list[Line]:
    """CLIP's ViT-B/32 and a MobileNetV2; random weights take as long as trained ones."""
    keep_freed_memory()
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        vit, small = clip("ViT-B/32"), mobilenet()
        lines += _pictures("CLIP ViT-B/32", vit, 128, folder)
        lines += _pictures("MobileNetV2", small, 1024, folder)
        if os.environ.get("DIPTYCH_BENCH_LARGE"):
            lines += _pictures("CLIP ViT-L/14", clip("ViT-L/14"), 64, folder)
        lines += _two_processes(small, 1024, folder)
        lines += [_captions("CLIP's text tower", vit), _captions("GRU 1024", small)]
    return lines
