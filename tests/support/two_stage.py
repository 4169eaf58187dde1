"""Two-stage models made up from a seed, and the published way to score them, written out query by query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CUTOFFS = (1, 5, 10)


class TwoStage:
    """Contrastive and matching scores of pictures with k captions each; the matching head is the better one.

    Attributes:
        contrastive: (n, n * k) float64, inner products of ``images`` and ``texts`` in float32.
        matching: (n, n * k).
        images, texts: unit rows of the first stage.
        home: (n * k,) the picture of each caption.
    """

    def __init__(self, n: int, k: int = 5, seed: int = 0, contrast: float = 1.2, match: float = 0.6) -> None:
        draw = np.random.default_rng(seed)
        width = 24
        pictures = draw.standard_normal((n, width))
        self.home = np.repeat(np.arange(n), k)
        captions = pictures[self.home] + 0.6 * draw.standard_normal((n * k, width))

        def seen(rows: np.ndarray, noise: float) -> np.ndarray:
            rows = rows + noise * draw.standard_normal(rows.shape)
            return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

        self.images, self.texts = seen(pictures, contrast), seen(captions, contrast)
        self.contrastive = self.images.astype(np.float64) @ self.texts.astype(np.float64).T
        self.matching = 10.0 * seen(pictures, match).astype(np.float64) @ seen(captions, match).T
        self.k = k

    def caption(self, place: int) -> np.ndarray:
        """Rows of the captions at one place within their picture."""
        return np.arange(place, len(self.home), self.k)


def published_recalls(
    contrastive: np.ndarray, matching: np.ndarray | None, home: Sequence[int] | np.ndarray, k: int
) -> dict[str, float]:
    """Recalls as ALBEF's ``Retrieval.evaluation`` and ``itm_eval`` compute them, in per cent.

    The ``k`` best by contrastive score get their matching score, all other cells stay at -100, and a query's
    rank is that of its best positive in ``argsort(scores)[::-1]``. Without ``matching`` the contrastive score
    ranks everything.
    """
    home = np.asarray(home)
    found = {}
    for direction in ("i2t", "t2i"):
        first = contrastive if direction == "i2t" else contrastive.T
        ranks = []
        for query, row in enumerate(first):
            if matching is None:
                scores = row
            else:
                scores = np.full(len(row), -100.0)
                chosen = np.argsort(-row, kind="stable")[:k]
                scores[chosen] = (matching if direction == "i2t" else matching.T)[query, chosen]
            order = np.argsort(scores, kind="stable")[::-1]
            positives = np.flatnonzero(home == query) if direction == "i2t" else [home[query]]
            ranks.append(np.flatnonzero(np.isin(order, positives))[0])
        for cutoff in CUTOFFS:
            found[f"{direction} R@{cutoff}"] = 100 * float(np.mean(np.array(ranks) < cutoff))
    return found


def folded_recalls(contrastive: np.ndarray, home: np.ndarray, folds: int) -> dict[str, float]:
    """Means over galleries of neighbouring pictures."""
    size = len(contrastive) // folds
    parts = []
    for fold in range(folds):
        texts = np.flatnonzero(home // size == fold)
        part = contrastive[fold * size : (fold + 1) * size][:, texts]
        parts.append(published_recalls(part, None, home[texts] - fold * size, 0))
    return {name: float(np.mean([part[name] for part in parts])) for name in parts[0]}


def rounded(values: dict[str, float], decimals: int = 2) -> dict[str, float]:
    """As a table prints them."""
    return {name: round(value, decimals) for name, value in values.items()}


def cut_off(values: dict[str, float], decimals: int = 2) -> dict[str, float]:
    """Without the digits behind."""
    return {name: np.floor(value * 10**decimals + 1e-9) / 10**decimals for name, value in values.items()}
