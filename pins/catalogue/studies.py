"""The verdict tables of every study's ``--quick``: measured values, verdicts per cell and per claim."""

from __future__ import annotations

from typing import Any

from pins import adapters
from pins.adapters import diptych
from pins.registry import add, pin
from pins.world import World

STUDIES = (
    *(f"brittleness.table-5.{number}" for number in (1, 2, 3, 4)),
    *(f"convse.table-{number}" for number in (1, 2, 3)),
    *("cti.figure-7.2", "cti.table-7.1", "cti.table-7.2", "cti.table-7.3"),
    *("d2s.figure-3.2", *(f"d2s.table-3.{number}" for number in (1, 2, 3, 4, 5, 6))),
    *(f"intent.figure-6.{number}" for number in (2, 3, 4, 5, 6, 7)),
    *(f"intent.table-6.{number}" for number in (1, 2, 3, 4, 5, 6, 7)),
    *("ltd.figure-2", "ltd.table-1", "ltd.table-2", "ltd.table-3"),
    *(f"metric-learning.table-{number}" for number in (1, 2, 3, 4)),
    *("reproducibility.table-2.1", "reproducibility.table-2.2"),
    *("ours.collapse", "ours.negatives", "ours.targets"),
    *("svl.figure-4.5", "svl.information", "svl.table-4.1", "svl.table-4.2"),
)
TOGETHER = (
    ("cti.figure-7.2", "cti.table-7.1", "cti.table-7.2", "cti.table-7.3"),
    ("intent.figure-6.6", "intent.figure-6.7"),
)
"""Studies that share one evaluation and show all of it: what one shows depends on the others, so all are run first."""
TIMED = ("latency", "throughput")
"""Columns that measure time, and so are not pinned; nor are the claims of a study that has such columns."""


def _study(name: str) -> Any:
    def measure(world: World) -> Any:
        together = next((names for names in TOGETHER if name in names), (name,))
        for one in () if world.finished_studies else together:
            if one not in world.done_studies:
                diptych("study", "run", one, "--quick", f"--out={world.studies / one}")
                world.done_studies.add(one)
        return adapters.study_of(world.studies / name, TIMED)

    return measure


for name in STUDIES:
    add(f"study.{name}", _study(name), study=name)


@pin("study.published", fast=True)
def published(world: World) -> Any:
    """The papers' cells as data, and what the papers' numbers say of the papers' claims."""
    return adapters.published()


@pin("study.complete", fast=True)
def complete(world: World) -> Any:
    """Studies that no pin runs."""
    return {"studies without a pin": sorted(adapters.study_names() - set(STUDIES))}
