"""StressResult: what every perturbation costs, who is changed, the worst hit, and the protocol that made the numbers.

Per query and condition the sum R@1 + R@5 + R@10 of the changed query is held against that of the clean one, so
a query *decreases*, *increases* or is *unchanged*. How far two conditions agree is the Jaccard similarity of
their sets of queries, group by group: ``|A ∩ B| / |A ∪ B|``. Over all pairs of conditions it is averaged; a pair
in which both sets are empty has no similarity, is left out of the mean, and is counted.

Source: thesis section 5.5.4 and Table 5.4, for which no code was published. Its groups are those of the published
``rsum_diff = rsum(none) - rsum(perturbed)`` of text-to-image retrieval. There runs are joined by the caption's
text, so a text that m captions share becomes m² rows; here every caption is one query.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from diptych.analysis.perturbations import Perturbation
from diptych.core.artifact import Artifact
from diptych.core.errors import UnknownNameError
from diptych.core.table import Table, Tabular
from diptych.data.collection import Collection
from diptych.data.language import words_of
from diptych.evaluation.drops import Drop, Paired, drops
from diptych.evaluation.stress.conditions import Condition
from diptych.evaluation.stress.queries import RANK, RSUM, Queries
from diptych.metrics import Direction

CLEAN = "clean.npz"  # values of the clean queries, next to the result


@dataclass(frozen=True)
class ChangedDrop:
    """The drop of one measure over only the queries that were changed, all seeds together.

    Queries that could not be changed lose nothing and thin the drop over all of them; its p-value is of both,
    as the queries that stay add nothing to either difference.
    """

    clean: float  # of the clean queries, each as often as seeds changed it
    perturbed: float
    difference: float
    low: float | None
    high: float | None
    relative: float | None


@dataclass(frozen=True)
class Preference:
    """Share of captions whose own image scores the clean caption higher than the changed one."""

    captions: int  # that were changed, with any seed
    share: float  # ties count one half, so one half is what an encoder has that cannot tell them apart
    ties: float  # share of ties
    low: float | None
    high: float | None
    corrected: float  # p-value against one half, corrected over the perturbations that have a preference


@dataclass(frozen=True)
class LengthBin:
    low: int  # words of the shortest
    high: int  # words of the longest
    captions: int  # how many
    decreased: float  # share whose R@1 + R@5 + R@10 went down, the mean over seeds
    difference: float  # what that sum lost on average, in per cent, below 0 where it lost


@dataclass(frozen=True)
class Example:
    """A query whose best positive's rank grew by a great factor."""

    query: str  # its id
    seed: int  # of the perturbation
    before: float  # rank of its best positive, clean; from 1
    after: float  # the same, changed
    first_before: str  # id of the item that it found first, clean
    first_after: str  # the same, changed
    expected: str  # id of a positive
    clean: str = ""  # its text, where it is a caption
    changed: str = ""  # its changed text


@dataclass(frozen=True)
class Declared:
    """One perturbation, as it declares itself."""

    name: str
    description: str
    group: str
    source: str
    keeps_meaning: bool
    direction: str  # ``"t2i"``: captions are perturbed and ask for images; ``"i2t"``: the other way round
    options: Mapping[str, Any]  # what it was run with


@dataclass(frozen=True)
class StressRow(Declared):
    """One perturbation and what it costs."""

    queries: int  # how many ask
    changed: Sequence[int]  # per seed, how many of them it changed
    same: Sequence[int]  # per seed, how many of those the encoder gives the very row of the clean query
    draws: int  # how many different sets of changed queries the seeds gave; 1 where nothing is left to chance
    reasons: Mapping[str, int]  # why others stayed as they were, and how many, over all seeds
    drops: Mapping[str, Drop]  # per measure, over all queries
    changed_drops: Mapping[str, ChangedDrop]  # per measure; empty where it changed none
    sizes: Mapping[str, float]  # shares that decreased, increased and are unchanged in R@1 + R@5 + R@10
    preference: Preference | None = None  # of captions whose meaning changed
    lengths: tuple[LengthBin, ...] = ()  # of captions, the shortest first
    examples: tuple[Example, ...] = ()  # the worst hit

    @property
    def changed_share(self) -> float:
        """Return the mean share of queries that were changed."""
        return sum(self.changed) / (self.queries * len(self.changed))

    @property
    def same_share(self) -> float:
        """Return the share of changed queries that the encoder cannot tell from the clean ones; 0 of none."""
        return sum(self.same) / max(1, sum(self.changed))

    def drop(self, measure: str) -> Drop:
        if measure not in self.drops:
            raise UnknownNameError("measure", measure, self.drops)
        return self.drops[measure]


@dataclass(frozen=True)
class Agreement:
    """Overlap of the queries that perturbations of one direction change (thesis, Table 5.4)."""

    # Mean Jaccard similarity over pairs of perturbations and seeds; None where no pair has one.
    decreased: float | None
    increased: float | None
    unchanged: float | None
    pairs: Sequence[Mapping[str, Any]]  # ``first``, ``second``, and the three, means over seeds
    left_out: Mapping[str, int]  # per group, pairs without a similarity, summed over seeds


