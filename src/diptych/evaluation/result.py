"""Result: numbers with their chance level, their interval and the protocol that made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.core.artifact import decode
from diptych.core.errors import StorageError, UnknownNameError
from diptych.core.files import atomic_folder, write_json
from diptych.core.reading import opening, read_arrays, read_json
from diptych.evaluation.protocol import Protocol
from diptych.metrics.ground_truth import DIRECTIONS
from diptych.metrics.measuring import measure

BOTH = "both"  # where a sum over both directions is kept
_FORMAT = 1
_RANKS = "ranks"
_TEXT_IMAGE = "text_image"


@dataclass(frozen=True)
class Score:
    """A measure's value.

    Attributes:
        value: a share in [0, 1], a rank from 1, or a sum in per cent.
        chance: what a model that knows nothing gets.
        low: lower end of the interval; None without one.
        high: upper end.
    """

    value: float
    chance: float
    low: float | None = None
    high: float | None = None


class TableRow(NamedTuple):
    """One row of a printed table; shares are in per cent, ``both`` is for sums."""

    measure: str
    i2t: str
    t2i: str
    both: str
    chance: str
    interval: str


@dataclass(frozen=True, eq=False)
class Result:
    """What :func:`~diptych.evaluation.evaluate.evaluate` returns.

    Attributes:
        protocol: what the numbers depend on.
        scores: per direction (``"i2t"``, ``"t2i"``, and ``"both"`` for sums) and measure.
        per_query: per direction and measure, one float64 per query, NaN for one that was not asked.
        ranks: per direction, the rank of each query's best positive, expected where ties leave it open.
        text_image: (n_texts,) the image each text was written for, -1 for none: queries that are
            resampled together.
    """

    protocol: Protocol
    scores: dict[str, dict[str, Score]]
    per_query: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    ranks: dict[str, np.ndarray] = field(default_factory=dict)
    text_image: np.ndarray | None = None

    def score(self, name: str, direction: str = BOTH) -> Score:
        """The score of one measure."""
        if direction not in self.scores:
            raise UnknownNameError("direction", direction, self.scores)
        if name not in self.scores[direction]:
            raise UnknownNameError(f"{direction} measure", name, self.scores[direction])
        return self.scores[direction][name]

    def value(self, name: str, direction: str = BOTH) -> float:
        """The value of one measure; see :meth:`score`."""
        return self.score(name, direction).value

    def values(self) -> dict[str, float]:
        """All values under flat names: ``"i2t R@1"``, ``"t2i R@1"``, ``"rsum"``, ..."""
        return {
            name if direction == BOTH else f"{direction} {name}": score.value
            for direction, given in self.scores.items()
            for name, score in given.items()
        }

    def table(self) -> list[TableRow]:
        """Rows for printing, one per measure."""
        rows = []
        for name in dict.fromkeys(name for given in self.scores.values() for name in given):
            cells = {key: given[name] for key, given in self.scores.items() if name in given}
            show = measure(name).show
            values = {key: show(score.value) for key, score in cells.items()}
            intervals = [
                f"{show(score.low)}–{show(score.high)}"
                for score in cells.values()
                if score.low is not None and score.high is not None
            ]
            rows.append(
                TableRow(
                    measure=name,
                    i2t=values.get("i2t", ""),
                    t2i=values.get("t2i", ""),
                    both=values.get(BOTH, ""),
                    chance=" / ".join(show(score.chance) for score in cells.values()),
                    interval=" / ".join(intervals),
                )
            )
        return rows

    def protocol_line(self) -> str:
        """One line, to be printed with every number."""
        return self.protocol.line()

    def to_dict(self) -> dict[str, Any]:
        """Protocol and scores for JSON; the arrays per query are left out (see :meth:`save`)."""
        return {
            "format": _FORMAT,
            "protocol": asdict(self.protocol),
            "scores": {
                direction: {name: asdict(score) for name, score in given.items()}
                for direction, given in self.scores.items()
            },
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Result:
        """The inverse of :meth:`to_dict`, also after a way through JSON."""
        if given.get("format") != _FORMAT:
            raise StorageError(
                f"an evaluation of format {given.get('format')}, this version reads {_FORMAT}",
                "evaluate again with this version",
            )
        protocol = decode(Protocol, given["protocol"], {})
        return cls(protocol, decode(dict[str, dict[str, Score]], given["scores"], {}))

    def save(self, folder: Path | str) -> Path:
        """Write ``evaluation.json`` and ``per_query.npz``; all or nothing."""
        folder = Path(folder)
        arrays = {
            f"{direction} {name}": values
            for direction, given in self.per_query.items()
            for name, values in given.items()
        }
        arrays |= {f"{direction} {_RANKS}": values for direction, values in self.ranks.items()}
        if self.text_image is not None:
            arrays[_TEXT_IMAGE] = self.text_image
        with atomic_folder(folder, "evaluation.json") as temporary:
            write_json(temporary / "evaluation.json", self.to_dict())
            np.savez_compressed(temporary / "per_query.npz", allow_pickle=False, **arrays)
        return folder

    @classmethod
    @opening("evaluate again")
    def open(cls, folder: Path | str) -> Result:
        """Read what :meth:`save` wrote."""
        folder = Path(folder)
        result = cls.from_dict(read_json(folder / "evaluation.json"))
        arrays = read_arrays(folder / "per_query.npz", fix="evaluate again")
        result = replace(result, text_image=arrays.pop(_TEXT_IMAGE, None))
        for direction in DIRECTIONS:
            result.per_query[direction] = {}
        for key, values in arrays.items():
            direction_, name = key.split(" ", 1)
            if name == _RANKS:
                result.ranks[direction_] = values
            else:
                result.per_query[direction_][name] = values
        return result
