"""Evaluate: scores and a ground truth in, measures with chance, intervals and protocol out.

One pass: the partition cuts galleries, each is ranked, its measures are taken per query, resampled and
averaged over the galleries.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.reading import map_array
from diptych.evaluation.reranking import check_no_gains
from diptych.evaluation.result import (
    BOTH,
    OWN_GAINS,
    Fold,
    Protocol,
    Reranking,
    Result,
    Score,
    one_gallery,
    partition,
)
from diptych.metrics import DIRECTIONS, Direction, GivenScores, GroundTruth, Positives, ScoreSource
from diptych.metrics.bootstrap import Bootstrap, interval, resample
from diptych.metrics.measures import best_ranks
from diptych.metrics.measuring import (
    DEFAULT_MEASURES,
    Gain,
    Gained,
    GainMeasure,
    Measure,
    Names,
    Sum,
    resolve,
)
from diptych.metrics.ranks import Ranks, check_rule, check_sizes, ranks_of, tie_groups
from diptych.metrics.relevance import Grades, Relevance, graded_gains, similar_gains
from diptych.metrics.sources import similarity as similarity_of
from diptych.metrics.topk import BLOCK

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_Key = tuple[Direction, str]
_Plain = Measure | GainMeasure
_WARNING = "its scale counts, so models are not compared by it"


class Ranker(typing.Protocol):
    """Ranks of a whole test set that are not those of every score: re-ranked candidates, retrieved items."""

    similarity: str  # what the ranks are by
    usual_ties: str  # the tie rule unless another is requested
    protocol: Reranking | None  # the second stage; None where there is only one stage

    def ranks(self, every: bool, block: int, threads: int | None) -> dict[Direction, Ranks]:
        """Return the ranks of both directions, of every positive or only of each query's best."""


