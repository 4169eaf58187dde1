"""Scores of all sessions of a table as a folder: a line per session and step, and what they are worth.

::

    SCORES/
      scores.json     which scorer and table, and measures by setting and step
      scores.csv      session_id, setting, step, p, likely, bought
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.scoring.fitting import TrainOptions, holdout_measures
from diptych.commerce.purchase_intent.scoring.scorer import Scorer
from diptych.commerce.purchase_intent.scoring.training import scorer_slices
from diptych.core.files import atomic_folder, write_csv, write_json
from diptych.core.progress import track

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable

MARKER = "scores.json"
SCORES = "scores.csv"
_HEAD = ("session_id", "setting", "step", "p", "likely", "bought")


def write_table_scores(
    scorer: Scorer,
    features: FeatureTable,
    folder: Path | str,
    *,
    settings: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Score a table and write the folder; gives what ``scores.json`` says.

    Where the table is the one that the scorer was trained on, measures are of its last part alone, of which the
    scorer has learned nothing; ``measured`` says so.
    """
    options = TrainOptions(**scorer.about["options"])
    own = features.fingerprint == scorer.about["fingerprint"]
    fresh = scorer_slices(features, options).holdout if own else np.ones(len(features), dtype=bool)
    rows: list[dict[str, Any]] = []
    places = [
        (setting, step)
        for setting, step in scorer.places
        if (settings is None or setting in settings) and (steps is None or step in steps)
    ]

    def lines() -> Iterator[tuple[object, ...]]:
        scored = scorer.score_table(features, settings=settings, steps=steps)
        for found in track(scored, "scoring", len(places), "models"):
            cell, bought = found.cell, features.labels[found.rows]
            likely = found.p >= cell.threshold
            for session, p, is_likely, label in zip(
                features.session_ids[found.rows], found.p, likely, bought, strict=True
            ):
                yield session, cell.setting, cell.step, repr(float(p)), int(is_likely), int(label)
            measured = fresh[found.rows]
            measures = holdout_measures(
                found.p[measured],
                bought[measured],
                features.persons[found.rows][measured],
                cell.threshold,
                options,
            )
            rows.append(
                {"setting": cell.setting, "step": cell.step, "scored": len(found.rows), "measures": measures}
            )

    with atomic_folder(folder, MARKER) as inside:
        write_csv(inside / SCORES, _HEAD, lines())
        about = {
            "format": 1,
            "scorer": scorer.describe(),
            "features": features.describe(),
            "features_fingerprint": features.fingerprint,
            "measured": "the last part, of which the scorer has learned nothing" if own else "all sessions",
            "cells": rows,
        }
        write_json(inside / MARKER, about)
    return about
