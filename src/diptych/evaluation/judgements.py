"""Agreement of relevance and measures with human judgements of pairs of images and texts.

Of pairs: does what an item counts as (the label, DCG_CM's label or similarity, the similarity, a grade) order
judged pairs as people do? Of queries: does a measure agree with nDCG of the condensed list, the judged items of a
query in the model's order with people's ratings as gains (Sakai, SIGIR 2007)? Queries with fewer than two judged
items, or nothing relevant to people, have no such list: they are left out and counted.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from diptych.core.files import write_json
from diptych.core.table import Cell, Table, Tabular
from diptych.data.extended_positives import ExtendedPositives
from diptych.data.judgements import Judged, MatchedJudgements, match_judgements
from diptych.encoders.embeddings import EncodedCollection
from diptych.evaluation.evaluate_encoder import grades_of, ground_truth_of
from diptych.evaluation.result import Result, interval_line
from diptych.metrics import DIRECTIONS, GroundTruth, ScoreSource, Sum, measure, similarity
from diptych.metrics.bootstrap import Bootstrap, clusters
from diptych.metrics.correlation import LEAST_HITS, Coefficient, correlate
from diptych.metrics.measures import discounts
from diptych.metrics.relevance import GradeTable, Relevance
from diptych.metrics.runs import begins, places

_LEAST = 2  # judged items that make an order


@dataclass(frozen=True)
class Agreement:
    what: str  # a kind of gain, or a measure
    over: str  # what is correlated: pairs, or queries of a direction
    n: int  # how many
    coefficients: dict[str, Coefficient]  # Kendall's tau_b and tau_c, Spearman's and Pearson's


@dataclass(frozen=True)
class HumanAgreement(Tabular):
    line: str  # the judged pairs, their raters, and how intervals are made
    pairs: tuple[Agreement, ...]  # per kind of gain
    queries: tuple[Agreement, ...]  # per direction and measure
    left_out: dict[str, dict[str, int]]  # per direction and reason, queries without a condensed list

    def tables(self) -> list[Table]:
        tables = []
        for caption, what, found in (
            ("gains of pairs", "gain", self.pairs),
            ("measures of queries", "measure", self.queries),
        ):
            rows = []
            for one in found:
                coefficients = [each.cell for each in one.coefficients.values()]
                rows.append([Cell(one.what), Cell(one.over), Cell(f"{one.n:,}"), *coefficients])
            after = "–: one of the two is constant"
            if any(each.few for one in found for each in one.coefficients.values()):
                after += f", or below a number: no interval of fewer than {LEAST_HITS} images with a hit"
            columns = (what, "over", "n", "τ_b", "τ_c", "Spearman", "Pearson")
            tables.append(Table(f"agreement with people: {caption}", columns, rows, after=after))
        return tables

    def lines(self) -> list[str]:
        left_out = [
            f"{n:,} {direction} queries left out: {reason}"
            for direction, reasons in self.left_out.items()
            for reason, n in reasons.items()
            if n
        ]
        return [self.line, *left_out]


def condensed_gain(
    scores: np.ndarray, queries: np.ndarray, gains: np.ndarray, n_queries: int
) -> tuple[np.ndarray, dict[str, int]]:
    """Return (n_queries,) nDCG of each query's judged items, NaN where there is none; then how many have none.

    From (n,) scores, queries and people's gains of judged pairs; of tied items every order is equally likely.
    """
    counts = np.bincount(queries, minlength=n_queries)
    weights = discounts(int(counts.max(initial=1)))[places(counts)]
    order = np.lexsort((-scores, queries))
    query, ordered = queries[order], gains[order]
    group = np.cumsum(begins(query, scores[order])) - 1
    expected = (np.bincount(group, weights=ordered) / np.bincount(group))[group]
    total = np.bincount(query, weights=weights * expected, minlength=n_queries)
    ideal = gains[np.lexsort((-gains, queries))]
    best = np.bincount(query, weights=weights * ideal, minlength=n_queries)
    values = np.full(n_queries, np.nan)
    usable = (counts >= _LEAST) & (best > 0)
    values[usable] = np.minimum(total[usable] / best[usable], 1.0)
    few, irrelevant = (counts > 0) & (counts < _LEAST), (counts >= _LEAST) & (best <= 0)
    left_out = {
        f"fewer than {_LEAST} judged items": int(few.sum()),
        "nothing relevant to people": int(irrelevant.sum()),
    }
    return values, left_out


def agreement_with_people(
    judged: MatchedJudgements,
    source: ScoreSource,
    truth: GroundTruth,
    gains: Mapping[str, np.ndarray],
    per_query: Mapping[str, Mapping[str, np.ndarray]],
    how: Bootstrap | None = None,
) -> HumanAgreement:
    """Correlate kinds of gain with ratings of pairs, and measures with the nDCG of condensed lists.

    Intervals resample images: pairs with those of the same image, queries as everywhere.
    """
    how = how or Bootstrap(samples=0)
    labelled = truth.i2t.holds(judged.images, judged.captions)
    ratings, images = judged.ratings, judged.images
    pairs = [
        Agreement(what, "all pairs", len(ratings), correlate(values, ratings, images, how))
        for what, values in gains.items()
    ]
    for what, values in gains.items():
        some = values[~labelled]
        if len(some) and np.ptp(some) > 0:
            found = correlate(some, ratings[~labelled], images[~labelled], how)
            pairs.append(Agreement(what, "pairs that are no match", len(some), found))
    scores = source.pairs(images, judged.captions)
    of, _ = clusters(truth)
    queries: list[Agreement] = []
    left_out: dict[str, dict[str, int]] = {}
    for name in DIRECTIONS:
        query = images if name == "i2t" else judged.captions
        order, size = np.argsort(query, kind="stable"), truth.positives(name).n_queries
        gain = (ratings - judged.lowest)[order]
        human, left_out[name] = condensed_gain(scores[order], query[order], gain, size)
        for what, values in per_query.get(name, {}).items():
            member = measure(what)
            if isinstance(member, Sum) or not member.higher_is_better:
                continue
            use = np.isfinite(human) & np.isfinite(values)
            found = correlate(values[use], human[use], of[name][use], how)
            queries.append(Agreement(what, f"{name} queries", int(use.sum()), found))
    parts = [
        judged.line(),
        f"{len(ratings):,} judged pairs of {len(np.unique(images)):,} images, {labelled.sum():,} labelled",
        "queries by nDCG of their judged items only",
    ]
    parts += [interval_line(how)] if how.samples else []
    return HumanAgreement("; ".join(parts), tuple(pairs), tuple(queries), left_out)


JUDGEMENTS_FILE = "judgements.json"


def judge_encoded(
    encoded: EncodedCollection,
    result: Result,
    judged: Judged,
    folder: Path | str | None = None,
    *,
    positives: ExtendedPositives | None = None,
    relevance: Relevance | None = None,
    samples: int = 1000,
) -> HumanAgreement:
    """Correlate an evaluation with human ratings of pairs."""
    in_order = not str(result.protocol.about.get("captions", "all")).startswith("random")
    images, texts = encoded.images, encoded.texts
    found = match_judgements(judged, images.ids, texts.ids, encoded.caption_image, in_order=in_order)
    truth = ground_truth_of(encoded, positives)
    scores = similarity(encoded.similarity).source(images.rows, texts.rows, images.ids, texts.ids)
    pair = found.images, found.captions
    label = truth.i2t.holds(*pair).astype(np.float64)
    gains = {"label": label}
    judge, by = scores.cosines(), "the evaluated model"
    if relevance is not None:
        judge, by = relevance.source(truth.n_images, truth.n_texts), relevance.name
    if judge is not None:
        similar = judge.pairs(*pair)
        gains["label or similarity (DCG_CM)"] = np.where(label > 0, 1.0, np.clip(similar, 0.0, 1.0))
        gains[f"similarity by {by}"] = similar
    if relevance is not None or judge is None:
        gains["score of the evaluated model"] = scores.pairs(*pair)
    grades = grades_of(positives)
    if grades is not None:
        gains["grade"] = GradeTable(truth.i2t, "i2t", grades).of(*pair)
    agreement = agreement_with_people(found, scores, truth, gains, result.per_query, Bootstrap(samples))
    if folder is not None:
        write_json(Path(folder) / JUDGEMENTS_FILE, asdict(agreement))
    return agreement
