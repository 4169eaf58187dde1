"""How long a person waits before anything happens: import and ``--help``."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.table import Line

__all__ = ["measure"]


def _seconds(*command: str, runs: int = 7) -> float:
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def measure() -> list[Line]:
    """``import diptych`` and ``diptych --help``, whole processes, median of 7."""
    how = "whole process, Python's own start included, median of 7"
    lines = []
    for what, command in (
        ("`import diptych`", (sys.executable, "-c", "import diptych")),
        ("`diptych --help`", (sys.executable, "-m", "diptych", "--help")),
        ("`diptych train --help`", (sys.executable, "-m", "diptych", "train", "--help")),
    ):
        seconds = _seconds(*command)
        lines.append(Line(what, f"{seconds:.2f} s", "≤ 0.5 s", seconds <= 0.5, how))
    return lines
