"""One measured line, and the table of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Line", "interleaved", "render"]


@dataclass(frozen=True)
class Line:
    """One figure: what, measured, aim, whether it holds, and how it was measured."""

    what: str
    measured: str
    aim: str
    holds: bool
    how: str


def interleaved(runs: int, *functions: Callable[[], Any]) -> list[list[float]]:
    """Wall seconds of each function, run in turn A B A B …, after one uncounted round."""
    seconds: list[list[float]] = [[] for _ in functions]
    for number in range(runs + 1):
        for place, function in enumerate(functions):
            begun = time.perf_counter()
            function()
            if number:
                seconds[place].append(time.perf_counter() - begun)
    return seconds


def ratio(over: list[float], under: list[float]) -> float:
    """Median of the ratios pair by pair: it holds when the machine's speed drifts."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def render(lines: list[Line], machine: str) -> str:
    """The table as Markdown."""
    rows = [
        "# Benchmarks",
        "",
        "Written by `make bench`; ratios within one run on one machine, medians of the pairs.",
        "",
        machine,
        "",
        "| what | measured | aim | | how |",
        "|---|---|---|---|---|",
    ]
    for line in lines:
        mark = "✓" if line.holds else "✗"
        rows.append(f"| {line.what} | {line.measured} | {line.aim} | {mark} | {line.how} |")
    return "\n".join(rows) + "\n"
