"""Scores of all sessions of a table as a folder: a line per session and step, and what they are worth.

::

    SCORES/
      scores.json     which scorer and table, and measures by setting and step
      scores.csv      session_id, setting, step, p, likely, bought
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation import Evaluation, GivenScores, evaluate_scores
from diptych.commerce.purchase_intent.options import TrainOptions
from diptych.commerce.purchase_intent.scoring.events import shown
from diptych.commerce.purchase_intent.scoring.fitting import holdout_measures
from diptych.commerce.purchase_intent.scoring.request import SessionStream
from diptych.commerce.purchase_intent.scoring.scorer import Scorer
from diptych.commerce.purchase_intent.scoring.training import scorer_slices
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.errors import DataError
from diptych.core.files import atomic_folder, write_csv

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation.evaluate import Page
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.metrics.bootstrap import Bootstrap


SCORES = "scores.csv"
_HEAD = ("session_id", "setting", "step", "p", "likely", "bought")


@dataclass(frozen=True)
class ScoredTable(Artifact, kind="scores", recreate="diptych intent score SCORER TABLE --out SCORES"):
    """Which scorer and table scores are of, and measures by setting and step."""

    about: dict[str, Any]


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

    with atomic_folder(folder, ScoredTable.marker()) as inside:
        write_csv(inside / SCORES, _HEAD, lines())
        about = {
            "scorer": scorer.describe(),
            "features": features.describe(),
            "features_fingerprint": features.fingerprint,
            "measured": "the last part, of which the scorer has learned nothing" if own else "all sessions",
            "cells": rows,
        }
        ScoredTable(about).save(inside / ScoredTable.marker())
    return about


def evaluate_scorer(
    scorer: Scorer,
    features: FeatureTable,
    folder: Path,
    *,
    settings: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
    bootstrap: Bootstrap | None = None,
    page: Page | None = None,
) -> Evaluation:
    """Measure a scorer on a table of features as :func:`evaluate` measures models; nothing is fitted."""
    options, scored = scorer.about["options"], scorer.score_table(features, settings=settings, steps=steps)
    return evaluate_scores(
        features,
        {(one.cell.setting, one.cell.step): GivenScores(one.p, one.cell.threshold) for one in scored},
        folder,
        model=options["model"],
        name=f"scorer {scorer.about['name']}",
        trained_on=scorer.about["fingerprint"],
        feature_set=options["feature_set"] if options["feature_set"] in features.sets else None,
        bootstrap=bootstrap,
        page=page,
    )


MOST_RUNNING = 50_000
"""Clients whose sessions are held at once: those that were last active."""

Answer = dict[str, Any]


def score_sessions(scorer: Scorer, lines: Iterable[str], reasons: int = 5) -> Iterator[Answer]:
    """One answer per line, each a session so far; of one that cannot be read the answer is its error."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        answer: Answer = {"line": number}
        try:
            session = _read(line)
            if isinstance(session, dict) and "id" in session:
                answer["id"] = session["id"]
            answer |= scorer.score(session, reasons=reasons).to_dict()
        except DataError as error:
            answer |= {"error": error.message, "fix": error.fix}
        yield answer


def score_events(scorer: Scorer, lines: Iterable[str], reasons: int = 5) -> Iterator[Answer]:
    """An answer after every event that opens a page, of the session of the event's ``client_id``."""
    running = RunningSessions(scorer, reasons)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        answer: Answer = {"line": number}
        try:
            event = _read(line)
            client = event.get("client_id") if isinstance(event, dict) else None
            if not isinstance(client, str | int) or isinstance(client, bool):
                raise DataError(
                    f"an event has the client_id {shown(client)}", "every event of a stream names its client"
                )
            answer["client_id"] = client
            score = running.of(str(client)).add(event)
            if score is None:
                continue
            answer |= score.to_dict()
        except DataError as error:
            answer |= {"error": error.message, "fix": error.fix}
        yield answer


class RunningSessions:
    """Streams by client; the one that was asked for longest ago makes room for a new one."""

    def __init__(self, scorer: Scorer, reasons: int = 5, most: int = MOST_RUNNING) -> None:
        self._scorer, self._reasons, self._most = scorer, reasons, most
        self._streams: OrderedDict[str, SessionStream] = OrderedDict()

    def __len__(self) -> int:
        return len(self._streams)

    def of(self, client: str) -> SessionStream:
        """The stream of a client, which is the last now to make room."""
        if client not in self._streams:
            if len(self._streams) >= self._most:
                self._streams.popitem(last=False)
            self._streams[client] = self._scorer.stream(reasons=self._reasons)
        self._streams.move_to_end(client)
        return self._streams[client]


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}", "one object per line") from None
