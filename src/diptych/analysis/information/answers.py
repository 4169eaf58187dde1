"""Answers: what is true of the rows of one split, before it is coded for probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError


@dataclass(frozen=True, eq=False)
class Answers:
    """What is true of the rows of one split.

    Attributes:
        keys: the questions' names.
        values: (n, q) objects: the answer as text, None where the row is not asked.
        groups: kind of information → (n, q) weights, 0 or more; usually 0 and 1.
        images: (n,) the image of each row.
    """

    keys: tuple[str, ...]
    values: np.ndarray
    groups: Mapping[str, np.ndarray]
    images: np.ndarray

    def __post_init__(self) -> None:
        shape = (len(self.images), len(self.keys))
        for what, array in (("values", self.values), *self.groups.items()):
            if array.shape != shape:
                raise DataError(f"{what} of answers have shape {array.shape}, not {shape}")

    def aligned(self, keys: Sequence[str]) -> Answers:
        """The same answers with these keys, in this order; nobody is asked a key that is not here."""
        column = {key: number for number, key in enumerate(self.keys)}
        values = np.full((len(self.images), len(keys)), None, dtype=object)
        weights = {name: np.zeros(values.shape) for name in self.groups}
        for place, key in enumerate(keys):
            if key in column:
                values[:, place] = self.values[:, column[key]]
                for name, given in self.groups.items():
                    weights[name][:, place] = given[:, column[key]]
        return Answers(tuple(keys), values, weights, self.images)

    def beside(self, others: Answers) -> Answers:
        """These questions and others about the same rows; a group may have members of both."""
        nothing = [np.zeros(one.values.shape) for one in (self, others)]
        return Answers(
            (*self.keys, *others.keys),
            np.concatenate([self.values, others.values], axis=1),
            joined(self.groups, others.groups, nothing),
            self.images,
        )


def joined(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], nothing: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Groups of both, side by side; ``nothing`` stands for a group that one of them does not have."""
    return {
        name: np.concatenate([first.get(name, nothing[0]), second.get(name, nothing[1])], axis=1)
        for name in dict.fromkeys((*first, *second))
    }
