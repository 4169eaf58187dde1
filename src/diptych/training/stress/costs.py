"""What perturbations cost: drops over all queries and over the changed ones, and what is preferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.analysis.perturbations import Perturbation
from diptych.evaluation import Direction
from diptych.evaluation.drops import Drop, Paired, drops
from diptych.training.stress.asking import Asking
from diptych.training.stress.condition import Condition
from diptych.training.stress.conditions import direction_of
from diptych.training.stress.rows import ChangedDrop, Preference

__all__ = ["Clean", "Made", "changed_drops_of", "drops_of", "preferences_of"]

Made = Sequence[tuple[Perturbation, Sequence[Condition]]]
"""Perturbations with their conditions, one per seed."""

Clean = Mapping[Direction, Mapping[str, np.ndarray]]
"""Values of clean queries per direction and measure."""

_PREFERENCE = "preference"


def drops_of(
    made: Made,
    clean: Clean,
    sides: Mapping[Direction, Asking],
    measures: Sequence[str],
    how: Mapping[str, Any],
) -> dict[tuple[str, str], Drop]:
    """Drops over all queries by perturbation and measure, corrected over all of them; arguments as of
    :func:`~diptych.training.stress.summary.rows_of`."""
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
    side: Asking,
    measures: Sequence[str],
    how: Mapping[str, Any],
) -> dict[str, ChangedDrop]:
    """Drops per measure over the queries that one perturbation changed, a query of another seed being another.

    Args:
        name: of the perturbation.
        conditions: one per seed.
        clean: values of the clean queries.
        side: the queries.
        measures: what is reported.
        how: of :func:`diptych.evaluation.drops.drops`.
    """
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
    made: Made, sides: Mapping[Direction, Asking], how: Mapping[str, Any]
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
