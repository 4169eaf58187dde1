"""From conditions to the rows of a result: what they cost, who is changed, the worst hit.

Who is changed: queries that lose, gain or stay, and whether conditions change the same ones.

Per query and condition the sum R@1 + R@5 + R@10 of the changed query is held against that of the clean one, so
a query *decreases*, *increases* or is *unchanged*. How far two conditions agree is the Jaccard similarity of
their sets of queries, group by group: ``|A ∩ B| / |A ∪ B|``. Over all pairs of conditions it is averaged; a pair
in which both sets are empty has no similarity, is left out of the mean, and is counted.

Source: thesis section 5.5.4 and Table 5.4, for which no code was published. Its groups are those of the published
``rsum_diff = rsum(none) - rsum(perturbed)`` of text-to-image retrieval. There runs are joined by the caption's
text, so a text that m captions share becomes m² rows; here every caption is one query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from diptych.analysis.perturbations import Perturbation
from diptych.core.errors import DataError, NumericalError
from diptych.data.collection import Collection
from diptych.data.language import words_of
from diptych.evaluation.drops import Drop, Paired, drops
from diptych.evaluation.stress.conditions import Condition, direction_of
from diptych.evaluation.stress.queries import RANK, RSUM, Queries
from diptych.evaluation.stress.result import Agreement, ChangedDrop, Example, LengthBin, Preference, StressRow
from diptych.metrics import Direction

CHANGE_GROUPS: Mapping[str, int] = {"decreased": -1, "increased": 1, "unchanged": 0}
"""The groups in the order of Table 5.4, and the number that stands for each."""


@dataclass(frozen=True)
class JaccardPair:
    """How far two conditions change the same queries."""

    first: str  # a condition
    second: str  # another
    decreased: float | None  # Jaccard similarity of the queries that decrease; None where none does in either
    increased: float | None  # of those that increase
    unchanged: float | None  # of those that stay


@dataclass(frozen=True)
class JaccardOver:
    """Agreement over all pairs of conditions."""

    n: int  # number of queries
    # per condition, how many queries are in each of :data:`CHANGE_GROUPS`
    sizes: Mapping[str, Mapping[str, int]]
    pairs: tuple[JaccardPair, ...]  # every pair of conditions, in their order
    decreased: float | None  # mean over the pairs that have a similarity; None where no pair has
    increased: float | None  # the same of queries that increase
    unchanged: float | None  # the same of queries that stay
    left_out: Mapping[str, int]  # per group, the pairs without a similarity: no query of that group in either


def change_groups(clean: np.ndarray, perturbed: np.ndarray) -> np.ndarray:
    """Which queries lose and gain.

    Args:
        clean: (n,) R@1 + R@5 + R@10 of each clean query, or any score of which more is better.
        perturbed: (n,) the same of the changed queries.

    Returns:
        (n,) int8: −1 where the changed query scores less, 1 where more, 0 where the same.
    """
    clean, perturbed = np.asarray(clean, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    if clean.ndim != 1 or clean.shape != perturbed.shape:
        raise DataError(f"values of shape {clean.shape} clean and {perturbed.shape} changed, (n,) expected")
    wrong = np.flatnonzero(np.isnan(clean) | np.isnan(perturbed))
    if len(wrong):
        row = int(wrong[0])
        raise NumericalError(
            f"query {row} is {clean[row]:g} clean and {perturbed[row]:g} changed, {len(wrong):,} are like that",
            "give the queries that are asked alone",
        )
    groups: np.ndarray = np.sign(perturbed - clean).astype(np.int8)
    return groups


def jaccard_over(conditions: Mapping[str, np.ndarray]) -> JaccardOver:
    """How far conditions change the same queries.

    Args:
        conditions: per condition, the (n,) groups of the same queries, of :func:`change_groups`.
    """
    if not conditions:
        raise DataError("no condition: at least one is needed, two for a similarity")
    sizes = {name: len(groups) for name, groups in conditions.items()}
    if len(set(sizes.values())) > 1:
        (first, one), (other, two) = min(sizes.items(), key=_size), max(sizes.items(), key=_size)
        raise DataError(f"{one:,} queries of {first} and {two:,} of {other}: the same ones are needed")
    names, found = list(conditions), {}
    counts: dict[str, dict[str, int]] = {name: {} for name in names}
    for group, number in CHANGE_GROUPS.items():
        members = np.stack([conditions[name] == number for name in names]).astype(np.float64)
        both = members @ members.T
        own = np.diag(both)
        either = own[:, None] + own[None, :] - both
        found[group] = np.divide(both, either, out=np.full_like(both, np.nan), where=either > 0)
        for name, size in zip(names, own, strict=True):
            counts[name][group] = int(size)
    places = list(combinations(range(len(names)), 2))
    of = {
        group: [None if np.isnan(value := float(table[pair])) else value for pair in places]
        for group, table in found.items()
    }
    present = {group: [value for value in values if value is not None] for group, values in of.items()}
    means = {group: sum(values) / len(values) if values else None for group, values in present.items()}
    return JaccardOver(
        n=next(iter(sizes.values())),
        sizes=counts,
        pairs=tuple(
            JaccardPair(names[one], names[two], **{group: of[group][row] for group in CHANGE_GROUPS})
            for row, (one, two) in enumerate(places)
        ),
        **means,
        left_out={group: len(places) - len(values) for group, values in present.items()},
    )


def _size(item: tuple[str, int]) -> int:
    return item[1]


Made = Sequence[tuple[Perturbation, Sequence[Condition]]]
"""Perturbations with their conditions, one per seed."""

Clean = Mapping[Direction, Mapping[str, np.ndarray]]
"""Values of clean queries per direction and measure."""

_PREFERENCE = "preference"


def drops_of(
    made: Made,
    clean: Clean,
    sides: Mapping[Direction, Queries],
    measures: Sequence[str],
    how: Mapping[str, Any],
) -> dict[tuple[str, str], Drop]:
    """Drops over all queries by perturbation and measure, corrected over all of them; arguments as of
    :func:`~diptych.evaluation.stress.summary.rows_of`."""
    pairs = [
        Paired(
            one.name,
            measure,
            clean[direction_of(one)][measure],
            np.stack([condition.values[measure] for condition in conditions]),
            sides[direction_of(one)].cluster,
        )
        for one, conditions in made
        for measure in measures
    ]
    return {(drop.condition, drop.measure): drop for drop in drops(pairs, **how)}


def changed_drops_of(
    name: str,
    conditions: Sequence[Condition],
    clean: Mapping[str, np.ndarray],
    side: Queries,
    measures: Sequence[str],
    how: Mapping[str, Any],
) -> dict[str, ChangedDrop]:
    """Drops per measure over the queries that one perturbation changed, a query of another seed being another."""
    changed = np.stack([condition.changed for condition in conditions])
    if not changed.any():
        return {}
    cluster = np.tile(side.cluster, len(conditions))
    pairs = [
        Paired(
            name,
            measure,
            np.where(changed, clean[measure], np.nan).reshape(-1),
            np.concatenate([condition.values[measure] for condition in conditions]),
            cluster,
        )
        for measure in measures
    ]
    found = drops(pairs, **{**how, "flips": 1})  # p-values are those of all queries
    return {
        drop.measure: ChangedDrop(
            drop.clean, drop.perturbed, drop.difference, drop.low, drop.high, drop.relative
        )
        for drop in found
    }


def preferences_of(
    made: Made, sides: Mapping[Direction, Queries], how: Mapping[str, Any]
) -> dict[str, Preference]:
    """Of perturbations after which a good model should prefer the clean caption, where any was changed."""
    pairs, ties = [], {}
    for one, conditions in made:
        if direction_of(one) != "t2i" or one.keeps_meaning:
            continue
        each = np.stack([condition.preference for condition in conditions])
        there = ~np.isnan(each)
        asked = there.any(axis=0)
        if not asked.any():
            continue
        mean = np.divide(
            np.where(there, each, 0.0).sum(axis=0),
            there.sum(axis=0),
            out=np.full(len(asked), 0.5),
            where=asked,
        )
        blind = np.where(asked, 0.5, np.nan)
        ties[one.name] = float(np.mean(each[there] == 0.5))
        pairs.append(Paired(one.name, _PREFERENCE, blind, mean, sides["t2i"].cluster))
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


_EXAMPLES = 5
_BINS = 4


def rows_of(
    made: Made,
    clean: Clean,
    sides: Mapping[Direction, Queries],
    collection: Collection,
    measures: Sequence[str],
    how: Mapping[str, Any],
) -> tuple[StressRow, ...]:
    """One row per perturbation."""
    found = drops_of(made, clean, sides, measures, how)
    preferences = preferences_of(made, sides, how)
    words = np.array([len(words_of(caption)) for caption in collection.captions], dtype=np.int64)
    rows = []
    for perturbation, conditions in made:
        direction, name = direction_of(perturbation), perturbation.name
        side, before = sides[direction], clean[direction]
        groups = _groups(conditions, before)
        rows.append(
            StressRow(
                name=name,
                description=perturbation.description,
                group=perturbation.group,
                source=perturbation.source,
                keeps_meaning=perturbation.keeps_meaning,
                direction=direction,
                options=dict(conditions[0].options),
                queries=len(side),
                changed=[int(one.changed.sum()) for one in conditions],
                same=[int(one.same.sum()) for one in conditions],
                draws=len({one.content for one in conditions}),
                reasons=dict(sum((Counter(one.reasons) for one in conditions), Counter()).most_common()),
                drops={measure: found[name, measure] for measure in measures},
                changed_drops=changed_drops_of(name, conditions, before, side, measures, how),
                sizes={group: float(np.mean(groups == number)) for group, number in CHANGE_GROUPS.items()},
                preference=preferences.get(name),
                lengths=_lengths(conditions, before, groups, words) if direction == "t2i" else (),
                examples=_examples(conditions, before, side, collection),
            )
        )
    return tuple(rows)


def agreements(made: Made, clean: Clean) -> dict[str, Agreement]:
    """How far perturbations change the same queries, per direction with two of them or more."""
    found = {}
    for direction in clean:
        some = [(one.name, conditions) for one, conditions in made if direction_of(one) == direction]
        if len(some) < 2:
            continue
        groups = {name: _groups(conditions, clean[direction]) for name, conditions in some}
        seeds = len(some[0][1])
        each = [jaccard_over({name: given[seed] for name, given in groups.items()}) for seed in range(seeds)]
        found[str(direction)] = Agreement(
            **{group: _mean([getattr(one, group) for one in each]) for group in CHANGE_GROUPS},
            pairs=tuple(
                {
                    "first": pairs[0].first,
                    "second": pairs[0].second,
                    **{group: _mean([getattr(one, group) for one in pairs]) for group in CHANGE_GROUPS},
                }
                for pairs in zip(*(one.pairs for one in each), strict=True)
            ),
            left_out={group: sum(one.left_out[group] for one in each) for group in CHANGE_GROUPS},
        )
    return found


def _groups(conditions: Sequence[Condition], clean: Mapping[str, np.ndarray]) -> np.ndarray:
    """(seeds, n) −1, 0, 1: what became of every query's R@1 + R@5 + R@10."""
    return np.stack([change_groups(clean[RSUM], condition.values[RSUM]) for condition in conditions])


