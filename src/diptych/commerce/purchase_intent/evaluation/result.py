"""Evaluation: a folder with every prediction, the protocol that made them, and the numbers.

::

    EVALUATION/
      evaluation.json    what was evaluated and how
      sessions.npz       of every session of the table its label and its person
      cells/…            the scores of every model and fold
      results.json       the numbers; written last
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.plan import Place
from diptych.commerce.purchase_intent.evaluation.protocol import Protocol
from diptych.commerce.purchase_intent.evaluation.summary import Pooled, pool
from diptych.core.arrays import read_arrays
from diptych.core.errors import DataError, StorageError, UnknownNameError
from diptych.core.files import read_json

MARKER = "evaluation.json"
RESULTS = "results.json"
SESSIONS = "sessions.npz"
FORMAT = 1

_AGAIN = "the command that began it goes on"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A finished evaluation.

    Attributes:
        folder: where it is.
        about: what ``evaluation.json`` says.
        results: what ``results.json`` says.
    """

    folder: Path
    about: Mapping[str, Any]
    results: Mapping[str, Any]

    @classmethod
    def open(cls, folder: Path | str) -> Evaluation:
        """Open what an evaluation has written."""
        folder = Path(folder)
        if not (folder / MARKER).is_file():
            raise DataError(
                f"{folder} holds no evaluation (no {MARKER})",
                "make it: diptych intent evaluate FEATURES --out EVALUATION",
            )
        about = read_json(folder / MARKER)
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise StorageError(
                f"{folder} holds no evaluation of format {FORMAT}", "evaluate again: diptych intent evaluate"
            )
        if not (folder / RESULTS).is_file():
            raise StorageError(f"{folder} is not finished (no {RESULTS})", _AGAIN)
        results = read_json(folder / RESULTS)
        if results.get("key") != about.get("key"):
            raise StorageError(f"{folder / RESULTS} is of another evaluation than {MARKER}", _AGAIN)
        return cls(folder, about, results)

    @property
    def protocol(self) -> Protocol:
        """What the numbers depend on."""
        return Protocol.from_dict(self.about["protocol"])

    @property
    def cells(self) -> list[dict[str, Any]]:
        """One per setting, set, step and model, in the order asked for."""
        return list(self.results["cells"])

    @property
    def importance(self) -> list[dict[str, Any]]:
        """One per setting, set, step and feature."""
        return list(self.results["importance"])

    @property
    def gains(self) -> list[dict[str, Any]]:
        """One per setting, step, model and measure: the extended set less the baseline, on the same sessions."""
        return list(self.results["gains"])

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """Settings and steps that could not be evaluated, each with its reason."""
        return list(self.results["left_out"])

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers should know besides."""
        return [*self.about["notes"], *self.results["notes"]]

    def cell(self, setting: str, feature_set: str, step: int, model: str) -> dict[str, Any] | None:
        """The numbers of one; None where it was not evaluated."""
        wanted = (setting, feature_set, step, model)
        return next((cell for cell in self.results["cells"] if _name(cell) == wanted), None)

    def pooled(self, setting: str, feature_set: str, step: int, model: str) -> Pooled:
        """What a model said of every test session."""
        if self.cell(setting, feature_set, step, model) is None:
            known = (", ".join(map(str, _name(cell))) for cell in self.results["cells"])
            name = ", ".join(map(str, (setting, feature_set, step, model)))
            raise UnknownNameError("cell (setting, set, step, model)", name, known)
        labels, _ = self.sessions()
        place = Place(setting, feature_set, step)
        return pool(self.folder, place, self.protocol.folds, model, labels)

    def sessions(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) labels and (n,) persons of all sessions of the table."""
        labels, persons = read_arrays(self.folder / SESSIONS, ("labels", "persons"))
        return labels, persons

    def line(self) -> str:
        """The protocol in one line, to be printed with every number."""
        how = self.results["intervals"]
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
