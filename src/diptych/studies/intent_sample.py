"""A part of a large table of features: all sessions of persons drawn at random."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from diptych.core.fingerprint import fingerprint

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


def sampled(features: FeatureTable, sessions: int, seed: int) -> FeatureTable:
    """The sessions of persons drawn at random, until there are ``sessions`` of them or a few more; all where there
    are no more. It is the table's own folder: nothing is written."""
    import numpy as np

    if len(features) <= sessions:
        return features
    persons, inverse = np.unique(features.persons, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(persons))
    counts = np.bincount(inverse, minlength=len(persons))[order]
    chosen = np.zeros(len(persons), dtype=bool)
    chosen[order[: int(np.searchsorted(np.cumsum(counts), sessions)) + 1]] = True
    rows = np.flatnonzero(chosen[inverse])
    about = {**features.about, "fingerprint": fingerprint(features.fingerprint, "sampled", sessions, seed)}
    return replace(
        features,
        about=about,
        view=features.view.take(rows),
        session_ids=features.session_ids[rows],
        persons=features.persons[rows],
        start_us=features.start_us[rows],
        end_us=features.end_us[rows],
        pages_before_identified=features.pages_before_identified[rows],
    )
