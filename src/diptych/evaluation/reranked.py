"""Reranked: the candidates that a matching head scored, and in which order they were chosen.

Two-stage models rank twice. The contrastive rows choose the ``k`` best candidates of every query, a head
that reads picture and text together scores those again. What was not chosen has no score: it is
*unranked*, which is neither a tie nor a place at the bottom.

Sources: Li et al., ALBEF, NeurIPS 2021; Zeng et al., X-VLM, ICML 2022; Li et al., BLIP, ICML 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.evaluation.ground_truth import Direction

__all__ = ["UNSCORED", "Candidates", "Reranked"]

UNSCORED = -100.0
"""What the published evaluations write into the cells that were not scored."""


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

    @property
    def k(self) -> int:
        """How many candidates each query has."""
        return int(self.items.shape[1])

    def first(self, k: int) -> Candidates:
        """The ``k`` best of the first stage alone, as if no more had been chosen.

        Raises:
            UsageError: more than there are, or less than one.
        """
        if not 1 <= k <= self.k:
            raise UsageError(
                f"k = {k}, but {self.k} candidates of each query were scored",
                f"choose 1 to {self.k}, or re-rank more",
            )
        return Candidates(self.items[:, :k], self.contrastive[:, :k], self.matching[:, :k])


@dataclass(frozen=True, eq=False)
class Reranked:
    """Both directions.

    Attributes:
        i2t: candidates of every image: rows of texts.
        t2i: candidates of every text: rows of images.
        adds_contrastive: whether the final score is matching + contrastive score (BLIP) instead of the
            matching score alone (ALBEF, X-VLM).
        about: what made it: encoder, fingerprints; JSON-able.
    """

    i2t: Candidates
    t2i: Candidates
    adds_contrastive: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_images(self) -> int:
        """How many images."""
        return len(self.i2t.items)

    @property
    def n_texts(self) -> int:
        """How many texts."""
        return len(self.t2i.items)

    @property
    def k(self) -> int:
        """The most candidates that both directions have."""
        return min(self.i2t.k, self.t2i.k)

    def candidates(self, direction: Direction) -> Candidates:
        """One direction."""
        return self.i2t if direction == "i2t" else self.t2i

    def final(self, direction: Direction) -> np.ndarray:
        """(n_queries, k) float32 scores that rank the candidates."""
        one = self.candidates(direction)
        scores: np.ndarray = one.matching + one.contrastive if self.adds_contrastive else one.matching
        return scores

    def first(self, k: int) -> Reranked:
        """As if ``k`` candidates of each query had been re-ranked; a gallery that is smaller is whole.

        Raises:
            UsageError: more than were scored, or less than one.
        """

        def cut(one: Candidates, gallery: int) -> Candidates:
            return one if one.k == gallery <= k else one.first(k)

        return Reranked(
            cut(self.i2t, self.n_texts), cut(self.t2i, self.n_images), self.adds_contrastive, self.about
        )

    def matrix(self, direction: Direction, fill: float = UNSCORED) -> np.ndarray:
        """(n_queries, gallery) float32 as the published evaluations hold it: ``fill`` where nothing was scored."""
        one = self.candidates(direction)
        gallery = self.n_texts if direction == "i2t" else self.n_images
        table = np.full((len(one.items), gallery), fill, dtype=np.float32)
        np.put_along_axis(table, one.items, self.final(direction), axis=1)
        return table