def _lengths(
    conditions: Sequence[Condition], clean: Mapping[str, np.ndarray], groups: np.ndarray, words: np.ndarray
) -> tuple[LengthBin, ...]:
    """Captions by quarters of their lengths in words."""
    mean = np.mean([condition.values[RSUM] for condition in conditions], axis=0) - clean[RSUM]
    decreased = np.mean(groups == CHANGE_GROUPS["decreased"], axis=0)
    ends = np.unique(np.quantile(words, np.arange(1, _BINS + 1) / _BINS, method="inverted_cdf"))
    found, below = [], -1
    for end in ends.tolist():
        inside = (words > below) & (words <= end)
        found.append(
            LengthBin(
                low=int(words[inside].min()),
                high=int(end),
                captions=int(inside.sum()),
                decreased=float(decreased[inside].mean()),
                difference=float(mean[inside].mean()),
            )
        )
        below = int(end)
    return tuple(found)


def _examples(
    conditions: Sequence[Condition], clean: Mapping[str, np.ndarray], side: Queries, collection: Collection
) -> tuple[Example, ...]:
    """The worst hit over all seeds, each picture once."""
    found = []
    for condition in conditions:
        texts = list(condition.worst_texts) or [""] * len(condition.worst)
        for query, first, text in zip(condition.worst.tolist(), condition.worst_first, texts, strict=True):
            example = Example(
                query=str(side.ids[query]),
                seed=condition.seed,
                before=float(clean[RANK][query]),
                after=float(condition.rank[query]),
                first_before=str(side.gallery_ids[int(first[0])]),
                first_after=str(side.gallery_ids[int(first[1])]),
                expected=str(side.gallery_ids[int(side.positives.of(query)[0])]),
                clean=str(collection.captions[query]) if side.direction == "t2i" else "",
                changed=text,
            )
            found.append((example.before / example.after, int(side.cluster[query]), example))
    found.sort(key=lambda one: one[0])  # stable: of equal falls the first seed's
    seen: set[int] = set()
    chosen: list[Example] = []
    for _, cluster, example in found:
        if cluster not in seen and len(chosen) < _EXAMPLES:
            seen.add(cluster)
            chosen.append(example)
    return tuple(chosen)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
