"""DCG_CM@k and nDCG_CM@k: near misses count by how similar they are to the query.

A labelled match has gain 1, any other item the cosine of query and candidate: by the evaluated model (thesis
Eq. 5.1), or by a relevance model that is named in the protocol. A negative cosine is no gain, so gains are
clamped to [0, 1]. By the evaluated model a value depends on the scale of its cosines (a model whose cosines
lie around 0.8 has more than one whose lie around 0.2, whatever either finds), so it follows one model through
changes of its queries and does not compare models; with one relevance model for all it does.

The published numbers take a fixed CLIP ViT-B/32 as relevance model, negative cosines as they are, cosines and
sums rounded to four digits: ``DCG_CM-published@10`` with that model's rows.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.discounted import discounted_gain, normalised_gain
from diptych.metrics.gain_measure import Gain, GainMeasure
from diptych.metrics.measuring import MEASURES

_CITATION = "Hendriksen, Multimodal machine learning for information retrieval, 2025, Eq. 5.1 and 5.2"
_DIGITS = 4


def _clamp(similarity: np.ndarray) -> np.ndarray:
    clamped: np.ndarray = np.clip(similarity, 0.0, 1.0)
    return clamped


def _round(similarity: np.ndarray) -> np.ndarray:
    rounded: np.ndarray = np.round(similarity, _DIGITS)
    return rounded


CLAMPED = Gain("similarity", _clamp, "clamped to [0, 1]")
ROUNDED = Gain("similarity", _round, "rounded to 4 digits and not clamped")


def _discounted(gains: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    return discounted_gain(gains)


def _discounted_and_rounded(gains: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    rounded: np.ndarray = np.round(discounted_gain(gains), _DIGITS)
    return rounded


def _normalised(gains: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    assert best is not None
    return normalised_gain(gains, best)


DCG_CM = MEASURES.add(
    GainMeasure(
        name="DCG_CM@k",
        description="discounted gain of the first k: 1 for a match, else the cosine of query and item (clamped "
        "to [0, 1]) by the evaluated model, or by the one of --relevance; over log2(place + 1)",
        citation=_CITATION,
        gain=CLAMPED,
        per_query=_discounted,
    )
)

DCG_CM_PUBLISHED = MEASURES.add(
    GainMeasure(
        name="DCG_CM-published@k",
        description="as DCG_CM@k with cosines rounded to 4 digits and not clamped, and the sum rounded to 4; "
        "published with a fixed CLIP ViT-B/32 as relevance model",
        citation=f"{_CITATION} (published code)",
        gain=ROUNDED,
        per_query=_discounted_and_rounded,
        compat=True,
    )
)

NDCG_CM = MEASURES.add(
    GainMeasure(
        name="nDCG_CM@k",
        description="DCG_CM@k over the greatest that any order of the gallery reaches under the same gains "
        "(all matches first, then the most similar): 1 at most, and 0 where nothing has any gain",
        citation=_CITATION,
        gain=CLAMPED,
        per_query=_normalised,
        needs_best=True,
    )
)
