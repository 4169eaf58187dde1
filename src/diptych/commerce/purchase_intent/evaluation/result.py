"""Evaluation: a folder with every prediction, the protocol that made them, and the numbers.

::

    EVALUATION/
      intent_evaluation.json  what was evaluated and how
      units/…                 the scores of every fold
      results.npz             the numbers; written last
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.plan import FoldResult, Place, Protocol
from diptych.commerce.purchase_intent.evaluation.shown import evaluation_tables, left_out_lines
from diptych.commerce.purchase_intent.evaluation.summary import Pooled, folds_of, pool
from diptych.core.artifact import Artifact
from diptych.core.context import RESUME
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.job import Job
from diptych.core.reading import opening
from diptych.core.table import Table
from diptych.core.version import __version__
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


RESULTS = "results.npz"


@dataclass(frozen=True, eq=False)
class Results(Artifact, kind="intent_results"):
    """The numbers of an evaluation.

    Attributes:
        gains: one per setting, step, model and measure: the extended set less the baseline, on the same sessions.
    """

    intervals: dict[str, Any]  # samples, confidence and seed
    cells: list[dict[str, Any]]  # one per setting, set, step and model, in the order asked for
    gains: list[dict[str, Any]]
    importance: list[dict[str, Any]]  # one per setting, set, step and feature
    left_out: list[dict[str, Any]]  # settings and steps that could not be evaluated, each with its reason
    notes: list[str]  # what went not as it should, counted over the grid
    labels: np.ndarray  # labels, persons: (n,) of all sessions of the table
    persons: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A finished evaluation: its folder, its protocol and its numbers."""

    folder: Path
    protocol: Protocol
    results: Results

    @classmethod
    @opening("evaluate again")
    def open(cls, folder: Path | str) -> Evaluation:
        """Open what an evaluation has written."""
        folder = Path(folder)
        protocol = Protocol.open(folder)
        if not (folder / RESULTS).is_file():
            raise StorageError(f"{folder} is not finished (no {RESULTS})", RESUME)
        return cls(folder, protocol, Results.open(folder / RESULTS, of=protocol.key))

    @property
    def about(self) -> Mapping[str, Any]:
        """The table, the split, models and notes."""
        return self.protocol.about

    @property
    def job(self) -> Job[FoldResult]:
        """The folds."""
        return job_of(self.folder, self.protocol)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """One per setting, set, step and model, in the order asked for."""
        return self.results.cells

    @property
    def importance(self) -> list[dict[str, Any]]:
        """One per setting, set, step and feature."""
        return self.results.importance

    @property
    def gains(self) -> list[dict[str, Any]]:
        """One per setting, step, model and measure: the extended set less the baseline, on the same sessions."""
        return self.results.gains

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """Settings and steps that could not be evaluated, each with its reason."""
        return self.results.left_out

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers should know besides."""
        return [*self.about["notes"], *self.results.notes]

    def cell(self, setting: str, feature_set: str, step: int, model: str) -> dict[str, Any] | None:
        """The numbers of one; None where it was not evaluated."""
        wanted = (setting, feature_set, step, model)
        return next((cell for cell in self.cells if _name(cell) == wanted), None)

    def pooled(self, setting: str, feature_set: str, step: int, model: str) -> Pooled:
        """What a model said of every test session."""
        if self.cell(setting, feature_set, step, model) is None:
            known = (", ".join(map(str, _name(cell))) for cell in self.cells)
            name = ", ".join(map(str, (setting, feature_set, step, model)))
            raise UnknownNameError("cell (setting, set, step, model)", name, known)
        folds = folds_of(self.job, Place(setting, feature_set, step), self.protocol.folds)
        return pool(folds, model, self.results.labels)

    def tables(self) -> list[Table]:
        """Return all that was measured; what belongs to a page alone is folded."""
        return evaluation_tables(self)

    def lines(self) -> list[str]:
        """Return what could not be evaluated, what a reader should know, and the protocol."""
        return [*left_out_lines(self.left_out), *self.notes, self.line()]

    def line(self) -> str:
        """The protocol in one line, to be printed with every number."""
        how = self.results.intervals
        samples = f"{100 * how['confidence']:g} % intervals of {how['samples']:,} resamples of persons"
        return "; ".join(
            [
                self.about["features"]["line"],
                self.protocol.line(),
                samples if how["samples"] else "no intervals",
            ]
        )


def _name(cell: Mapping[str, Any]) -> tuple[str, str, int, str]:
    return cell["setting"], cell["set"], cell["step"], cell["model"]


def job_of(folder: Path, protocol: Protocol) -> Job[FoldResult]:
    """Return the grid of an evaluation."""
    return Job(folder, protocol, FoldResult, noun="folds")


def with_table(protocol: Protocol, features: FeatureTable, about: dict[str, Any]) -> Protocol:
    """Return the protocol with what readers are told of the table."""
    table = {
        "name": features.about["name"],
        "line": features.describe(),
        "kind": features.about["kind"],
        "compat": features.compat,
        "fingerprint": features.fingerprint,
    }
    notes = [*features.about.get("notes", ()), *about["notes"]]
    return replace(protocol, about={"features": table, "diptych": __version__, **about, "notes": notes})


def finished(folder: Path, protocol: Protocol, how: Bootstrap) -> Evaluation | None:
    """Return the evaluation in a folder, if its numbers are there and have intervals of this kind."""
    try:
        results = Results.open(folder / RESULTS, of=protocol.key)
    except StorageError:
        return None  # computed again from the folds
    return Evaluation(folder, protocol, results) if results.intervals == intervals_of(how) else None


def intervals_of(how: Bootstrap) -> dict[str, Any]:
    """How intervals are made, for protocols."""
    return {"samples": how.samples, "confidence": how.confidence, "seed": how.seed}
