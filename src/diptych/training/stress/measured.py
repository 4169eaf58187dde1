"""From changed queries and their rows to a condition: only what the encoder sees changed is ranked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from diptych.training.stress.asking import RANK, Asking
from diptych.training.stress.change import Change, same_rows
from diptych.training.stress.condition import Condition

__all__ = ["WORST", "measured"]

WORST = 20
"""Queries that a condition keeps as the worst hit."""


def measured(
    side: Asking,
    clean: Mapping[str, np.ndarray],
    measures: Sequence[str],
    change: Change,
    rows: np.ndarray,
    relevant: np.ndarray | None,
    *,
    perturbation: str,
    seed: int,
    key: str,
) -> Condition:
    """Rank changed queries against the gallery; all others keep their clean values, bit for bit.

    Args:
        side: the queries, clean, and their gallery.
        clean: values of the clean queries, :data:`RANK` among them.
        measures: names of what is measured.
        change: which queries were changed.
        rows: (q, d) of those.
        relevant: (q, e) of those by a relevance model that reads changed queries; else None.
        perturbation, seed, key: of the condition.
    """
    places = change.places
    alike = same_rows(rows, side.rows[places])
    same = np.zeros(len(side), dtype=bool)
    same[places[alike]] = True
    rows = np.where(alike[:, None], side.rows[places], rows)
    # The same row ranks the same; only a relevance model may still see another query.
    again = np.ones(len(places), dtype=bool) if relevant is not None else ~alike
    values = {name: given.copy() for name, given in clean.items()}
    if again.any():
        part = None if relevant is None else relevant[again]
        for name, found in side.measured(measures, rows[again], places[again], part).items():
            values[name][places[again]] = found
    rank = values.pop(RANK)
    preference = np.full(len(side), np.nan)
    if side.direction == "t2i" and len(places):
        before, after = (side.own_scores(given, places) for given in (side.rows[places], rows))
        preference[places] = np.where(before == after, 0.5, before > after)
    worst = _worst(clean[RANK], rank, side.cluster)
    among = np.searchsorted(places, worst)  # a query that fell was changed, and places ascend
    first = np.empty((len(worst), 2), dtype=np.int64)
    if len(worst):
        first[:, 0], first[:, 1] = side.best(side.rows[worst]), side.best(rows[among])
    return Condition(
        perturbation=perturbation,
        seed=seed,
        key=key,
        content=change.content,
        options=change.options,
        reasons=change.reasons,
        changed=change.changed,
        same=same,
        values=values,
        rank=rank,
        preference=preference,
        worst=worst,
        worst_first=first,
        worst_texts=[change.texts[place] for place in among.tolist()] if change.texts else (),
    )


def _worst(clean: np.ndarray, rank: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Queries that fell by the greatest factor, at most one of a picture; of equal falls the first."""
    fall = rank / clean
    order = np.argsort(-fall, kind="stable")
    order = order[fall[order] > 1]
    _, first = np.unique(cluster[order], return_index=True)
    found: np.ndarray = order[np.sort(first)][:WORST]
    return found
