"""Maps in closed form: rows of a picture and of its text as jointly normal, with a prior for the encoder.

The scores of two rows that are jointly normal with means μ and covariances C are, up to what depends on
one row alone and on how strongly it is correlated, (x − μ_x)ᵀ C_xx⁻¹ C_xy C_yy⁻¹ (y − μ_y): canonical
correlation analysis with its components weighted by their correlations. Maps of the two sides that give
these scores are::

    K = C_xx^-½ C_xy C_yy^-½ = U R Vᵀ
    A_x = C_xx^-½ U R^½ Uᵀ,    A_y = C_yy^-½ V R^½ Uᵀ

The covariances are means of those of the n pairs and of a prior that counts as κ pairs, under which every
direction has the same variance s and is correlated by ρ with the same direction of the other side, and
with no other: C = (n S + κ C₀) / (n + κ). By the prior alone A_x and A_y are multiples of the identity,
and the scores are the encoder's own cosines. The means are drawn towards 0 as if by 10 pairs, for they are
known sooner: most of what they take away is what all rows of a side have in common.

Sources: Hotelling 1936; Bach and Jordan, A Probabilistic Interpretation of Canonical Correlation
Analysis, 2005; the prior is the conjugate one of a covariance, with ρ = .5 found on validation splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.core.errors import DataError
from diptych.encoders.linear_maps import LinearMap, LinearMaps
from diptych.training.adaptation.span import Span

__all__ = ["STRENGTHS", "USUAL_STRENGTH", "GaussianMoments"]

STRENGTHS = (16384.0, 4096.0, 1024.0, 256.0, 64.0)
"""What κ is chosen from, the strongest pull first."""

USUAL_STRENGTH = 1024.0
"""κ of few pairs that the encoder confuses all; near the best for 4 to 64 pairs on validation splits."""

_CORRELATION = 0.5
_MEAN_PAIRS = 10.0


@dataclass(frozen=True, eq=False)
class GaussianMoments:
    """Means and covariances of the rows of some pairs, in the space they span.

    Attributes:
        count: n, how many pictures.
        span: of the rows.
        image_mean, text_mean: (d,) drawn towards 0.
        image, text: (q, q) covariances S_xx and S_yy.
        both: (q, q) S_xy.
        variance: s, the mean variance of a direction of the whole space.
    """

    count: int
    span: Span
    image_mean: np.ndarray
    text_mean: np.ndarray
    image: np.ndarray
    text: np.ndarray
    both: np.ndarray
    variance: float

    @classmethod
    def of(cls, images: np.ndarray, texts: np.ndarray, positives: np.ndarray) -> GaussianMoments:
        """Those of (n, d) and (m, d) float64 rows; each picture counts once, however many texts it has.

        Raises:
            DataError: all rows are zero.
        """
        count, width = images.shape
        weights = positives / positives.sum(axis=1, keepdims=True)
        of_text = weights.sum(axis=0)
        share = count / (count + _MEAN_PAIRS)
        image_mean, text_mean = share * images.mean(axis=0), share * (of_text @ texts) / count
        images, texts = images - image_mean, texts - text_mean
        span = Span.of(images, texts)
        x, y = span.coordinates(images), span.coordinates(texts)
        image, text = x.T @ x / count, (y.T * of_text) @ y / count
        variance = float(np.trace(image) + np.trace(text)) / (2 * width)
        if not variance:
            raise DataError("every row is zero", "the encoder knows nothing of these pictures and texts")
        return cls(count, span, image_mean, text_mean, image, text, x.T @ (weights @ y) / count, variance)

    def maps(self, strength: float) -> LinearMaps:
        """The maps by a prior that counts as ``strength`` pairs."""
        share = self.count / (self.count + strength)
        prior = (1 - share) * self.variance * np.eye(len(self.image))
        image, text = _root(share * self.image + prior), _root(share * self.text + prior)
        both = share * self.both + _CORRELATION * prior
        left, correlations, right = np.linalg.svd(image @ both @ text)
        # By the prior alone the maps are the identity with this factor.
        half = np.sqrt(correlations * self.variance / _CORRELATION)
        outside = (1 - share) ** -0.5
        return LinearMaps(
            LinearMap.of(self.span.whole(image @ (left * half) @ left.T, outside), self.image_mean),
            LinearMap.of(self.span.whole(text @ (right.T * half) @ left.T, outside), self.text_mean),
        )


def _root(covariance: np.ndarray) -> np.ndarray:
    """C^-½ of a symmetric positive definite matrix."""
    values, vectors = np.linalg.eigh(covariance)
    root: np.ndarray = (vectors / np.sqrt(values)) @ vectors.T
    return root
