"""Calibration: the temperature that makes soft-max scores of categories mean probabilities.

Temperature scaling: Guo et al., On Calibration of Modern Neural Networks, ICML 2017, section 4.2; here it starts from
cosines, so it is also what makes them logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.category_to_image.filling.fill import FilledBlock, Filler, score_blocks
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_SCORES = 1 << 23
"""Scores that are kept while the temperature is looked for: 64 MB."""

_LOWEST, _HIGHEST = 1e-4, 1e2


@dataclass(frozen=True)
class Calibration:
    """A temperature, and what it was found on.

    Attributes:
        temperature: scores are divided by it.
        products: how many products said so.
        loss: their mean negative log-likelihood at it, nats.
        loss_at_one: the same at temperature 1.
        chance: the same of a uniform guess.
    """

    temperature: float
    products: int
    loss: float
    loss_at_one: float
    chance: float


def calibrate(
    products: np.ndarray | csr_array,
    categories: np.ndarray | csr_array,
    candidates: np.ndarray,
    catalogue: Catalogue,
    *,
    seed: int = 0,
) -> Calibration:
    """The temperature of least negative log-likelihood on products whose category is known.

    Of very many products some are drawn, the same ones for the same seed and ids.

    Args:
        products: (n, d) float32 rows of ``catalogue``'s products, such as those for validation.
        categories: (c, d) float32 rows of ``candidates``.
        candidates: (c,) nodes, ascending.
    """
    product, column = _places_among(catalogue, candidates)
    known = np.unique(product)
    if not len(known):
        raise DataError(
            f"{catalogue.name}: none of {len(catalogue):,} products has one of {len(candidates):,} categories: "
            "nothing to calibrate on",
            "give validation products with categories",
        )
    most = max(1, _SCORES // max(1, len(candidates)))
    if len(known) > most:
        draws = draw_uniform(seed, keys_of([catalogue.ids[row] for row in known.tolist()]))
        known = known[np.sort(np.argsort(draws, kind="stable")[:most])]
    kept = np.isin(product, known)
    right = np.zeros((len(known), len(candidates)), dtype=bool)
    right[np.searchsorted(known, product[kept]), column[kept]] = True
    blocks = score_blocks(products, categories, known)
    scores = np.concatenate([block.astype(np.float32) for _, block in blocks])

    def loss(log_temperature: float) -> float:
        return _loss(scores, right, float(np.exp(log_temperature)))

    from scipy.optimize import minimize_scalar

    grid = np.linspace(np.log(_LOWEST), np.log(_HIGHEST), 25)
    values = [loss(one) for one in grid]
    best = int(np.argmin(values))
    low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    at, least = (float(found.x), float(found.fun)) if found.fun < values[best] else (grid[best], values[best])
    return Calibration(
        temperature=float(np.exp(at)),
        products=len(known),
        loss=float(least),
        loss_at_one=loss(0.0),
        chance=float(-np.log(right.mean(axis=1)).mean()),
    )


def _places_among(catalogue: Catalogue, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a product and the column of one of its places among ``candidates``."""
    column = np.full(len(catalogue.tree), -1, dtype=np.int64)
    column[candidates] = np.arange(len(candidates))
    product = np.repeat(np.arange(len(catalogue)), np.diff(catalogue.place_start))
    found = column[catalogue.places]
    return product[found >= 0], found[found >= 0]