def evaluate(
    images: np.ndarray | csr_array | ScoreSource | Ranker,
    texts: np.ndarray | csr_array | None,
    ground_truth: GroundTruth | None = None,
    measures: Names = DEFAULT_MEASURES,
    *,
    text_image: Sequence[int] | np.ndarray | None = None,  # each text's image row, not a ground truth
    similarity: str | None = None,
    image_ids: Sequence[str] | None = None,  # for messages
    text_ids: Sequence[str] | None = None,
    protocol: str = "full",  # how the test set is cut into galleries; see :mod:`diptych.evaluation.result`
    ties: str | None = None,  # the tie rule, see :mod:`diptych.metrics.ranks`; ``"expected"`` by default
    relevance: Relevance | None = None,  # whose cosines are gains of DCG_CM; the evaluated model's by default
    grades: Grades | None = None,  # of pairs for nDCG; only labels by default
    bootstrap: Bootstrap | None = None,  # how confidence intervals are made; none by default
    block: int = BLOCK,  # scores held at once by one worker
    threads: int | None = None,
    about: Mapping[str, Any] | None = None,  # dataset, split, fingerprints, seed, ...: JSON-able, printed
) -> Result:
    """Measure retrieval in both directions by embeddings of images and texts, or by given scores.

    Args:
        images: (n, d) rows, possibly memory-mapped, a tensor or the path of an ``.npy`` file, compared as float32;
            (n, |V|) sparse rows of term weights; or, without texts, scores: an (n, m) matrix, which serves as
            similarities for DCG_CM only where all lie between -1 and 1, any score source, or candidates that a
            second stage scored (:class:`~diptych.evaluation.reranking.RerankedScores`).
        texts: (m, d) rows, or sparse rows over the same terms; None where scores are given.
        ground_truth: what is relevant to what; without it and ``text_image``, image i and text i belong together.
        measures: names such as ``"R@5"`` (any cut-off), or measures; one alone need not be in a list.
        similarity: ``"cosine"``, whatever the lengths of the rows, the default of dense rows; ``"dot"``, their
            inner product, that of sparse rows; or ``"order"``, the score of order embeddings.

    Raises:
        DataError: sizes that disagree, an empty side, a test set that is not the protocol's.
        NumericalError: a row that is not finite, named.
        UnknownNameError: a measure, similarity, protocol or tie rule that does not exist.
        UsageError: a measure by the evaluated model's similarities with order embeddings, which have none.
    """
    plain, sums = resolve(measures)
    chosen = partition(protocol)
    check_rule(ties or "expected")
    source: Any = array_of(images)
    if texts is not None:
        images, texts = as_float32(source), as_float32(array_of(texts))
        source = rows_source(images, texts, similarity, image_ids, text_ids)
    elif isinstance(source, np.ndarray):
        source = GivenScores(source)
    if any(empty := getattr(source, "empty", (0, 0))):
        about = {**(about or {}), "rows without terms": "{:,} images, {:,} texts".format(*empty)}
    truth, how = _truth_of(source, ground_truth, text_image), bootstrap or Bootstrap(samples=0)
    second = None if isinstance(source, ScoreSource) else source.protocol
    ties = ties or ("expected" if isinstance(source, ScoreSource) else source.usual_ties)
    if isinstance(source, ScoreSource):
        check_sizes(source, truth)
        check_gains(source, truth, plain, relevance)
    else:
        one_gallery(protocol)
        check_no_gains(plain)
    depth = second.k_test if second is not None and second.unranked == "miss" else {}
    found = []
    for number, fold in enumerate(chosen.folds(truth)):
        part = source
        if isinstance(source, ScoreSource) and chosen.count > 1:
            part = source.part(fold.images, fold.texts)
        judge, grading = relevance, grades
        if relevance is not None:
            judge = Relevance(relevance.images[fold.images], relevance.texts[fold.texts], relevance.name)
        if grades is not None:
            grading = grades.part(fold.images, fold.texts, truth.n_images, truth.n_texts)
        kw: dict[str, Any] = {"relevance": judge, "grades": grading, "depth": depth}
        kw |= {"block": block, "threads": threads}
        measured = _measure_gallery(part, fold.ground_truth, plain, ties=ties, **kw)
        if how.samples:
            aggregates = {(way, one.name): one.aggregate for way, one in product(DIRECTIONS, plain)}
            drawn = resample(how, number, fold.ground_truth, measured.values, aggregates)
            measured = replace(measured, samples=drawn)
        found.append((fold, measured))
    gains = {
        one.name: _gain_text(one, truth, relevance, grades) for one in plain if isinstance(one, GainMeasure)
    }

    def whole(name: Direction, parts: Iterable[np.ndarray]) -> np.ndarray:
        """Return values of all folds, in the order of the whole test set; NaN of queries that are not evaluated."""
        values = np.empty(truth.positives(name).n_queries)
        for (fold, _), part in zip(found, parts, strict=True):
            values[fold.images if name == "i2t" else fold.texts] = part
        if name in truth.evaluated:
            values[~truth.evaluated[name]] = np.nan
        return values

    per_query: dict[str, dict[str, np.ndarray]] = {name: {} for name in DIRECTIONS}
    for way, member in product(DIRECTIONS, plain):
        per_query[way][member.name] = whole(way, (one.values[way, member.name] for _, one in found))
    best: dict[str, np.ndarray] = {
        name: whole(name, (one.best[name] for _, one in found)) for name in DIRECTIONS
    }
    counts = {name: truth.positives(name).counts[truth.queries(name)].tolist() for name in DIRECTIONS}
    evaluated = {name: len(given) for name, given in counts.items()}
    published = ["ties"] if ties == "compat" else []
    published += ["unranked"] if second is not None and second.unranked == "published" else []
    metadata = Protocol(
        name=chosen.name,
        n_images=truth.n_images,
        n_texts=truth.n_texts,
        texts_per_image=(min(counts["i2t"]), max(counts["i2t"])),
        images_per_text=(min(counts["t2i"]), max(counts["t2i"])),
        galleries=chosen.count,
        ties=ties,
        any_of_k=tuple(member.name for member in plain if member.positives == "best"),
        all_positives=tuple(member.name for member in plain if member.positives == "all"),
        compat=tuple(published + [member.name for member in plain if member.compat]),
        without_positive={str(name): count for name, count in truth.without_positive.items()},
        **asdict(how),
        about=dict(about or {}),
        similarity=source.similarity,
        evaluated={name: n for name, n in evaluated.items() if n < truth.positives(name).n_queries},
        reranking=second,
        gains=gains,
    )
    return Result(metadata, _scores(found, plain, sums, how), per_query, best, truth.text_image)


def array_of(given: Any) -> Any:
    """Return the array of a tensor, of a list, or mapped from an ``.npy`` file; what is no array as it is."""
    if isinstance(given, str | Path):
        return map_array(Path(given))
    if hasattr(given, "detach"):  # a tensor of PyTorch, on any device
        detached = given.detach().cpu()
        return detached.numpy() if detached.dtype.itemsize > 2 else detached.float().numpy()
    return np.asarray(given) if isinstance(given, Sequence) else given


def as_float32(rows: Any) -> Any:
    """Return rows in the precision in which embeddings are compared; sparse rows as they are."""
    if isinstance(rows, np.ndarray) and rows.dtype != np.float32 and rows.dtype.kind in "fiu":
        return rows.astype(np.float32)
    return rows


