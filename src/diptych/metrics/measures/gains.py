"""DCG_CM@k and nDCG_CM@k, nDCG@k: discounted gains of what stands at the first places.

DCG_CM: near misses count by how similar they are to the query. A labelled match has gain 1, any other item
the cosine of query and candidate: by the evaluated model (thesis Eq. 5.1), or by a relevance model that is
named in the protocol. A negative cosine is no gain, so gains are clamped to [0, 1]. By the evaluated model a
value depends on the scale of its cosines (a model whose cosines lie around 0.8 has more than one whose lie
around 0.2, whatever either finds), so it follows one model through changes of its queries and does not
compare models; with one relevance model for all it does. The published numbers take a fixed CLIP ViT-B/32
as relevance model, negative cosines as they are, cosines and sums rounded to four digits:
``DCG_CM-published@10`` with that model's rows.

nDCG: the gain of an item is its grade (CxC's ratings from 0 to 5 with ``--positives cxc:FOLDER``), 0 for an
item without one, and the highest grade for a labelled match without one. Without grades a match has grade 1.
Others take ``2^grade - 1`` instead, which rewards the highest grades more.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.measuring import MEASURES, Gain, GainMeasure

_CITATION = "Hendriksen, Multimodal machine learning for information retrieval, 2025, Eq. 5.1 and 5.2"
_DIGITS = 4


def discounts(depth: int) -> np.ndarray:
    """Return (depth,) one over log2(place + 1), places counted from 1: 1, 0.63, 0.5, …

    Source: Järvelin and Kekäläinen, TOIS 2002; thesis Eq. 5.2.
    """
    weights: np.ndarray = 1.0 / np.log2(np.arange(2, depth + 2))
    return weights


def discounted_gain(gains: np.ndarray, best: np.ndarray | None = None) -> np.ndarray:
    """Return (n,) sums of (n, places) gains, each divided by log2(place + 1)."""
    total: np.ndarray = gains @ discounts(gains.shape[1])
    return total


def normalised_gain(gains: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    """Return (n,) discounted gain over the greatest that any order reaches: in [0, 1].

    A query whose best is 0 has nothing to find and counts as 0. ``best`` are (n, places) the greatest
    gains there are, descending.
    """
    assert best is not None
    most = discounted_gain(best)
    ratio = np.divide(discounted_gain(gains), most, out=np.zeros(len(most)), where=most > 0)
    normalised: np.ndarray = np.minimum(ratio, 1.0)  # what rounding may add in the last digit
    return normalised


def _discounted_and_rounded(gains: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    rounded: np.ndarray = np.round(discounted_gain(gains), _DIGITS)
    return rounded


def _clamp(similarity: np.ndarray) -> np.ndarray:
    clamped: np.ndarray = np.clip(similarity, 0.0, 1.0)
    return clamped


def _round(similarity: np.ndarray) -> np.ndarray:
    rounded: np.ndarray = np.round(similarity, _DIGITS)
    return rounded


def _linear(grade: np.ndarray) -> np.ndarray:
    return grade


def _exponential(grade: np.ndarray) -> np.ndarray:
    gains: np.ndarray = np.exp2(grade) - 1.0
    return gains


CLAMPED = Gain("similarity", _clamp, "clamped to [0, 1]")
ROUNDED = Gain("similarity", _round, "rounded to 4 digits and not clamped")
LINEAR = Gain("grade", _linear, "the grade")
EXPONENTIAL = Gain("grade", _exponential, "2^grade - 1")

DCG_CM = MEASURES.add(
    GainMeasure(
        name="DCG_CM@k",
        description="discounted gain of the first k: 1 for a match, else the cosine of query and item (clamped "
        "to [0, 1]) by the evaluated model, or by the one of --relevance; over log2(place + 1)",
        citation=_CITATION,
        gain=CLAMPED,
        per_query=discounted_gain,
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
        per_query=normalised_gain,
        needs_best=True,
    )
)

NDCG = MEASURES.add(
    GainMeasure(
        name="nDCG@k",
        description="discounted gain of the first k over the greatest there is, the gain being the grade (1 for "
        "a match without --positives that have grades); 0 where nothing has a grade",
        citation="Järvelin and Kekäläinen, ACM TOIS 2002",
        gain=LINEAR,
        per_query=normalised_gain,
        needs_best=True,
    )
)

NDCG_EXPONENTIAL = MEASURES.add(
    GainMeasure(
        name="nDCG-exponential@k",
        description="as nDCG@k with 2^grade - 1 as the gain, which tells the highest grades apart",
        citation="Burges et al., ICML 2005",
        gain=EXPONENTIAL,
        per_query=normalised_gain,
        needs_best=True,
    )
)
