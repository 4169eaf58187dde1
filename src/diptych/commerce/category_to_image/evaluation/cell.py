"""What one model said in one setting with one seed: the unit that is kept, and that a kill cannot halve."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.core.arrays import read_arrays, write_arrays
from diptych.core.errors import StorageError
from diptych.evaluation.result import Result

CELLS = "cells"
FIRST = 10
"""How many products of each category a cell keeps."""


class CellName(NamedTuple):
    """One point of the grid; ``seed`` is -1 for a model that is not trained."""

    setting: str
    model: str
    seed: int

    @property
    def text(self) -> str:
        """For progress and messages."""
        return f"{self.model}, {self.setting}" + ("" if self.seed < 0 else f", seed {self.seed}")

    def file(self, root: Path) -> Path:
        """Where it is kept."""
        name = self.model if self.seed < 0 else f"{self.model}-seed-{self.seed}"
        return root / CELLS / self.setting / f"{name}.npz"


@dataclass(frozen=True, eq=False)
class Cell:
    """Values per query, and what came first.

    Attributes:
        result: the numbers; ``per_query`` holds all measures of categories and those of products that a cell keeps.
        first: (q, ≤ 10) int64 rows of the judged products that each category found first, -1 where fewer were.
        scores: (q, ≤ 10) float64 theirs.
        guess: (n,) int64 rows of the judged categories that each product found first, -1 for none.
        seen: (q,) booleans: the category was trained on.
        about: the model, what it was trained with, seconds.
    """

    result: Result
    first: np.ndarray
    scores: np.ndarray
    guess: np.ndarray
    seen: np.ndarray
    about: dict[str, Any]

    def save(self, file: Path, product_measures: tuple[str, ...]) -> None:
        """Write it, wholly or not at all; of products only ``product_measures`` are kept per query."""
        values = {f"t2i {name}": given for name, given in self.result.per_query["t2i"].items()}
        values |= {f"i2t {name}": self.result.per_query["i2t"][name] for name in product_measures}
        write_arrays(
            file,
            first=self.first,
            scores=self.scores,
            guess=self.guess,
            seen=self.seen,
            names=np.array(list(values), dtype=np.str_),
            json=np.array(
                json.dumps({"result": self.result.to_dict(), "about": self.about}, allow_nan=False)
            ),
            **{f"values-{number}": given for number, given in enumerate(values.values())},
        )

    @classmethod
    def open(cls, file: Path) -> Cell:
        """Read what :meth:`save` wrote."""
        names, text, first, scores, guess, seen = read_arrays(
            file, ("names", "json", "first", "scores", "guess", "seen")
        )
        values = read_arrays(file, tuple(f"values-{number}" for number in range(len(names))))
        try:
            said = json.loads(str(text))
            # a category belongs to no product: each is resampled by itself
            home = np.full(said["result"]["protocol"]["n_texts"], -1)
            result = replace(Result.from_dict(said["result"]), text_image=home)
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{file} cannot be read: {error}", "remove it, and give the command that made it once more"
            ) from None
        for direction in ("i2t", "t2i"):
            result.per_query[direction] = {}
        for name, given in zip(names.tolist(), values, strict=True):
            direction, measure = name.split(" ", 1)
            result.per_query[direction][measure] = given
        return cls(result, first, scores, guess, seen.astype(bool), said["about"])