def _truth_of(source: Any, given: GroundTruth | None, text_image: Any) -> GroundTruth:
    """Return the ground truth that was given, that of each text's image, or the diagonal."""
    if given is not None:
        if text_image is not None:
            raise UsageError("both a ground truth and text_image are given", "give one of them")
        return given
    if not isinstance(source, ScoreSource) and not hasattr(source, "protocol"):
        raise UsageError(f"scores are a {type(source).__name__!r} object", "give a dense (n, m) matrix")
    if not isinstance(source, ScoreSource):
        raise UsageError("re-ranked candidates without a ground truth", "give the one they were held against")
    n_images, n_texts = source.shape
    if text_image is None and n_images != n_texts:
        text = f"{n_images:,} images and {n_texts:,} texts are not pairs"
        raise UsageError(text, "say which image each text describes: text_image=[0, 0, 1, …]")
    return GroundTruth.from_caption_image(np.arange(n_texts) if text_image is None else text_image, n_images)


def rows_source(
    images: np.ndarray | csr_array,
    texts: np.ndarray | csr_array,
    similarity: str | None = None,
    image_ids: Sequence[str] | None = None,
    text_ids: Sequence[str] | None = None,
) -> ScoreSource:
    """Return the scores of dense or sparse rows; arguments and errors as of :func:`evaluate`."""
    from scipy.sparse import issparse

    usual = "dot" if issparse(images) or issparse(texts) else "cosine"
    if usual == "dot" and similarity not in (None, usual):
        raise UsageError(f"sparse rows are compared by 'dot', not by {similarity!r}", "leave similarity out")
    return similarity_of(similarity or usual).source(images, texts, image_ids, text_ids)


@dataclass(frozen=True, eq=False)
class _Measured:
    """One gallery; by direction and measure."""

    values: dict[_Key, np.ndarray]  # (n_queries,) float64
    chances: dict[_Key, float]  # empty unless requested
    best: dict[Direction, np.ndarray]  # (n_queries,) the rank of each query's best positive, where ranked
    samples: dict[_Key, np.ndarray] = field(default_factory=dict)  # (resamples,)


def _measure_gallery(
    source: ScoreSource | Ranker,
    truth: GroundTruth,
    plain: Sequence[_Plain],
    *,
    directions: Sequence[Direction] = DIRECTIONS,
    ties: str = "expected",
    relevance: Relevance | None = None,
    grades: Grades | None = None,
    chance: bool = True,
    depth: Mapping[str, int] | None = None,
    block: int = BLOCK,
    threads: int | None = None,
) -> _Measured:
    """Measure the queries of one gallery; ``depth``: how many items are ranked, for chance levels."""
    ranked = [member for member in plain if isinstance(member, Measure)]
    gaining = [member for member in plain if isinstance(member, GainMeasure)]
    ranks: dict[Direction, Ranks] = {}
    if ranked or chance:
        every = any(member.positives == "all" for member in ranked)
        if isinstance(source, ScoreSource):
            kw: dict[str, Any] = {"directions": directions, "block": block, "threads": threads}
            ranks = ranks_of(source, truth, every=every, **kw)
        else:
            ranks = source.ranks(every, block, threads)
    similar = None
    if relevance is not None and any(member.gain.of == "similarity" for member in gaining):
        similar = relevance.source(truth.n_images, truth.n_texts)
    found = _Measured({}, {}, {})
    for name in directions:
        queries = truth.queries(name)
        if name in ranks:
            groups = tie_groups(ranks[name], ties)
            found.best[name] = best_ranks(groups)
            relevant, gallery = ranks[name].positives[queries], ranks[name].gallery
            for one in ranked:
                found.values[name, one.name] = one.values(groups)
                if chance:
                    level = one.chance(relevant, gallery, (depth or {}).get(name))
                    found.chances[name, one.name] = level
        if gaining:
            assert isinstance(source, ScoreSource)
            positives = truth.positives(name)
            worth: dict[Gain, Gained] = {}
            how: dict[str, Any] = {"ties": ties, "chance": chance, "block": block}
            for kind in ("similarity", "grade"):
                some = [member for member in gaining if member.gain.of == kind]
                if not some:
                    continue
                gains = list(dict.fromkeys(member.gain for member in some))
                given = source, positives, name, gains, max(one.cutoff or positives.gallery for one in some)
                if kind == "grade":
                    worth |= graded_gains(*given, grades=grades, **how)
                else:
                    needs_best = any(member.needs_best for member in some)
                    worth |= similar_gains(*given, by=similar, best=needs_best, **how)
            for member in gaining:
                key, gained = (name, member.name), worth[member.gain]
                found.values[key] = member.values(gained)
                if chance:
                    found.chances[key] = member.aggregate.of(member.values(gained, chance=True)[queries])
    return found


