"""Vectors with the measured statistics of D2S, for benchmarks where there are too few real ones.

A picture is a point z of a latent space, a caption the same point with noise added. Dense vectors are the
unit points. Sparse ones have D2S's own form: term t weighs log(1 + max(0, w_t·z − θ_t)) with a random direction
w_t, where θ_t is the (normal) quantile that gives the term its document frequency. Document frequencies fall as a power
of the rank and are the free choice that meets the thesis's figures (Table 3.6, expansion = c): 182 terms per
picture, 48 per caption, 11.5 FLOPs (Eq. 3.1), of 30,522 terms of which most are never used; a caption's own terms
are 8 of its 48, 2.7 FLOPs. The thesis does not print the numbers of terms nor how weights are spread, so
there are two sets with the same supports: ``flat``, as the form gives it, and ``peaked``, where as in SPLADE most
of a vector's weight lies on its few strongest terms (.70 of a caption's on 10, .73 of a picture's on 50).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri

__all__ = ["SparseSet", "d2s_like", "dense_like", "splade_like"]

_VOCABULARY = 30_522
_USED = 8_000  # terms that any vector has
_LATENT = 256
_BLOCK = 4096
_DECAY = 0.5  # spectrum of the latent space: the j-th axis has standard deviation (j + 1) ** -_DECAY
_FLAT_RANKS = 69.0  # the most frequent terms are about equally frequent
_EXPONENT = 1.2
_EXCESS = (1.049, 1.139)  # projections are not quite normal: so many more terms are asked for than come
_COMMON = 1.0  # how much all terms lean to one axis, so that some bags are much larger than others
_PEAK = {"flat": (1.0, 0.0), "peaked": (2.1, 0.45)}  # power of a weight, power of the term's rarity


@dataclass(frozen=True, eq=False)
class SparseSet:
    """What :func:`d2s_like` makes.

    Attributes:
        documents: (n, 30522) pictures.
        queries: (q, 30522) captions; query i was made from the picture ``source[i]``.
        own: (q, 30522) the captions without expansion: some of their terms, with the same weights.
        dense_documents: (n, 256) float32 unit rows.
        dense_queries: (q, 256) float32 unit rows.
        source: (q,) int64.
    """

    documents: csr_array
    queries: csr_array
    own: csr_array
    dense_documents: np.ndarray
    dense_queries: np.ndarray
    source: np.ndarray


def d2s_like(
    documents: int = 123_000,
    queries: int = 1000,
    seed: int = 0,
    *,
    weights: str = "flat",
    noise: float = 1.0,
    dense_noise: float = 1.7,
    document_terms: float = 182.0,
    query_terms: float = 48.0,
    own_terms: float = 8.0,
) -> SparseSet:
    """Pictures and captions, sparse and dense; everything is a function of the arguments.

    Args:
        documents: how many pictures; the thesis searches 123,000.
        queries: how many captions, each of another picture where there are enough.
        seed: of everything random.
        weights: ``"flat"`` or ``"peaked"``, see above.
        noise: length of what is added to a picture's point (of length 1) to make a caption's sparse vector.
        dense_noise: the same for its dense vector; random directions lose more than trained ones.
        document_terms: mean number of terms of a picture.
        query_terms: mean number of terms of a caption.
        own_terms: mean number of a caption's own terms.
    """
    rng = np.random.default_rng(seed)
    points = _points(documents, rng)
    source = rng.permutation(np.resize(np.arange(documents), max(documents, queries)))[:queries]
    away = _points(queries, rng)
    asked, asked_dense = (_unit(points[source] + size * away) for size in (noise, dense_noise))
    frequency = _frequencies(_EXCESS[0] * document_terms, _EXPONENT)
    asked_frequency = _rescaled(frequency, _EXCESS[1] * query_terms)
    directions = rng.standard_normal((_USED, _LATENT)).astype(np.float32)
    directions[:, 0] += _COMMON
    columns = rng.permutation(_VOCABULARY)[:_USED]
    order = np.argsort(columns)
    columns, directions = columns[order], directions[order]
    frequency, asked_frequency = frequency[order], asked_frequency[order]
    peak = _PEAK[weights]
    rows = _bags(points, directions, frequency, columns, frequency, peak)
    bags = _bags(asked, directions, asked_frequency, columns, frequency, peak)
    share = np.zeros(_VOCABULARY)
    share[columns] = frequency
    return SparseSet(rows, bags, _own(bags, share, own_terms, rng), points, asked_dense, source)


def splade_like(documents: int, queries: int, seed: int = 0) -> tuple[csr_array, csr_array]:
    """Pictures and captions of a skewed vocabulary, as SPLADE's: most weight on rare terms, many light frequent ones.

    A document has 45 terms of its topic's 150, gamma-distributed, and 120 draws of a Zipf distribution, light; a query
    10 of the heaviest of a document's and 26 light ones. Log-saturated, .71 of a query's weight lies on 10 terms and
    .71 of a document's on 50; FLOPs are 1.9.
    """
    rng = np.random.default_rng(seed)
    zipf = np.cumsum(1 / (np.arange(_VOCABULARY) + 20.0))
    columns = rng.permutation(_VOCABULARY)  # of a rank
    of_topic = rng.integers(300, 12_000, (2000, 150))
    topic = rng.integers(0, len(of_topic), documents)
    own = np.take_along_axis(of_topic[topic], rng.integers(0, 150, (documents, 45)), axis=1)
    weights = rng.gamma(4, 0.6, (documents, 45))

    def bags(own: np.ndarray, weights: np.ndarray, light: int, scale: float) -> csr_array:
        drawn = np.searchsorted(zipf, rng.random((len(own), light)) * zipf[-1])
        ranks = np.concatenate([own, drawn], axis=1)
        heavy = np.concatenate([weights, rng.exponential(scale, drawn.shape)], axis=1)
        row, place = np.nonzero(heavy > 0.05)
        parts = heavy[row, place].astype(np.float32), (row, columns[ranks[row, place]])
        made = csr_array(parts, shape=(len(own), _VOCABULARY))
        made.sum_duplicates()
        made.data = np.log1p(made.data)
        return made

    rows = bags(own, weights, 120, 0.35)
    source = rng.permutation(np.resize(np.arange(documents), max(documents, queries)))[:queries]
    heaviest = np.argsort(-weights[source] * rng.uniform(0.5, 1, (queries, 45)), axis=1)[:, :10]
    asked, kept = (np.take_along_axis(part[source], heaviest, axis=1) for part in (own, weights))
    return rows, bags(asked, kept * rng.uniform(0.5, 1.2, kept.shape), 26, 0.3)


def dense_like(documents: int, queries: int, seed: int = 0, *, easy: bool) -> tuple[np.ndarray, np.ndarray]:
    """Unit rows and queries near some of them; easy to walk by a graph where few axes matter."""
    rng = np.random.default_rng(seed)
    decay, noise = (1.0, 0.7) if easy else (_DECAY, 1.7)
    rows, away = _points(documents, rng, decay), _points(queries, rng, decay)
    return rows, _unit(rows[rng.integers(0, documents, queries)] + np.float32(noise) * away)


def _points(count: int, rng: np.random.Generator, decay: float = _DECAY) -> np.ndarray:
    """(count, 256) float32 unit rows of a space whose axes matter less and less."""
    points = rng.standard_normal((count, _LATENT)).astype(np.float32)
    points *= (np.arange(_LATENT, dtype=np.float32) + 1) ** -decay
    return _unit(points)


def _unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _frequencies(terms: float, exponent: float) -> np.ndarray:
    """(_USED,) float64 document frequencies by rank, in sum ``terms``."""
    return _rescaled((np.arange(_USED) + _FLAT_RANKS) ** -exponent, terms)


def _rescaled(shape: np.ndarray, terms: float) -> np.ndarray:
    """``shape`` times a factor, at most .9 each, with the sum ``terms``."""
    low, high = 0.0, 1e9
    for _ in range(100):
        factor = (low + high) / 2
        low, high = (factor, high) if np.minimum(0.9, shape * factor).sum() < terms else (low, factor)
    return np.minimum(0.9, shape * low)


def _bags(
    points: np.ndarray,
    directions: np.ndarray,
    frequency: np.ndarray,
    columns: np.ndarray,
    rarity: np.ndarray,
    peak: tuple[float, float],
) -> csr_array:
    """log(1 + max(0, w·z − θ)) where θ is the quantile that gives each term its frequency."""
    sample = points[:: max(1, len(points) // 4096)] @ directions.T
    scale = sample.std(axis=0)
    theta = sample.mean(axis=0) + scale * ndtri(1 - frequency).astype(np.float32)
    power, rare = peak
    lift = ((rarity.max() / rarity) ** rare).astype(np.float32)
    counts, kept, values = [np.zeros(1, dtype=np.int64)], [], []
    for start in range(0, len(points), _BLOCK):
        over = (points[start : start + _BLOCK] @ directions.T - theta) / scale
        row, term = np.nonzero(over > 0)
        counts.append(np.bincount(row, minlength=len(over)))
        kept.append(columns[term].astype(np.int32))
        values.append((np.log1p(over[row, term]) ** power * lift[term]).astype(np.float32))
    indptr = np.cumsum(np.concatenate(counts))
    parts = (np.concatenate(values), np.concatenate(kept), indptr.astype(np.int32))
    bags = csr_array(parts, shape=(len(points), _VOCABULARY))
    bags.eliminate_zeros()
    return bags


def _own(bags: csr_array, share: np.ndarray, terms: float, rng: np.random.Generator) -> csr_array:
    """Some terms of each bag, the frequent ones rather, ``terms`` of them on average."""
    chance = _chances(share[bags.indices] ** 0.36, terms * bags.shape[0])
    kept = rng.random(len(chance)) < chance
    ends = np.concatenate([[0], np.cumsum(kept)])[bags.indptr].astype(np.int32)
    return csr_array((bags.data[kept], bags.indices[kept], ends), shape=bags.shape)


def _chances(shape: np.ndarray, total: float) -> np.ndarray:
    low, high = 0.0, 1e3
    for _ in range(60):
        factor = (low + high) / 2
        low, high = (factor, high) if np.minimum(1.0, shape * factor).sum() < total else (low, factor)
    return np.minimum(1.0, shape * low)
