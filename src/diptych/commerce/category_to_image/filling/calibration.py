"""Calibration: the temperature that makes soft-max scores of categories mean probabilities.

Temperature scaling: Guo et al., On Calibration of Modern Neural Networks, ICML 2017, section 4.2; here it starts from
cosines, so it is also what makes them logits.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.category_to_image.filling.scoring import score_blocks
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

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


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