def measure_queries(
    queries: np.ndarray,  # (n, d) float32 rows
    gallery: np.ndarray,  # (m, d) float32 rows
    positives: Positives,  # relevant gallery rows of these queries
    measures: Sequence[str],  # names; sums over both directions are left out
    *,
    query_side: Direction,  # ``"i2t"`` where images are the queries
    similarity: str = "cosine",
    relevance: tuple[np.ndarray, np.ndarray] | None = None,  # rows of queries and gallery by another model
    block: int = BLOCK,
) -> dict[str, np.ndarray]:
    """Return per measure (n,) values of some queries of one direction, the same that :func:`evaluate` has."""
    plain, _ = resolve(measures)
    turned = query_side == "t2i"
    sides = (gallery, queries) if turned else (queries, gallery)
    source = similarity_of(similarity).source(*sides)
    if not len(queries):
        return {member.name: np.empty(0) for member in plain}
    pairs = (positives.rows, positives.queries) if turned else (positives.queries, positives.rows)
    truth = GroundTruth.from_pairs(*pairs, *source.shape)
    given = None if relevance is None else Relevance(*(relevance[::-1] if turned else relevance))
    check_gains(source, truth, plain, given)
    how: dict[str, Any] = {"relevance": given, "chance": False, "block": block}
    found = _measure_gallery(source, truth, plain, directions=[query_side], **how)
    return {name: values for (_, name), values in found.values.items()}


def check_gains(
    source: ScoreSource, truth: GroundTruth, plain: Sequence[_Plain], relevance: Relevance | None
) -> None:
    """Refuse gains by similarity where there are no cosines, before anything is computed."""
    names = [one.name for one in plain if isinstance(one, GainMeasure) and one.gain.of == "similarity"]
    if names and relevance is not None:
        relevance.source(truth.n_images, truth.n_texts)
    elif names and source.cosines() is None:
        text = f"{' and '.join(names)} by the evaluated model need cosines: {source.similarity!r} gives none"
        raise UsageError(text, "name a relevance model (--relevance), or leave them out")


def _gain_text(
    member: GainMeasure, truth: GroundTruth, relevance: Relevance | None, grades: Grades | None
) -> str:
    says = member.gain.says
    if member.gain.of == "similarity":
        if relevance is None:
            return f"1 for a match, else {OWN_GAINS}, {says} ({_WARNING})"
        return f"1 for a match, else the cosine by {relevance.name}, {says}"
    if grades is None:
        return f"{says}, 1 for a match"
    counts = set()
    for name in DIRECTIONS:
        positives = truth.positives(name)
        evaluated = np.isin(positives.queries, truth.queries(name))
        counts.add(int(np.sum(grades.ungraded(positives, name)[evaluated])))
    unmatched = f", {max(counts):,} matches without one have {grades.highest:g}" if max(counts) else ""
    return f"{says} of {grades.what}{unmatched}"


def _scores(
    found: list[tuple[Fold, _Measured]], plain: Sequence[_Plain], sums: Sequence[Sum], how: Bootstrap
) -> dict[str, dict[str, Score]]:
    values: dict[_Key, float] = {}
    chances: dict[_Key, float] = {}
    samples: dict[_Key, np.ndarray] = {}
    scores: dict[str, dict[str, Score]] = {name: {} for name in (*DIRECTIONS, BOTH)}

    def ends(drawn: Any) -> tuple[float | None, float | None]:
        return (interval(drawn, how.confidence) if how.samples else None) or (None, None)

    for way, member in product(DIRECTIONS, plain):
        key = way, member.name
        each = [member.aggregate.of(one.values[key][fold.ground_truth.queries(way)]) for fold, one in found]
        values[key] = float(np.mean(each))
        chances[key] = float(np.mean([one.chances[key] for _, one in found]))
        if how.samples:
            samples[key] = np.mean([one.samples[key] for _, one in found], axis=0)
        scores[way][member.name] = Score(values[key], chances[key], *ends(samples.get(key)))
    for total in sums:
        parts: list[_Key] = [(name, part) for name in DIRECTIONS for part in total.parts]
        drawn = 100 * np.sum([samples[key] for key in parts], axis=0) if how.samples else None
        value, chance = (100 * sum(given[key] for key in parts) for given in (values, chances))
        scores[BOTH][total.name] = Score(value, chance, *ends(drawn))
    return scores
