"""Maps in closed form: rows of an image and of its text as jointly normal, with a prior for the encoder.

The scores of two rows that are jointly normal with means μ and covariances C are, up to what depends on
only one row and on how strongly it is correlated, (x − μ_x)ᵀ C_xx⁻¹ C_xy C_yy⁻¹ (y − μ_y): canonical
correlation analysis with its components weighted by their correlations. Maps of the two sides that give
these scores are::

    K = C_xx^-½ C_xy C_yy^-½ = U R Vᵀ
    A_x = C_xx^-½ U R^½ Uᵀ,    A_y = C_yy^-½ V R^½ Uᵀ

The covariances are means of those of the n pairs and of a prior that counts as κ pairs, under which every
direction has the same variance s and is correlated by ρ with the same direction of the other side, and
with no other: C = (n S + κ C₀) / (n + κ). By the prior only A_x and A_y are multiples of the identity,
and the scores are the encoder's own cosines. The means are drawn towards 0 as if by κ / 100 pairs, for they
are known sooner: most of what they take away is what all rows of a side have in common.

Sources: Hotelling 1936; Bach and Jordan, A Probabilistic Interpretation of Canonical Correlation
Analysis, 2005; the prior is the conjugate one of a covariance, with ρ = .5 found on validation splits.

Maps by descent: InfoNCE of the pairs' rows, from the identity, with a penalty on leaving it.

    L(A_x, A_y) = InfoNCE(cos(x A_x, y A_y) / τ) + λ (‖A_x − I‖² + ‖A_y − I‖²)

All pairs are one batch and the descent is deterministic (L-BFGS), so there is neither a learning rate nor
a seed. In the space that the rows span the problem is the same and small.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from diptych.core.errors import DataError
from diptych.encoders.adapted import LinearMap, LinearMaps
from diptych.objectives.infonce import infonce

_CORRELATION = 0.5
# How many pairs the prior of the means is worth, as a share of κ.
_MEAN_SHARE = 0.01
# Directions in which the rows extend less than this share of their longest are rounding errors.
_RANK = 1e-9


@dataclass(frozen=True, eq=False)
class Span:
    """The space that a few rows span: maps learned from them change nothing outside of it.

    So n pairs of rows of width d are learned from in min(2n, d) dimensions, without any approximation.
    """

    basis: np.ndarray  # (d, q) float64, orthonormal

    @classmethod
    def of(cls, *rows: np.ndarray) -> Self:
        """Return the span of all ``rows``, (n, d) each; of the whole space when there are d or more."""
        stacked = np.concatenate(rows)
        width = stacked.shape[1]
        if len(stacked) >= width:
            return cls(np.eye(width))
        _, lengths, directions = np.linalg.svd(stacked, full_matrices=False)
        return cls(directions[lengths > _RANK * lengths.max(initial=0.0)].T)

    @property
    def is_everything(self) -> bool:
        width, dimensions = self.basis.shape
        return bool(width == dimensions)

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.is_everything else rows @ self.basis

    def whole(self, inside: np.ndarray, outside: float) -> np.ndarray:
        """Return (d, d): the (q, q) matrix ``inside`` the span, ``outside`` times the identity beyond it."""
        if self.is_everything:
            return inside
        within = self.basis @ (inside - outside * np.eye(len(inside))) @ self.basis.T
        return np.asarray(within + outside * np.eye(len(self.basis)))


@dataclass(frozen=True, eq=False)
class _Side:
    """Moments of the rows of one side, in the space that the pairs span.

    Attributes:
        mean: (d,) in the whole space.
        place: (q,) the same in the span.
        second: (q, q) mean of the rows' outer products.
    """

    mean: np.ndarray
    place: np.ndarray
    second: np.ndarray


@dataclass(frozen=True, eq=False)
class GaussianMoments:
    """Moments of the pairs, from which maps of any strength are computed.

    Attributes:
        count: n, how many images.
        span: of the rows.
        image, text: of each side.
        both: (q, q) mean of the outer products of an image's row and its texts' mean row.
    """

    count: int
    span: Span
    image: _Side
    text: _Side
    both: np.ndarray

    strengths: ClassVar = (
        16384.0,
        4096.0,
        1024.0,
        256.0,
        64.0,
    )  # what κ is chosen from, the strongest pull first
    # κ of few pairs that the encoder confuses all; near the best for 4 to 64 pairs on validation splits
    usual: ClassVar = 1024.0

    @classmethod
    def of(cls, images: np.ndarray, texts: np.ndarray, positives: np.ndarray) -> Self:
        """Compute the moments of (n, d) and (m, d) float64 rows; each image counts once, however many texts it has."""
        if not images.any() and not texts.any():
            raise DataError("every row is zero", "the encoder knows nothing of these images and texts")
        count = len(images)
        weights = positives / positives.sum(axis=1, keepdims=True) / count
        span = Span.of(images, texts)
        x, y = span.coordinates(images), span.coordinates(texts)
        shares = np.full(count, 1 / count), weights.sum(axis=0)
        image, text = (
            _Side(share @ rows, share @ places, (places.T * share) @ places)
            for share, rows, places in zip(shares, (images, texts), (x, y), strict=True)
        )
        return cls(count, span, image, text, x.T @ weights @ y)

    def maps(self, strength: float) -> LinearMaps:
        known = self.count / (self.count + _MEAN_SHARE * strength)
        # Covariances around a share of the mean: E[(x - km)(y - km')'] = E[xy'] - (2k - k^2) mm'.
        common = 2 * known - known**2
        image, text, both = (
            second - common * np.outer(first.place, other.place)
            for second, first, other in (
                (self.image.second, self.image, self.image),
                (self.text.second, self.text, self.text),
                (self.both, self.image, self.text),
            )
        )
        variance = (np.trace(image) + np.trace(text)) / (2 * len(self.span.basis))
        share = self.count / (self.count + strength)
        prior = (1 - share) * variance * np.eye(len(both))
        left_root, right_root = _root(share * image + prior), _root(share * text + prior)
        together = share * both + _CORRELATION * prior
        left, correlations, right = np.linalg.svd(left_root @ together @ right_root)
        # By the prior only the maps are the identity with this factor.
        half = np.sqrt(correlations * variance / _CORRELATION)
        outside = (1 - share) ** -0.5
        return LinearMaps(
            LinearMap.of(
                self.span.whole(left_root @ (left * half) @ left.T, outside), known * self.image.mean
            ),
            LinearMap.of(
                self.span.whole(right_root @ (right.T * half) @ left.T, outside), known * self.text.mean
            ),
        )


def _root(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


_TEMPERATURE = 0.1
_STEPS = 60


@dataclass(frozen=True, eq=False)
class ContrastivePairs:
    """Rows of some pairs, in the space they span.

    Attributes:
        span: of the rows.
        images, texts: (n, q) and (m, q) float64.
        positives: (n, m) boolean.
    """

    span: Span
    images: Tensor
    texts: Tensor
    positives: Tensor

    strengths: ClassVar = (10.0, 1.0, 0.1, 0.01, 0.001)  # what λ is chosen from, the strongest pull first
    usual: ClassVar = 0.1  # λ of few pairs that the encoder confuses all

    @classmethod
    def of(cls, images: np.ndarray, texts: np.ndarray, positives: np.ndarray) -> Self:
        span = Span.of(images, texts)
        rows = [torch.from_numpy(span.coordinates(side)) for side in (images, texts)]
        return cls(span, rows[0], rows[1], torch.from_numpy(positives))

    def maps(self, strength: float) -> LinearMaps:
        width = self.images.shape[1]
        # What is learned is the difference from the identity.
        changes = [torch.zeros(width, width, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        optimizer = torch.optim.LBFGS(changes, max_iter=_STEPS, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimizer.zero_grad()
            sides = zip((self.images, self.texts), changes, strict=True)
            images, texts = (nn.functional.normalize(rows + rows @ change, dim=1) for rows, change in sides)
            loss = infonce(images @ texts.T, self.positives, _TEMPERATURE)
            loss = loss + strength * sum(change.square().sum() for change in changes)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        found = [change.detach().numpy() + np.eye(width) for change in changes]
        mean = np.zeros(len(self.span.basis))
        image, text = (LinearMap.of(self.span.whole(matrix, 1.0), mean) for matrix in found)
        return LinearMaps(image, text)