@dataclass(frozen=True)
class StressResult(
    Tabular, Artifact, kind="stress", version=3, recreate="the command of diptych analyse stress once more"
):
    key: str  # what it was made of, by content
    model: str  # what reports call the encoder
    protocol: Mapping[str, Any]  # what every number depends on, by name
    method: str  # how intervals and p-values were made, one line
    measures: Sequence[str]  # in the requested order
    clean: Mapping[str, Mapping[str, float]]  # per direction and measure, the mean over clean queries
    rows: tuple[StressRow, ...]  # one per perturbation
    left_out: Mapping[str, str] = field(default_factory=dict)  # perturbations that could not be run, and why
    agreement: Mapping[str, Agreement] = field(default_factory=dict)  # per direction with two or more
    notes: Sequence[str] = ()  # what a reader of the numbers should know besides
    opened: bool = field(default=False, init=False, compare=False)  # found finished; not kept

    def row(self, perturbation: str) -> StressRow:
        found = {row.name: row for row in self.rows}
        if perturbation not in found:
            raise UnknownNameError("perturbation of this run", perturbation, found)
        return found[perturbation]

    def protocol_line(self) -> str:
        return "; ".join(f"{name} {value}" for name, value in self.protocol.items())

    def tables(self) -> list[Table]:
        """Return everything that was found; what is long is folded."""
        from diptych.evaluation.stress.tables import stress_tables

        return stress_tables(self)

    def lines(self) -> list[str]:
        """Return how the tables are read, what they say in a sentence, and how they were made."""
        from diptych.evaluation.stress.tables import COST_LEGEND, stress_summary

        return [COST_LEGEND, stress_summary(self), *self.notes, self.protocol_line(), self.method]


CHANGE_GROUPS: Mapping[str, int] = {"decreased": -1, "increased": 1, "unchanged": 0}
"""The groups in the order of Table 5.4, and the number that stands for each."""


def jaccard(
    groups: np.ndarray,  # (conditions, n) −1 where the changed query scores less, 1 where more, 0 where the same
) -> dict[str, list[float | None]]:
    """Return per group how far every pair of conditions changes the same queries; None where both sets are empty."""
    found = {}
    for group, number in CHANGE_GROUPS.items():
        members = (groups == number).astype(np.float64)
        both = members @ members.T
        own = np.diag(both)
        either = own[:, None] + own[None, :] - both
        found[group] = [
            float(both[pair] / either[pair]) if either[pair] else None
            for pair in combinations(range(len(groups)), 2)
        ]
    return found


Made = Sequence[tuple[Perturbation, Sequence[Condition]]]  # perturbations with a condition per seed
CleanValues = Mapping[str, Mapping[str, np.ndarray]]  # values of clean queries by measure


def _changed_drops(
    name: str,
    conditions: Sequence[Condition],
    clean: Mapping[str, np.ndarray],
    side: Queries,
    measures: Sequence[str],
    how: Mapping[str, Any],
) -> dict[str, ChangedDrop]:
    """Return drops over the queries that one perturbation changed, a query of another seed being another."""
    changed = np.stack([condition.changed for condition in conditions])
    if not changed.any():
        return {}
    cluster = np.tile(side.cluster, len(conditions))
    pairs = []
    for measure in measures:
        before = np.where(changed, clean[measure], np.nan).reshape(-1)
        after = np.concatenate([condition.values[measure] for condition in conditions])
        pairs.append(Paired(name, measure, before, after, cluster))
    found = drops(pairs, **{**how, "flips": 1})  # p-values are those of all queries
    fields = ("clean", "perturbed", "difference", "low", "high", "relative")
    return {drop.measure: ChangedDrop(*(getattr(drop, field) for field in fields)) for drop in found}


def _preferences(
    made: Made, sides: Mapping[Direction, Queries], how: Mapping[str, Any]
) -> dict[str, Preference]:
    pairs, ties = [], {}
    for one, conditions in made:
        if one.direction != "t2i" or one.keeps_meaning:
            continue
        each = np.stack([condition.preference for condition in conditions])
        changed = ~np.isnan(each)
        ever = changed.any(axis=0)
        if not ever.any():
            continue
        total, count = np.where(changed, each, 0.0).sum(axis=0), changed.sum(axis=0)
        mean = np.divide(total, count, out=np.full(len(ever), 0.5), where=ever)
        ties[one.name] = float(np.mean(each[changed] == 0.5))
        blind = np.where(ever, 0.5, np.nan)
        pairs.append(Paired(one.name, "preference", blind, mean, sides["t2i"].cluster))
    return {
        drop.condition: Preference(
            captions=int((~np.isnan(pair.clean)).sum()),
            share=drop.perturbed,
            ties=ties[drop.condition],
            low=None if drop.low is None else 0.5 + drop.low,
            high=None if drop.high is None else 0.5 + drop.high,
            corrected=drop.corrected,
        )
        for pair, drop in zip(pairs, drops(pairs, **how), strict=True)
    }


_DECLARED = ("name", "description", "group", "source", "keeps_meaning", "direction")
_EXAMPLES = 5
_BINS = 4


