"""A search from a cold process, against importing PyTorch: processor seconds, user and system."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.table import Line

__all__ = ["measure"]

RUNS = 5
_RECIPE = """
[data.scenes]
n_train = 192
n_val = 16
n_test = 64
size = 32
[model]
width = 32
[model.image]
backbone = "test_efficientnet"
[model.image.preprocessing]
size = 32
resize = 32
[model.text]
word_width = 16
min_count = 1
[objective]
name = "infonce"
[batches]
size = 24
[[stages]]
epochs = 1
learning_rate = 1e-3
train = ["*"]
"""


def _cpu(*command: object) -> float:
    """Least processor seconds of a command, of several runs, on one thread."""
    seconds = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words, environment = list(map(str, command)), {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def measure() -> list[Line]:
    """Searches of small indexes: as sentences, as vectors, by own terms, each with all that Python imports."""
    diptych = (sys.executable, "-m", "diptych")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "recipe.toml").write_text(_RECIPE)
        for line in (
            ("train", place / "recipe.toml", "--out", place / "run"),
            ("index", place / "run", "--out", place / "dense"),
            ("sparse", "train", place / "run", "--out", place / "head", "--set", "training.epochs=1"),
            ("index", place / "head", "--out", place / "sparse"),
        ):
            subprocess.run([*diptych, *map(str, line)], check=True, capture_output=True)
        width = np.load(place / "dense" / "rows.npy").shape[1]
        np.save(place / "query.npy", np.ones(width, dtype=np.float32))
        words, imported = "a green cross", _cpu(sys.executable, "-c", "import torch")
        lines = []
        for what, aim, search in (
            ("a sentence, dense", 1.5, (place / "dense", words)),
            ("a sentence, sparse", 1.5, (place / "sparse", words)),
            ("given vectors, no encoder", 0.6, (place / "dense", place / "query.npy")),
            ("a sentence's own terms, no encoder", 0.6, (place / "sparse", words, "--model", "none")),
        ):
            share = _cpu(*diptych, "search", *search) / imported
            how = f"processor seconds of the whole process, least of {RUNS}, one thread; import: {imported:.2f} s"
            title = f"cold `diptych search` of {what} ÷ `import torch`"
            lines.append(Line(title, f"{share:.2f}×", f"≤ {aim}×", share <= aim, how))
    return lines
