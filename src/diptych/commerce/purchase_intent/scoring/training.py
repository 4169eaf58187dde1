"""Train a scorer: one model per setting and step, whole or not at all, going on where a kill left it.

While it is made it lies in ``NAME.unfinished``, where every model that is done stays done; a training of something
else begins there anew. The folder itself changes when all of it is there.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from diptych.commerce.logs.schema import SECOND, UNKNOWN
from diptych.commerce.purchase_intent.models import MODELS
from diptych.commerce.purchase_intent.options import TrainOptions
from diptych.commerce.purchase_intent.scoring.card import model_card
from diptych.commerce.purchase_intent.scoring.cell import Cell, cell_folder
from diptych.commerce.purchase_intent.scoring.events import FILE, keep_history
from diptych.commerce.purchase_intent.scoring.fitting import (
    Slices,
    fit_cell,
    slices_of,
    why_not,
)
from diptych.commerce.purchase_intent.scoring.scorer import Scorer
from diptych.commerce.purchase_intent.splits import split_input
from diptych.core.context import check_stop, task
from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError
from diptych.core.files import (
    check_replaceable,
    recover_folder,
    replace_folder,
    write_json,
    write_text,
)
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import exclusive_folder
from diptych.core.reading import read_json

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.commerce.purchase_intent.sessions import SessionTables


_SECONDS = (0, 35, 80, 150, 175, 260)
_START = 1_577_991_600
"""2020-01-02 19:00 UTC, a Thursday evening."""


def example_session(about: Mapping[str, Any]) -> dict[str, Any]:
    """A session so far of six pages, made up of the words that the scorer knows."""
    types = [name for name in about["vocabulary"] if name != UNKNOWN] or [UNKNOWN]
    first = {
        name: next((word for word in words or () if word != UNKNOWN), UNKNOWN)
        for name, words in about["known"].items()
    }
    session: dict[str, Any] = {
        "id": "an example; nobody's session",
        **first,
        "events": [
            {"t": _iso(_START + seconds), "action": "page", "page_type": types[number % min(3, len(types))]}
            for number, seconds in enumerate(_SECONDS)
        ],
    }
    if any(cell["setting"] == "identified" for cell in about["cells"]):
        session["visitor_id"] = "example-visitor"
        session["history"] = {
            "sessions": 3,
            "devices": [first["device"]] * 3,
            "orders": 1,
            "days_since_purchase": 12.5,
        }
    return session


def _iso(seconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat()


_MOST_WORDS = 1000
"""Of a column with more words than these a scorer does not say which it has seen."""


def about_features(features: FeatureTable) -> dict[str, Any]:
    """What serving has to know of a table, and what a model card says of it; JSON-able."""
    columns, about = features.view.columns, features.about
    return {
        "name": about["name"],
        "kind": about["kind"],
        "fingerprint": features.fingerprint,
        "zone": about.get("zone"),
        "since_us": about.get("since_us"),
        "session_options": about.get("session_options"),
        "columns": about["columns"],
        "vocabulary": list(features.view.vocabulary),
        "known": {name: _words(columns[name]) for name in ("device", "channel") if not features.is_whole},
        "counts": about["counts"],
        "left_out": about.get("left_out", []),
        "kept_leaking": about.get("kept_leaking", []),
        "days": _days(features),
        "line": features.describe(),
    }


def about_slices(features: FeatureTable, slices: Slices) -> dict[str, Any]:
    """The parts of a table that a scorer was made of; JSON-able."""
    parts = {"fit": slices.fit, "calibration": slices.calibration, "holdout": slices.holdout}
    return {
        "split": slices.split,
        "note": slices.note,
        "sizes": {name: int(part.sum()) for name, part in parts.items()},
        "left_out": slices.n_left_out,
        "rates": {
            name: float(features.labels[part].mean()) if part.any() else None for name, part in parts.items()
        },
    }


def _words(texts: np.ndarray) -> list[str] | None:
    """The words of a column, the most frequent first; None of very many."""
    counts = Counter(texts.tolist())
    if len(counts) > _MOST_WORDS:
        return None
    return sorted(counts, key=lambda word: (-counts[word], word))


def _days(features: FeatureTable) -> str:
    """First and last day, in the table's zone."""
    if not features.has_times or not len(features):
        return "times unknown"
    zone = ZoneInfo(features.about["zone"])
    first, last = (
        datetime.fromtimestamp(int(moment) // SECOND, zone).date().isoformat()
        for moment in (features.start_us.min(), features.start_us.max())
    )
    return f"{first} to {last}"


CARD, EXAMPLE = "model_card.md", "example.json"
_PLAN = "plan.json"


def scorer_slices(features: FeatureTable, options: TrainOptions) -> Slices:
    """The three parts of a table's sessions that a scorer of these options is made of."""
    return slices_of(
        split_input(features),
        split=options.split,
        calibration=options.calibration,
        holdout=options.holdout,
        seed=options.seed,
    )


def train(
    features: FeatureTable,
    folder: Path | str,
    *,
    options: TrainOptions | None = None,
    settings: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
    history: SessionTables | None = None,
    audit: dict[str, Any] | None = None,
) -> Scorer:
    """Train a scorer, or open the one that was trained in just this way."""
    options, folder = options or TrainOptions(), Path(folder)
    places = _places(features, options, settings, steps)
    check_replaceable(folder, Scorer.marker())
    plan = _plan(features, options, places, history, audit)
    if _is_trained(folder, plan):
        return Scorer.open(folder)
    slices = scorer_slices(features, options)
    reasons = {place: why_not(features, *place, slices) for place in places}
    if all(reasons.values()):
        (setting, step), reason = next(iter(reasons.items()))
        raise DataError(f"nothing can be trained: {setting}, step {step}: {reason}", "import more of the log")
    work = _unfinished(folder)
    try:
        with exclusive_folder(work):
            recover_folder(folder)
            if not _is_trained(folder, plan):  # by a process that has just ended
                _begin(work, plan)
                _make(work, features, options, plan, slices, reasons, history, audit)
                replace_folder(work, folder)
                (
                    folder / _PLAN
                ).unlink()  # last: without it a kill before would leave a folder that nobody knows
    finally:
        with suppress(OSError):
            work.rmdir()  # where nothing is in it
    return Scorer.open(folder)


def _make(
    work: Path,
    features: FeatureTable,
    options: TrainOptions,
    plan: str,
    slices: Slices,
    reasons: Mapping[tuple[str, int], str],
    history: SessionTables | None,
    audit: dict[str, Any] | None,
) -> None:
    """Fit what is not there yet, and write everything that goes with it; ``reasons`` has why a place cannot be."""
    fitting = [place for place, reason in reasons.items() if not reason]
    with task("training", len(fitting), "models") as bar:
        for place in fitting:
            check_stop("stopped: every finished model is kept")
            if not Cell.is_at(folder := cell_folder(work, *place)):
                fit_cell(features, *place, slices, options).save(folder)
            bar.advance(note="whole sessions" if features.is_whole else f"{place[0]}, step {place[1]}")
    kept = 0 if history is None else keep_history(history, work / FILE)
    cells = [Cell.open(cell_folder(work, *place)) for place in fitting]
    about = {
        "plan": plan,
        **about_features(features),
        "options": options.model_dump(),
        "weighting": MODELS.get(options.model).weighting if options.balanced else "none",
        "history": kept,
        "slices": about_slices(features, slices),
        "cells": [
            {
                "setting": cell.setting,
                "step": cell.step,
                "base_rate": cell.base_rate,
                "threshold": cell.threshold,
                **cell.about,
            }
            for cell in cells
        ],
        "not_trained": [
            {"setting": setting, "step": step, "reason": reason}
            for (setting, step), reason in reasons.items()
            if reason
        ],
        "audit": audit,
    }
    write_text(work / CARD, model_card(about, cells))
    if not features.is_whole:
        write_json(work / EXAMPLE, example_session(about))
    Scorer(about).save(work / Scorer.marker())


def _places(
    features: FeatureTable,
    options: TrainOptions,
    settings: Sequence[str] | None,
    steps: Sequence[int] | None,
) -> list[tuple[str, int]]:
    """Settings and steps in the table's order; everything that was asked for is there."""
    if features.compat == "published":
        raise UsageError(
            "features made as published look at what comes later: whether somebody logs in at all",
            "make them without --compat published to train what will be used",
        )
    MODELS.get(options.model)
    if not features.is_whole and options.feature_set not in features.sets:
        raise UnknownNameError("feature set", options.feature_set, features.sets)
    for setting in settings or ():
        if setting not in features.settings:
            raise UnknownNameError("setting", setting, features.settings)
    for step in steps or ():
        if step not in features.steps:
            raise UnknownNameError("step", str(step), map(str, features.steps))
    return [
        (setting, step)
        for setting in features.settings
        for step in features.steps
        if (settings is None or setting in settings) and (steps is None or step in steps)
    ]


def _plan(
    features: FeatureTable,
    options: TrainOptions,
    places: Sequence[tuple[str, int]],
    history: SessionTables | None,
    audit: dict[str, Any] | None,
) -> str:
    kept = None if history is None else history.fingerprint
    return fingerprint(
        Scorer.FORMAT, features.fingerprint, options.model_dump(), [list(one) for one in places], kept, audit
    )


def _is_trained(folder: Path, plan: str) -> bool:
    """Whether the scorer of this plan is there; what a kill at the very end left in it is removed."""
    try:
        if Scorer.open(folder).about["plan"] != plan:
            return False
    except StorageError:
        return False
    (folder / _PLAN).unlink(missing_ok=True)
    return True


def _unfinished(folder: Path) -> Path:
    """Where it is made."""
    work = folder.with_name(f"{folder.name}.unfinished")
    for left in work.glob(f".{_PLAN}.*.tmp"):  # killed at the very beginning
        left.unlink(missing_ok=True)
    check_replaceable(work, _PLAN)
    return work


def _begin(work: Path, plan: str) -> None:
    """Go on with what is there of this plan; what is there of another one is removed, its plan last."""
    if (work / _PLAN).is_file() and read_json(work / _PLAN) == plan:
        return
    for old in work.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
        elif old.name != _PLAN:
            old.unlink()
    write_json(work / _PLAN, plan)