def rows_of(
    made: Made,
    clean: CleanValues,
    sides: Mapping[Direction, Queries],
    collection: Collection,
    measures: Sequence[str],
    how: Mapping[str, Any],
) -> tuple[StressRow, ...]:
    """Return one row per perturbation, p-values corrected over all rows and measures."""
    pairs = []
    for (one, conditions), measure in product(made, measures):
        given, cluster = clean[one.direction][measure], sides[one.direction].cluster
        after = np.stack([condition.values[measure] for condition in conditions])
        pairs.append(Paired(one.name, measure, given, after, cluster))
    found = {(drop.condition, drop.measure): drop for drop in drops(pairs, **how)}
    preferences = _preferences(made, sides, how)
    words = np.array([len(words_of(caption)) for caption in collection.captions], dtype=np.int64)
    rows = []
    for perturbation, conditions in made:
        direction, name = perturbation.direction, perturbation.name
        side, before = sides[direction], clean[direction]
        groups = _groups(conditions, before)
        rows.append(
            StressRow(
                **{field: getattr(perturbation, field) for field in _DECLARED},
                options=dict(conditions[0].options),
                queries=len(side),
                changed=[int(one.changed.sum()) for one in conditions],
                same=[int(one.same.sum()) for one in conditions],
                draws=len({one.content for one in conditions}),
                reasons=dict(sum((Counter(one.reasons) for one in conditions), Counter()).most_common()),
                drops={measure: found[name, measure] for measure in measures},
                changed_drops=_changed_drops(name, conditions, before, side, measures, how),
                sizes={group: float(np.mean(groups == number)) for group, number in CHANGE_GROUPS.items()},
                preference=preferences.get(name),
                lengths=_lengths(conditions, before, groups, words) if direction == "t2i" else (),
                examples=_examples(conditions, before, side, collection),
            )
        )
    return tuple(rows)


def agreements(made: Made, clean: CleanValues) -> dict[str, Agreement]:
    """Return how far perturbations change the same queries, per direction with two of them or more."""
    found = {}
    for direction in clean:
        some = [(one.name, conditions) for one, conditions in made if one.direction == direction]
        if len(some) < 2:
            continue
        groups = np.stack([_groups(conditions, clean[direction]) for _, conditions in some], axis=1)
        each = [jaccard(seed) for seed in groups]
        pairs = [
            {"first": first, "second": second}
            | {group: _mean([one[group][place] for one in each]) for group in CHANGE_GROUPS}
            for place, (first, second) in enumerate(combinations([name for name, _ in some], 2))
        ]
        found[direction] = Agreement(
            **{group: _mean([_mean(one[group]) for one in each]) for group in CHANGE_GROUPS},
            pairs=tuple(pairs),
            left_out={group: sum(one[group].count(None) for one in each) for group in CHANGE_GROUPS},
        )
    return found


def _groups(conditions: Sequence[Condition], clean: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return (seeds, n) −1, 0, 1: what became of every query's R@1 + R@5 + R@10."""
    return np.stack([np.sign(condition.values[RSUM] - clean[RSUM]) for condition in conditions])


def _lengths(
    conditions: Sequence[Condition], clean: Mapping[str, np.ndarray], groups: np.ndarray, words: np.ndarray
) -> tuple[LengthBin, ...]:
    mean = np.mean([condition.values[RSUM] for condition in conditions], axis=0) - clean[RSUM]
    decreased = np.mean(groups == CHANGE_GROUPS["decreased"], axis=0)
    ends = np.unique(np.quantile(words, np.arange(1, _BINS + 1) / _BINS, method="inverted_cdf"))
    found = []
    for below, end in pairwise([-1, *ends.astype(int).tolist()]):
        inside = (words > below) & (words <= end)
        low, count = int(words[inside].min()), int(inside.sum())
        lost = float(decreased[inside].mean()), float(mean[inside].mean())
        found.append(LengthBin(low, end, count, *lost))
    return tuple(found)


def _examples(
    conditions: Sequence[Condition], clean: Mapping[str, np.ndarray], side: Queries, collection: Collection
) -> tuple[Example, ...]:
    found = []
    for condition in conditions:
        for query, first in zip(condition.worst.tolist(), condition.worst_first, strict=True):
            example = Example(
                query=str(side.ids[query]),
                seed=condition.seed,
                before=float(clean[RANK][query]),
                after=float(condition.rank[query]),
                first_before=str(side.gallery_ids[int(first[0])]),
                first_after=str(side.gallery_ids[int(first[1])]),
                expected=str(side.gallery_ids[int(side.positives.of(query)[0])]),
                clean=str(collection.captions[query]) if side.direction == "t2i" else "",
                changed=condition.texts.get(str(side.ids[query]), ""),
            )
            found.append((example.before / example.after, int(side.cluster[query]), example))
    chosen: dict[int, Example] = {}
    found.sort(key=lambda one: one[0])  # stable: of equal falls the first seed's
    for _, cluster, example in found:
        chosen.setdefault(cluster, example)
    return tuple(chosen.values())[:_EXAMPLES]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