def _loss(scores: np.ndarray, right: np.ndarray, temperature: float) -> float:
    """Mean over products of minus the logarithm of what their own categories get together."""
    total = 0.0
    step = max(1, (1 << 20) // scores.shape[1])
    for begin in range(0, len(scores), step):
        scaled = scores[begin : begin + step].astype(np.float64) / temperature
        scaled -= scaled.max(axis=1, keepdims=True)
        theirs = np.where(right[begin : begin + step], scaled, -np.inf)
        highest = theirs.max(axis=1, keepdims=True)
        mine = np.log(np.exp(theirs - highest).sum(axis=1)) + highest[:, 0]
        total += float((np.log(np.exp(scaled).sum(axis=1)) - mine).sum())
    return total / len(scores)


# Reliability: whether categories that are 80 % sure are right 80 times in a hundred, on every level of the tree.
#
# Expected calibration error: Naeini et al., Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI 2015,
# over bins of equal width as Guo et al., ICML 2017, section 2.


BINS = 15


@dataclass(frozen=True)
class LevelReliability:
    """Of one level of suggested paths.

    Attributes:
        level: 1 for the most general; 0 for the whole path.
        products: how many have a suggestion and a category of their own there.
        confidence: mean confidence.
        accuracy: how many are right, as a share.
        error: expected calibration error.
        bins: (products, mean confidence, accuracy) of each of 15 bins of equal width, 0 where one is empty.
    """

    level: int
    products: int
    confidence: float
    accuracy: float
    error: float
    bins: tuple[tuple[int, float, float], ...]


@dataclass(frozen=True)
class Reliability:
    """Of suggestions for products whose category is known.

    Attributes:
        products: how many.
        levels: of each level that has any.
        whole: of whole paths: right where a path ends in a category of the product's.
        threshold: where paths were cut.
        cut: by how many levels were kept: (levels, products, share whose last category is on a path of theirs).
    """

    products: int
    levels: tuple[LevelReliability, ...]
    whole: LevelReliability
    threshold: float
    cut: tuple[tuple[int, int, float], ...]


def reliability_of(filler: Filler, products: np.ndarray | csr_array, catalogue: Catalogue) -> Reliability:
    """How far suggestions for products with a category can be believed.

    A level counts where the product's own path reaches it: of a product that is no further sorted than
    "Men > Clothing" nobody knows what is right below. Of several own paths any counts.

    Args:
        products: (n, d) float32 rows of the catalogue's products; best of products that no training has seen.
    """
    known = np.flatnonzero(catalogue.place >= 0)
    parts = [_judge(filler, block, catalogue) for block in filler.blocks(products, known)]
    deepest = int(filler.tree.depth.max(initial=1))
    empty = np.zeros((0, deepest))
    confidence = np.concatenate([empty, *(one[0] for one in parts)])
    right = np.concatenate([empty.astype(bool), *(one[1] for one in parts)])
    counts = np.concatenate([empty.astype(bool), *(one[2] for one in parts)])
    ends = np.concatenate([np.zeros(0, np.int64), *(one[3] for one in parts)])
    whole_right = np.concatenate([np.zeros(0, bool), *(one[4] for one in parts)])
    kept = np.concatenate([np.zeros(0, np.int64), *(one[5] for one in parts)])
    levels = tuple(
        _level(level + 1, confidence[counts[:, level], level], right[counts[:, level], level])
        for level in range(deepest)
        if counts[:, level].any()
    )
    rows = np.arange(len(ends))
    cut = []
    for many in range(deepest + 1):
        mine = np.flatnonzero(kept == many)
        judged = mine[counts[mine, many - 1]] if many else mine[:0]
        share = float(right[judged, many - 1].mean()) if len(judged) else 0.0
        if len(mine):
            cut.append((many, len(mine), share))
    return Reliability(
        products=len(known),
        levels=levels,
        whole=_level(0, confidence[rows, ends], whole_right),
        threshold=filler.threshold,
        cut=tuple(cut),
    )


def _judge(filler: Filler, block: FilledBlock, catalogue: Catalogue) -> tuple[np.ndarray, ...]:
    """Confidence, right and counted per level; where paths end, whether that is right, levels kept."""
    tree = filler.tree
    ends = (block.path >= 0).sum(axis=1) - 1
    last = block.path[np.arange(len(ends)), ends]
    many = np.diff(catalogue.place_start)[block.products]  # each has a place at least
    begins = np.cumsum(many) - many
    which = np.repeat(catalogue.place_start[block.products] - begins, many) + np.arange(many.sum())
    own, of = catalogue.places[which], np.repeat(np.arange(len(many)), many)
    lineage = tree.lineage[own]
    right = np.logical_or.reduceat((lineage == block.path[of]) & (lineage >= 0), begins)
    reach = np.maximum.reduceat(tree.depth[own], begins)
    whole = np.logical_or.reduceat(own == last[of], begins)
    counts = (block.path >= 0) & (np.arange(tree.lineage.shape[1]) < reach[:, None])
    return block.confidence, right, counts, ends, whole, block.kept


def _level(level: int, confidence: np.ndarray, right: np.ndarray) -> LevelReliability:
    error, bins = expected_calibration_error(confidence, right)
    return LevelReliability(
        level=level,
        products=len(right),
        confidence=float(confidence.mean()) if len(right) else 0.0,
        accuracy=float(right.mean()) if len(right) else 0.0,
        error=error,
        bins=bins,
    )


def expected_calibration_error(
    confidence: np.ndarray, right: np.ndarray, bins: int = BINS
) -> tuple[float, tuple[tuple[int, float, float], ...]]:
    """Mean over products of how far a bin's accuracy is from its mean confidence, and the bins.

    Args:
        confidence: (n,) from 0 to 1.
        right: (n,) booleans.
    """
    place = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    many = np.bincount(place, minlength=bins)
    some = np.maximum(many, 1)
    mean = np.bincount(place, confidence, minlength=bins) / some
    share = np.bincount(place, right.astype(np.float64), minlength=bins) / some
    error = float((many * np.abs(mean - share)).sum() / max(1, len(right)))
    return error, tuple(zip(many.tolist(), mean.tolist(), share.tolist(), strict=True))
