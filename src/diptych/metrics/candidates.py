"""Re-ranked candidates: what the first stage chose for every query, and how the matching head scores it.

What was not chosen has no score: it is *unranked*, which is neither a tie nor a place at the bottom.

Sources: Li et al., ALBEF, NeurIPS 2021; Zeng et al., X-VLM, ICML 2022; Li et al., BLIP, ICML 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.metrics.ground_truth import DIRECTIONS, Direction
from diptych.metrics.runs import blocks

UNSCORED = -100.0  # what the published evaluations write into the cells that were not scored

_PARTS = {"items": np.int64, "contrastive": np.float32, "matching": np.float32}
_CHECKED = 1 << 21  # candidates checked at once


@dataclass(frozen=True, eq=False)
class Candidates:
    """One direction: the candidates of every query, best contrastive score first."""

    items: np.ndarray  # (n_queries, k) int64 rows of the gallery
    contrastive: np.ndarray  # (n_queries, k) float32 contrastive scores, not increasing along a row
    matching: np.ndarray  # (n_queries, k) float32 scores of the matching head

    def __post_init__(self) -> None:
        shapes = self.items.shape, self.contrastive.shape, self.matching.shape
        if len(set(shapes)) > 1 or self.items.ndim != 2:
            text = "candidates of shape {}, contrastive scores {}, matching scores {}"
            raise DataError(text.format(*shapes), "all three are (queries, k)")
        if not np.issubdtype(self.items.dtype, np.integer):
            text = f"candidates are {self.items.dtype} numbers"
            raise DataError(text, "they are rows of the gallery: whole numbers")

    def check(self, gallery: int, what: str) -> None:
        """Refuse candidates outside the gallery, given twice or out of order, and scores that are not finite."""
        if not self.items.size:
            text = f"{what}: {len(self.items)} queries with {self.k} candidates each: nothing is ranked"
            raise DataError(text)
        for here in blocks(len(self.items), _CHECKED // self.k):
            items, first, second = (getattr(self, name)[here] for name in _PARTS)
            same = np.diff(np.sort(items, axis=1), axis=1) == 0
            for wrong, message in (
                ((items < 0) | (items >= gallery), f"a candidate is not in a gallery of {gallery}"),
                (same, "a row is a candidate twice"),
                (~np.isfinite(first), "a contrastive score is not finite"),
                (~np.isfinite(second), "a matching score is not finite"),
                (
                    np.diff(first, axis=1) > 0,
                    "a candidate has a higher contrastive score than the one before it",
                ),
            ):
                if wrong.any():
                    query = here.start + int(np.argwhere(wrong)[0, 0])
                    raise (NumericalError if "finite" in message else DataError)(
                        f"{what} query {query}: {message}",
                        "re-rank again, with the embeddings that are evaluated and sound weights",
                    )

    @property
    def k(self) -> int:
        return int(self.items.shape[1])

    def first(self, k: int) -> Candidates:
        if not 1 <= k <= self.k:
            text = f"k = {k}, but {self.k} candidates of each query were scored"
            raise UsageError(text, f"choose 1 to {self.k}, or re-rank more")
        return Candidates(self.items[:, :k], self.contrastive[:, :k], self.matching[:, :k])


@dataclass(frozen=True, eq=False)
class Reranked(Artifact, kind="reranked", version=2, recreate="diptych evaluate --rerank", mapped=DIRECTIONS):
    i2t: Candidates  # candidates of every image: rows of texts
    t2i: Candidates  # candidates of every text: rows of images
    # whether the final score is matching + contrastive score (BLIP) instead of the matching score only
    # (ALBEF, X-VLM)
    adds_contrastive: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)  # what made it: encoder, fingerprints; JSON-able

    @property
    def n_images(self) -> int:
        return len(self.i2t.items)

    @property
    def n_texts(self) -> int:
        return len(self.t2i.items)

    @property
    def k(self) -> int:
        """The most candidates that both directions have."""
        return min(self.i2t.k, self.t2i.k)

    def candidates(self, direction: Direction) -> Candidates:
        return self.i2t if direction == "i2t" else self.t2i

    def final(self, direction: Direction) -> np.ndarray:
        one = self.candidates(direction)
        return np.asarray(one.matching + one.contrastive if self.adds_contrastive else one.matching)

    def first(self, k: int) -> Reranked:
        """Return it as if ``k`` candidates of each query had been re-ranked; a gallery that is smaller is whole."""

        both = (self.i2t, self.n_texts), (self.t2i, self.n_images)
        i2t, t2i = (one if one.k == gallery <= k else one.first(k) for one, gallery in both)
        return replace(self, i2t=i2t, t2i=t2i)

    def matrix(self, direction: Direction) -> np.ndarray:
        """Return (n_queries, gallery) float32 as published: -100 where nothing was scored."""
        one = self.candidates(direction)
        gallery = self.n_texts if direction == "i2t" else self.n_images
        table = np.full((len(one.items), gallery), UNSCORED, dtype=np.float32)
        np.put_along_axis(table, one.items, self.final(direction), axis=1)
        return table

    def check(self) -> None:
        self.i2t.check(self.n_texts, "i2t")
        self.t2i.check(self.n_images, "t2i")

    def save(self, path: Path | str, of: str = "", also: Callable[[Path], object] | None = None) -> Path:
        self.check()
        i2t, t2i = (
            Candidates(*(np.asarray(getattr(one, part), kind) for part, kind in _PARTS.items()))
            for one in (self.i2t, self.t2i)
        )
        whole = replace(self, i2t=i2t, t2i=t2i)
        return super(Reranked, whole).save(path, of, also)
