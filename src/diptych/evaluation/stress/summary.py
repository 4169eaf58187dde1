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
from itertools import combinations
from typing import Any

import numpy as np

from diptych.analysis.perturbations import Perturbation
from diptych.data.collection import Collection
from diptych.data.language import words_of
from diptych.evaluation.drops import Paired, drops
from diptych.evaluation.stress.conditions import Condition, direction_of
from diptych.evaluation.stress.queries import RANK, RSUM, Queries
from diptych.evaluation.stress.result import Agreement, ChangedDrop, Example, LengthBin, Preference, StressRow
from diptych.metrics import Direction

CHANGE_GROUPS: Mapping[str, int] = {"decreased": -1, "increased": 1, "unchanged": 0}
"""The groups in the order of Table 5.4, and the number that stands for each."""


def jaccard(groups: np.ndarray) -> dict[str, list[float | None]]:
    """Return how far conditions change the same queries.

    Args:
        groups: (conditions, n) −1 where the changed query scores less, 1 where more, 0 where the same.

    Returns:
        Per group the similarity of every pair of conditions, in their order; None where both sets are empty.
    """
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


Made = Sequence[tuple[Perturbation, Sequence[Condition]]]
"""Perturbations with their conditions, one per seed."""

Clean = Mapping[Direction, Mapping[str, np.ndarray]]
"""Values of clean queries per direction and measure."""


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
    fields = ("clean", "perturbed", "difference", "low", "high", "relative")
    return {drop.measure: ChangedDrop(*(getattr(drop, field) for field in fields)) for drop in found}


def _preferences(
    made: Made, sides: Mapping[Direction, Queries], how: Mapping[str, Any]
) -> dict[str, Preference]:
    """Return those of perturbations after which a good model should prefer the clean caption."""
    pairs, ties = [], {}
    for one, conditions in made:
        if direction_of(one) != "t2i" or one.keeps_meaning:
            continue
        each = np.stack([condition.preference for condition in conditions])
        there = ~np.isnan(each)
        asked = there.any(axis=0)
        if not asked.any():
            continue
        total, count = np.where(there, each, 0.0).sum(axis=0), there.sum(axis=0)
        mean = np.divide(total, count, out=np.full(len(asked), 0.5), where=asked)
        blind = np.where(asked, 0.5, np.nan)
        ties[one.name] = float(np.mean(each[there] == 0.5))
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


_DECLARED = ("name", "description", "group", "source", "keeps_meaning")
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
    """Return one row per perturbation, p-values corrected over all rows and measures."""
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
    found = {(drop.condition, drop.measure): drop for drop in drops(pairs, **how)}
    preferences = _preferences(made, sides, how)
    words = np.array([len(words_of(caption)) for caption in collection.captions], dtype=np.int64)
    rows = []
    for perturbation, conditions in made:
        direction, name = direction_of(perturbation), perturbation.name
        side, before = sides[direction], clean[direction]
        groups = _groups(conditions, before)
        rows.append(
            StressRow(
                **{field: getattr(perturbation, field) for field in _DECLARED},
                direction=direction,
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


def agreements(made: Made, clean: Clean) -> dict[str, Agreement]:
    """Return how far perturbations change the same queries, per direction with two of them or more."""
    found = {}
    for direction in clean:
        some = [(one.name, conditions) for one, conditions in made if direction_of(one) == direction]
        if len(some) < 2:
            continue
        groups = np.stack([_groups(conditions, clean[direction]) for _, conditions in some], axis=1)
        each = [jaccard(seed) for seed in groups]
        pairs = [
            {"first": first, "second": second}
            | {group: _mean([one[group][place] for one in each]) for group in CHANGE_GROUPS}
            for place, (first, second) in enumerate(combinations([name for name, _ in some], 2))
        ]
        found[str(direction)] = Agreement(
            **{group: _mean([_mean(one[group]) for one in each]) for group in CHANGE_GROUPS},
            pairs=tuple(pairs),
            left_out={group: sum(one[group].count(None) for one in each) for group in CHANGE_GROUPS},
        )
    return found


def _groups(conditions: Sequence[Condition], clean: Mapping[str, np.ndarray]) -> np.ndarray:
    """(seeds, n) −1, 0, 1: what became of every query's R@1 + R@5 + R@10."""
    return np.stack([np.sign(condition.values[RSUM] - clean[RSUM]) for condition in conditions])


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
    """Return the worst hit over all seeds, each picture once."""
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
