"""``make bench``: measure everything, print the table, write benchmarks/figures.md.

``python -m benchmarks objectives search`` measures those alone and prints them; the document stays as it is.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from pathlib import Path

from benchmarks.table import Line, render
from diptych.core.files import write_text

MODULES = (
    *("start", "recall", "search", "search_cold", "engines", "training", "step_overhead"),
    *("objectives", "chunks"),
    *("encoding", "encoding_memory", "protocol", "perturbations", "intent", "categories"),
)


def _machine() -> str:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{platform.system()} {platform.machine()}, {cores} processor cores, Python {platform.python_version()}, "
        f"torch {torch.__version__.split('+')[0]}."
    )


def main(chosen: list[str]) -> None:
    """Run the chosen benchmarks, or every one in turn."""
    unknown = sorted(set(chosen) - set(MODULES))
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(MODULES)}")
    lines: list[Line] = []
    for name in chosen or MODULES:
        print(f"{name} …", flush=True)
        found = importlib.import_module(f"benchmarks.{name}").measure()
        print(*(f"  {line.what}: {line.measured} (aim {line.aim})" for line in found), sep="\n", flush=True)
        lines.extend(found)
    table = render(lines, _machine())
    if chosen:
        print(f"\n{table}")
        return
    document = Path(__file__).with_name("figures.md")
    _, heading, others = document.read_text(encoding="utf-8").partition("\n## ")  # measured by other tools
    write_text(document, table + heading + others)
    print(f"\n{table}\nwritten to benchmarks/figures.md")


if __name__ == "__main__":
    main(sys.argv[1:])
