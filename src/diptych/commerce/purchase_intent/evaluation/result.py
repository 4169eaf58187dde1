"""Evaluation: a folder with every prediction, the protocol that made them, and the numbers.

::

    EVALUATION/
      evaluation.json    what was evaluated and how
      sessions.npz       of every session of the table its label and its person
      cells/…            the scores of every model and fold
      results.json       the numbers; written last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import Persons
from diptych.commerce.purchase_intent.evaluation.plan import Place, Protocol
from diptych.commerce.purchase_intent.evaluation.summary import RESAMPLED, Pooled, pool
from diptych.core.artifact import write_arrays
from diptych.core.errors import DataError, MismatchError, StorageError, UnknownNameError
from diptych.core.files import write_json
from diptych.core.reading import opening, read_arrays, read_json
from diptych.core.version import __version__
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


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
    @opening("evaluate again")
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
        labels, persons = read_arrays(self.folder / SESSIONS, ("labels", "persons")).values()
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


CellName = tuple[str, str, int, str]
"""Setting, feature set, step, model."""


@dataclass(frozen=True)
class Difference:
    """A difference, or another sum, of values of cells.

    Attributes:
        measure: of what.
        values: of the cells, in the order given.
        difference: the sum of the values times their factors.
        low, high: ends of its interval; None without resamples.
    """

    measure: str
    values: tuple[float, ...]
    difference: float
    low: float | None
    high: float | None

    @property
    def is_clear(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def compare(
    evaluation: Evaluation,
    first: CellName,
    second: CellName,
    *,
    measure: str = "average_precision",
    bootstrap: Bootstrap | None = None,
) -> Difference:
    """The second cell less the first, on the same sessions: a paired bootstrap over persons.

    Args:
        evaluation: with both.
        first: e.g. ``("anonymous", "baseline", 0, "random-forest")``.
        second: the same with ``"extended"``, or another model.
        measure: ``average_precision``, ``f1`` or ``best_f1``.
        bootstrap: how the interval is made.

    Raises:
        UnknownNameError: no such cell or measure.
        MismatchError: they were tested on other sessions.
    """
    one, other = evaluation.pooled(*first), evaluation.pooled(*second)
    if not np.array_equal(one.rows, other.rows):
        raise MismatchError(
            f"{first} was tested on {len(one.rows):,} sessions, {second} on {len(other.rows):,}, not the same ones",
            "compare cells of one setting and step, or contrast() their gains",
        )
    return _contrast(evaluation, [(-1.0, one), (1.0, other)], measure, bootstrap)


def contrast(
    evaluation: Evaluation,
    terms: Sequence[tuple[float, CellName]],
    *,
    measure: str = "average_precision",
    bootstrap: Bootstrap | None = None,
) -> Difference:
    """A sum of cells' values with factors, e.g. the gain at step 0 less the gain at step 10.

    The same persons are drawn for all cells, so that cells of other steps, whose sessions are partly the same, are
    paired as far as they are.
    """
    return _contrast(
        evaluation, [(factor, evaluation.pooled(*name)) for factor, name in terms], measure, bootstrap
    )


def _contrast(
    evaluation: Evaluation, terms: Sequence[tuple[float, Pooled]], measure: str, bootstrap: Bootstrap | None
) -> Difference:
    if measure not in RESAMPLED:
        raise UnknownNameError("measure with an interval", measure, RESAMPLED)
    persons = Persons.of(evaluation.sessions()[1], bootstrap or Bootstrap())
    values = tuple(float(pooled.values(measure)) for _, pooled in terms)
    samples = [factor * pooled.resampled(persons, [measure])[measure] for factor, pooled in terms]
    low, high = persons.interval(np.sum(samples, axis=0))
    total = sum(factor * value for (factor, _), value in zip(terms, values, strict=True))
    return Difference(measure, values, total, low, high)


def begin(folder: Path, features: FeatureTable, protocol: Protocol, about: dict[str, Any]) -> None:
    """Write what is evaluated, unless it is written already."""
    if (folder / MARKER).is_file():
        _check_same(folder, protocol)
    else:
        write_json(
            folder / MARKER,
            {
                "format": FORMAT,
                "key": protocol.key,
                "protocol": protocol.to_dict(),
                "features": {
                    "name": features.about["name"],
                    "line": features.describe(),
                    "kind": features.about["kind"],
                    "compat": features.compat,
                    "fingerprint": features.fingerprint,
                },
                "diptych": __version__,
                **about,
                "notes": [*features.about.get("notes", ()), *about["notes"]],
            },
        )
    if not (folder / SESSIONS).is_file():
        write_arrays(folder / SESSIONS, dict(labels=features.labels, persons=features.persons))


def _check_same(folder: Path, protocol: Protocol) -> None:
    about = read_json(folder / MARKER)
    new = "give another --out, or remove the folder"
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise MismatchError(f"{folder} holds no evaluation of format {FORMAT}", new)
    there = Protocol.from_dict(about["protocol"])
    if there != protocol:
        said = "; ".join(there.differences(protocol))
        raise MismatchError(f"{folder} holds another evaluation; there and asked for: {said}", new)


def finished(folder: Path, how: Bootstrap) -> Evaluation | None:
    """The evaluation in a folder, if its numbers are there and have intervals of this kind."""
    if not (folder / RESULTS).is_file():
        return None
    try:
        found = Evaluation.open(folder)
    except StorageError:
        return None  # damaged numbers are made again from the predictions
    return found if found.results.get("intervals") == intervals_of(how) else None


def intervals_of(how: Bootstrap) -> dict[str, Any]:
    """How intervals are made, as ``results.json`` says it."""
    return {"samples": how.samples, "confidence": how.confidence, "seed": how.seed}
