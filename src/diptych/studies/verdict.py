"""What numbers are of, and when a printed number counts as reproduced.

A measured mean is ``reproduced`` within 5 % of the printed value (Hendriksen et al., 2023), or within two standard
deviations over seeds (Bleeker and de Rijke, 2022), or printed alike where the table says how it rounds, or on the side
of a printed bound that it says; ``close`` within 10 %. Only a number of the printed one's own dataset, split and
gallery, in a setting of the paper's own training, gets such a verdict; any other is ``other data`` or ``other
training``. Weights and vectors that a user gives are taken for what they are called.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from diptych.core.errors import NumericalError, UsageError
from diptych.studies.evidence import Figure

if TYPE_CHECKING:
    from diptych.studies.published import Cell, EvaluatedOn

Verdict = Literal[
    "reproduced", "close", "not reproduced", "other data", "other training", "not run", "not printed"
]

_CLOSE = 2.0  # times a cell's tolerance
_FLOAT = 1e-9  # 5 % of 42.4 is 2.12, and 2.12 apart is within it whatever floats make of it


@dataclass(frozen=True)
class Measured:
    """What a number was measured on: a collection, a shop's log or a catalogue."""

    dataset: str
    split: str
    images: int = 0
    captions: int = 0
    protocol: str = "full"  # how the split was cut into galleries, or a log into sessions
    positives: str = "own"  # the collection's captions, or the name of further judgements (``cxc``)
    chosen: str = "all"  # captions of each image: ``all``, the ``first``, or one at ``random``
    reranked: int = 0  # candidates per query that a matching head scored again
    unranked: str = ""  # what became of the others, as :mod:`diptych.evaluation.reranking` calls it
    centric: str = ""  # what images show: ``scene``, ``object``, or nothing
    sessions: int = 0  # of a log
    products: int = 0  # of a catalogue
    categories: int = 0  # of a catalogue: queries

    def counts(self, name: str) -> tuple[int, ...]:
        """Return how many there are; of printed numbers several where the paper leaves open which."""
        return (getattr(self, name),)

    def number(self, name: str) -> str:
        """Return how many there are, as ``"25,000 or 25,010"``."""
        return " or ".join(f"{count:,}" if count else "no" for count in self.counts(name))

    @property
    def extent(self) -> str:
        """How much was measured; empty of nothing."""
        kinds = (("sessions",), ("products", "categories"), ("images", "captions"))
        counted = next((names for names in kinds if any(getattr(self, name) for name in names)), ())
        return ", ".join(f"{self.number(name)} {name}" for name in counted)

    @property
    def task(self) -> str:
        """What every row of a table has to be evaluated on alike."""
        chosen = "" if self.chosen == "all" else f" ({self.chosen})"
        return ", ".join(part for part in (self.split, self.extent + chosen, self.protocol) if part)


_NAMED = ("dataset", "split", "protocol", "positives", "chosen")
_COUNTED = ("images", "products", "captions", "sessions", "categories", "reranked")
_WORDS = {"chosen": "captions", "reranked": "candidates re-ranked"}


def same_evaluation(measured: Measured, printed: EvaluatedOn) -> list[str]:
    """Return what keeps two numbers from being of the same thing, one phrase each."""
    measured = replace(measured, dataset=measured.dataset.lower())
    differences = []
    for name in _NAMED:
        if (have := getattr(measured, name)) != (want := getattr(printed, name)):
            differences.append(f"{_WORDS.get(name, name)} {have}, not {want}")
    for name in _COUNTED:
        if getattr(measured, name) not in printed.counts(name):
            wanted = printed.number(name) if getattr(printed, name) else "none"
            differences.append(f"{measured.number(name)} {_WORDS.get(name, name)}, not {wanted}")
    if printed.unranked and measured.unranked not in ("", printed.unranked):
        differences.append(f"what is not re-ranked: {measured.unranked}, not {printed.unranked}")
    return differences


def cell_verdict(measured: Sequence[float], cell: Cell) -> Literal["reproduced", "close", "not reproduced"]:
    """Judge one value per seed by a printed cell of the same evaluation."""
    if not measured:
        raise UsageError("a verdict on no value", "run at least one seed")
    for value in measured:
        if not math.isfinite(value):
            raise NumericalError(f"{cell.name} was measured as {value}", "look at its run")
    figure = Figure.of(measured)
    distance, allowed = abs(figure.mean - cell.value), cell.tolerance * abs(cell.value)
    spreads = [2 * sd for sd in (figure.sd, cell.seed_sd) if sd is not None]
    if cell.within(figure.mean) or distance <= max(allowed, cell.rounding, *spreads) + _FLOAT:
        return "reproduced"
    return "close" if distance <= _CLOSE * allowed + _FLOAT else "not reproduced"
