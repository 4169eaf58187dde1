"""``make bench``: measure everything, print the table, write docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from benchmarks import recall, search, start, training
from benchmarks.table import Line, render
from diptych.core.files import write_text


def _machine() -> str:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{platform.system()} {platform.machine()}, {cores} processor cores, Python {platform.python_version()}, "
        f"torch {torch.__version__.split('+')[0]}."
    )


def main() -> None:
    """Run every benchmark in turn."""
    lines: list[Line] = []
    for module in (start, recall, search, training):
        print(f"{module.__name__.split('.')[1]} …", flush=True)
        lines.extend(module.measure())
        print(
            *(f"  {line.what}: {line.measured} (aim {line.aim})" for line in lines[-3:]), sep="\n", flush=True
        )
    table = render(lines, _machine())
    write_text(Path(__file__).parents[1] / "docs" / "benchmarks.md", table)
    print(f"\n{table}\nwritten to docs/benchmarks.md")


if __name__ == "__main__":
    main()
