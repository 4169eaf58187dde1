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
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from diptych.commerce.purchase_intent.evaluation import Evaluation, GivenScores, evaluate_scores
from diptych.commerce.purchase_intent.features.make import is_table
from diptych.commerce.purchase_intent.options import EvaluateOptions, TrainOptions
from diptych.commerce.purchase_intent.scoring.events import shown
from diptych.commerce.purchase_intent.scoring.fitting import holdout_measures
from diptych.commerce.purchase_intent.scoring.request import SessionStream
from diptych.commerce.purchase_intent.scoring.scorer import Scorer
from diptych.commerce.purchase_intent.scoring.shown import measured_table
from diptych.commerce.purchase_intent.scoring.training import scorer_slices
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, atomic_path, write_csv
from diptych.core.table import Table
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation.evaluate import Page
    from diptych.commerce.purchase_intent.features.table import FeatureTable


SCORES = "scores.csv"
_HEAD = ("session_id", "setting", "step", "p", "likely", "bought")


@dataclass(frozen=True)
class ScoredTable(Artifact, kind="scores", recreate="diptych intent score SCORER TABLE --out SCORES"):
    """Which scorer and table scores are of, and measures by setting and step."""

    about: dict[str, Any]

    def tables(self) -> list[Table]:
        """Return what the scores are worth."""
        return [measured_table(f"Measured on {self.about['measured']}", self.about["cells"])]

    def lines(self) -> list[str]:
        """Return how many scores there are, and of what."""
        return [f"{sum(cell['scored'] for cell in self.about['cells']):,} scores of {self.about['features']}"]


def write_table_scores(
    scorer: Scorer,
    features: FeatureTable,
    folder: Path | str,
    *,
    settings: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
) -> ScoredTable:
    """Score a table and write the folder.

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
        made = ScoredTable(about)
        made.save(inside / ScoredTable.marker())
    return made


def evaluate_scorer(
    scorer: Scorer,
    features: FeatureTable,
    folder: Path,
    *,
    page: Page | None = None,
    **options: Any,
) -> Evaluation:
    """Measure a scorer on a table of features as :func:`evaluate` measures models; nothing is fitted."""
    given, trained = EvaluateOptions.read(options, "an evaluation"), scorer.about["options"]
    if given.models or given.sets or given.folds:
        raise UsageError("a scorer is measured as it is", "leave out --model, --set and --folds")
    scored = scorer.score_table(features, settings=given.settings, steps=given.steps)
    return evaluate_scores(
        features,
        {(one.cell.setting, one.cell.step): GivenScores(one.p, one.cell.threshold) for one in scored},
        folder,
        model=trained["model"],
        name=f"scorer {scorer.about['name']}",
        trained_on=scorer.about["fingerprint"],
        feature_set=trained["feature_set"] if trained["feature_set"] in features.sets else None,
        bootstrap=Bootstrap(given.samples, seed=given.seed),
        page=page,
    )


MOST_RUNNING = 50_000
"""Clients whose sessions are held at once: those that were last active."""

Answer = dict[str, Any]


def kind_of_sessions(source: str, *, stream: bool = False) -> str:
    """Return whether a source holds a table, one session, or lines: of events in a ``stream``, else of sessions."""
    path = Path(source)
    if source != "-" and not path.exists():
        raise DataError(f"{source} does not exist", "a .json, .jsonl or .csv file, or a folder of features")
    kind = "lines" if source == "-" else "table" if is_table(path) else "session"
    if kind == "session" and path.is_dir():
        raise DataError(
            f"{source} holds no features", "make them: diptych intent features log --out features"
        )
    if kind == "session" and path.suffix != ".json":
        kind = "lines"
    if stream and kind != "lines":
        raise UsageError(f"--stream of {source}, which has no lines of events", "give events as .jsonl, or -")
    return kind


def score_lines(
    scorer: Scorer, lines: Iterable[str], reasons: int = 5, *, stream: bool = False
) -> Iterator[Answer]:
    """Answer each line of JSON, a session so far; of one that cannot be read the answer is its error.

    In a ``stream`` a line is an event with a ``client_id``, and the answer is of the client's session, after every
    event that opens a page.
    """
    running = RunningSessions(scorer, reasons)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        answer: Answer = {"line": number}
        try:
            given, score = _read(line), None
            if stream:
                client = given.get("client_id") if isinstance(given, dict) else None
                if not isinstance(client, str | int) or isinstance(client, bool):
                    wrong = f"an event has the client_id {shown(client)}"
                    raise DataError(wrong, "every event of a stream names its client")
                answer["client_id"] = client
                score = running.of(str(client)).add(given)
            else:
                answer |= {"id": given["id"]} if isinstance(given, dict) and "id" in given else {}
                score = scorer.score(given, reasons=reasons)
            if score is not None:
                yield answer | score.to_dict()
        except DataError as error:
            yield answer | {"error": error.message, "fix": error.fix}


def score_file(
    scorer: Scorer, source: Path | TextIO, out: Path | TextIO, *, reasons: int, stream: bool
) -> tuple[int, int]:
    """Write every answer as soon as it is there; return how many there were, and errors among them."""
    answered = failed = 0
    with ExitStack() as opened:
        try:
            lines = (
                opened.enter_context(open(source, encoding="utf-8")) if isinstance(source, Path) else source
            )
            if isinstance(out, Path):
                out = opened.enter_context(
                    open(opened.enter_context(atomic_path(out)), "w", encoding="utf-8")
                )
            for answer in score_lines(scorer, lines, reasons, stream=stream):
                out.write(json.dumps(answer) + "\n")
                out.flush()
                answered += 1
                failed += "error" in answer
        except UnicodeDecodeError as error:
            raise DataError(f"{source} is not UTF-8: {error}", "give lines of JSON in UTF-8") from None
    return answered, failed


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
