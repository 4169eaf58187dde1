"""Evaluate: embeddings and a ground truth in, measures with chance, intervals and protocol out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.evaluation.gain_galleries import GainGalleries
from diptych.evaluation.galleries import measure_galleries
from diptych.evaluation.partitioning import Fold, partition
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.measuring import DEFAULT_MEASURES, AnyMeasure
from diptych.metrics.positives import Direction
from diptych.metrics.products import check_rows
from diptych.metrics.ranks import (
    DEFAULT_BLOCK,
    Ranks,
    available_threads,
    check_sizes,
    ranks_from_rows,
    ranks_from_scores,
    ranks_from_source,
)
from diptych.metrics.relevance import Grades, Relevance, own_similarity
from diptych.metrics.similarities import similarity as similarity_of
from diptych.metrics.sources import GivenScores, ScoreSource

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_COSINE = 1 + 1e-3  # the greatest a cosine of rounded rows may be


def evaluate(
    images: np.ndarray,
    texts: np.ndarray,
    ground_truth: GroundTruth,
    measures: Iterable[str | AnyMeasure] = DEFAULT_MEASURES,
    *,
    similarity: str = "cosine",
    protocol: str = "full",
    ties: str = "expected",
    relevance: Relevance | None = None,
    grades: Grades | None = None,
    bootstrap: Bootstrap | None = None,
    image_ids: Sequence[str] | None = None,
    text_ids: Sequence[str] | None = None,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Result:
    """Measure retrieval in both directions by the scores of image and text rows.

    Args:
        images: (n, d) float32 rows, possibly memory-mapped; unit length if cosine is meant.
        texts: (m, d) float32 rows.
        ground_truth: which texts are relevant to which images.
        measures: names such as ``"R@5"`` (any cut-off), or measures.
        similarity: ``"cosine"``, the inner product, or ``"order"``, that of order embeddings; see
            :mod:`diptych.metrics.similarities`.
        protocol: how the test set is cut into galleries; see :mod:`diptych.evaluation.partitioning`.
        ties: the tie rule; see :mod:`diptych.metrics.ties`.
        relevance: the model that says how relevant an item without a label is to DCG_CM and its like; the
            evaluated one by default.
        grades: grades of pairs for nDCG; labels alone by default.
        bootstrap: how confidence intervals are made; none by default.
        image_ids: for messages.
        text_ids: for messages.
        block: scores held at once by one worker.
        threads: workers; all available cores by default.
        about: dataset, split, fingerprints, seed, ...: JSON-able, printed with the numbers.

    Raises:
        DataError: sizes that disagree, an empty side, a test set that is not the protocol's.
        NumericalError: a row that is not finite, named.
        UnknownNameError: a measure, similarity, protocol or tie rule that does not exist.
        UsageError: a measure by the evaluated model's similarities with order embeddings, which have none.
    """
    similarity_of(similarity)  # before the work, not after it
    check_sizes(images, texts, ground_truth)
    chosen = partition(protocol)
    if chosen.count > 1:  # so that a message names the row in the whole test set
        check_rows(np.asarray(images), "image", image_ids)
        check_rows(np.asarray(texts), "text", text_ids)
    whole = chosen.count == 1

    def rank(fold: Fold, every: bool) -> dict[Direction, Ranks]:
        return ranks_from_rows(
            images[fold.images],
            texts[fold.texts],
            fold.ground_truth,
            every=every,
            similarity=similarity,
            image_ids=image_ids if whole else None,
            text_ids=text_ids if whole else None,
            block=block,
            threads=threads,
        )

    def own(fold: Fold, source: ScoreSource) -> ScoreSource:
        return own_similarity(source, images[fold.images], texts[fold.texts], similarity)

    gains = GainGalleries(
        ground_truth,
        lambda fold: similarity_of(similarity).source(images[fold.images], texts[fold.texts], None, None),
        own if similarity == "cosine" else None,
        no_own=f"similarity {similarity!r} gives penalties",
        relevance=relevance,
        grades=grades,
        block=block,
    )
    return measure_galleries(
        rank, ground_truth, measures, chosen, ties, bootstrap, about, similarity, gains=gains
    )


def evaluate_scores(
    scores: np.ndarray,
    ground_truth: GroundTruth,
    measures: Iterable[str | AnyMeasure] = DEFAULT_MEASURES,
    *,
    protocol: str = "full",
    ties: str = "expected",
    relevance: Relevance | None = None,
    grades: Grades | None = None,
    bootstrap: Bootstrap | None = None,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Result:
    """The same by a given score matrix (n_images, n_texts): re-ranking, ensembles, other models.

    Its scores serve as similarities (for DCG_CM) only where all lie between -1 and 1.
    """
    whole = GivenScores(scores, ground_truth).scores  # raises, naming the place in the whole matrix

    def rank(fold: Fold, every: bool) -> dict[Direction, Ranks]:
        part = np.asarray(scores)[fold.images][:, fold.texts]
        return ranks_from_scores(part, fold.ground_truth, every=every, block=block, threads=threads)

    low, high = float(whole.min(initial=0)), float(whole.max(initial=0))
    gains = GainGalleries(
        ground_truth,
        lambda fold: GivenScores(whole[fold.images][:, fold.texts], fold.ground_truth),
        (lambda fold, source: source) if low >= -_COSINE and high <= _COSINE else None,
        no_own=f"the given scores lie between {low:g} and {high:g}",
        relevance=relevance,
        grades=grades,
        block=block,
    )
    return measure_galleries(
        rank, ground_truth, measures, partition(protocol), ties, bootstrap, about, gains=gains
    )


def evaluate_sparse(
    images: csr_array,
    texts: csr_array,
    ground_truth: GroundTruth,
    measures: Iterable[str | AnyMeasure] = DEFAULT_MEASURES,
    *,
    protocol: str = "full",
    ties: str = "expected",
    relevance: Relevance | None = None,
    grades: Grades | None = None,
    bootstrap: Bootstrap | None = None,
    image_ids: Sequence[str] | None = None,
    text_ids: Sequence[str] | None = None,
    block: int = DEFAULT_BLOCK,
    threads: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Result:
    """The same by the inner products of sparse rows, which are exact.

    See :mod:`diptych.metrics.sparse_products`. A row without terms is kept: it scores 0 with everything,
    so as a query it ties with the whole gallery. The protocol says how many there are.

    Args:
        images: (n, |V|) sparse rows of term weights.
        texts: (m, |V|) sparse rows over the same terms.
    """
    from diptych.metrics.sparse_products import SparseProducts

    check_sizes(images, texts, ground_truth)
    chosen = partition(protocol)
    source = SparseProducts(images, texts, image_ids, text_ids)  # raises, naming the row in the whole set
    said = dict(about or {})
    if any(source.empty):
        said["rows without terms"] = "{:,} images, {:,} texts".format(*source.empty)

    def rank(fold: Fold, every: bool) -> dict[Direction, Ranks]:
        part = source if chosen.count == 1 else source.part(fold.images, fold.texts)
        return ranks_from_source(
            part, fold.ground_truth, every=every, block=block, threads=threads or available_threads()
        )

    gains = GainGalleries(
        ground_truth,
        lambda fold: source if chosen.count == 1 else source.part(fold.images, fold.texts),
        None,
        no_own="sparse rows give sums of term weights",
        relevance=relevance,
        grades=grades,
        block=block,
    )
    return measure_galleries(rank, ground_truth, measures, chosen, ties, bootstrap, said, gains=gains)
