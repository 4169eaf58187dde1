"""Candidates: of every query, the items that the first stage chose, and what the matching head says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError, NumericalError, UsageError

PARTS = {"items": np.int64, "contrastive": np.float32, "matching": np.float32}
"""The arrays of one direction and their types on disk."""

_CHECKED = 1 << 21  # candidates checked at once


@dataclass(frozen=True, eq=False)
class Candidates:
    """One direction: the candidates of every query, best contrastive score first.

    Attributes:
        items: (n_queries, k) int64 rows of the gallery.
        contrastive: (n_queries, k) float32 contrastive scores, not increasing along a row.
        matching: (n_queries, k) float32 scores of the matching head.
    """

    items: np.ndarray
    contrastive: np.ndarray
    matching: np.ndarray

    def __post_init__(self) -> None:
        if not self.items.shape == self.contrastive.shape == self.matching.shape or self.items.ndim != 2:
            raise DataError(
                f"candidates of shape {self.items.shape}, contrastive scores {self.contrastive.shape}, "
                f"matching scores {self.matching.shape}",
                "all three are (queries, k)",
            )
        if not np.issubdtype(self.items.dtype, np.integer):
            raise DataError(
                f"candidates are {self.items.dtype} numbers", "they are rows of the gallery: whole numbers"
            )

    def check(self, gallery: int, what: str) -> None:
        """Read every candidate once, in blocks."""
        if not self.items.size:
            raise DataError(
                f"{what}: {len(self.items)} queries with {self.k} candidates each: nothing is ranked"
            )
        step = max(1, _CHECKED // self.k)
        for begin in range(0, len(self.items), step):
            here = slice(begin, begin + step)
            self._check_block(begin, gallery, what, *(getattr(self, name)[here] for name in PARTS))

    def _check_block(
        self, begin: int, gallery: int, what: str, items: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> None:
        def refuse(wrong: np.ndarray, message: str) -> None:
            if wrong.any():
                query, place = np.argwhere(wrong)[0].tolist()
                raise DataError(
                    f"{what} query {begin + query}, candidate {place}: "
                    f"{message.format(item=int(items[query, place]), gallery=gallery)}",
                    "re-rank again, with the embeddings that are evaluated",
                )

        refuse((items < 0) | (items >= gallery), "row {item} is not in a gallery of {gallery}")
        order = np.argsort(items, axis=1, kind="stable")
        again = np.zeros(items.shape, dtype=bool)
        same = np.diff(np.take_along_axis(items, order, axis=1), axis=1) == 0
        np.put_along_axis(again, order[:, 1:], same, axis=1)
        refuse(again, "row {item} is a candidate already")
        for name, scores in (("contrastive", first), ("matching", second)):
            bad = np.argwhere(~np.isfinite(scores))
            if len(bad):
                query, place = bad[0].tolist()
                raise NumericalError(
                    f"{what} query {begin + query}, candidate {place}: its {name} score is "
                    f"{scores[query, place]}",
                    "the encoder diverged or its weights are damaged: re-rank with sound ones",
                )
        rising = np.zeros(items.shape, dtype=bool)
        rising[:, 1:] = np.diff(first, axis=1) > 0
        refuse(rising, "row {item} has a higher contrastive score than the candidate before it")

    @property
    def k(self) -> int:
        """How many candidates each query has."""
        return int(self.items.shape[1])

    def first(self, k: int) -> Candidates:
        """The ``k`` best of the first stage alone, as if no more had been chosen."""
        if not 1 <= k <= self.k:
            raise UsageError(
                f"k = {k}, but {self.k} candidates of each query were scored",
                f"choose 1 to {self.k}, or re-rank more",
            )
        return Candidates(self.items[:, :k], self.contrastive[:, :k], self.matching[:, :k])
