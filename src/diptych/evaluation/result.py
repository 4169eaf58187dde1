"""Result: numbers with their chance level, their interval and the protocol that made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import UnknownNameError
from diptych.evaluation.protocol import Protocol
from diptych.metrics.measuring import measure

BOTH = "both"  # where a sum over both directions is kept


@dataclass(frozen=True)
class Score:
    """A measure's value."""

    value: float  # a share in [0, 1], a rank from 1, or a sum in per cent
    chance: float  # what a model that knows nothing gets
    low: float | None = None  # lower end of the interval; None without one
    high: float | None = None  # upper end


class TableRow(NamedTuple):
    """One row of a printed table; shares are in per cent, ``both`` is for sums."""

    measure: str
    i2t: str
    t2i: str
    both: str
    chance: str
    interval: str


@dataclass(frozen=True, eq=False)
class Result(Artifact, kind="evaluation", version=2, recreate="diptych evaluate"):
    """What :func:`~diptych.evaluation.evaluate.evaluate` returns."""

    protocol: Protocol  # what the numbers depend on
    # per direction (``"i2t"``, ``"t2i"``, and ``"both"`` for sums) and measure
    scores: dict[str, dict[str, Score]]
    # per direction and measure, one float64 per query, NaN for one that was not asked
    per_query: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    # per direction, the rank of each query's best positive, expected where ties leave it open
    ranks: dict[str, np.ndarray] = field(default_factory=dict)
    # (n_texts,) the image each text was written for, -1 for none: queries that are resampled together
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
