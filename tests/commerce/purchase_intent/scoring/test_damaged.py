"""Scorers that somebody has changed: refused in one way, and nothing outside their folder is looked at."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.core.errors import DataError, DiptychError, StorageError, UnknownNameError
from diptych.core.reading import read_json

CELL = "models/identified/step-2/"
SESSION: dict[str, Any] = {
    "visitor_id": "v",
    "events": [{"t": 0, "page_type": "home"}, {"t": 5, "page_type": "home"}],
}
Edit = Callable[[Any], Any]


@pytest.fixture
def copy(scorer: Scorer, tmp_path: Path) -> Path:
    """The files that a session of two pages needs."""
    for name in ("scorer.json", CELL):
        source, target = scorer.folder / name, tmp_path / "copy" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return tmp_path / "copy"


def without(name: str) -> Edit:
    return lambda about: {key: value for key, value in about.items() if key != name}


def said(**values: Any) -> Edit:
    return lambda about: {**about, **values}


def within(name: str, **values: Any) -> Edit:
    return lambda about: {**about, name: {**about[name], **values}}


def place(**values: Any) -> Edit:
    return lambda about: {**about, "cells": [{**about["cells"][0], **values}]}


def fitted(feature: str, **values: Any) -> Edit:
    def edit(about: Any) -> Any:
        for one in about["features"]:
            if one["name"] == feature:
                one["fitted"] |= values
        return about

    return edit


def platt(**values: Any) -> Edit:
    return lambda about: {**about, "calibration": within("platt", **values)(about["calibration"])}


@pytest.mark.parametrize(
    ("file", "edit", "error", "message"),
    [
        ("scorer.json", lambda _: [1], StorageError, "format None"),
        ("scorer.json", without("cells"), StorageError, "no 'cells'"),
        ("scorer.json", said(cells=[]), StorageError, "no model"),
        ("scorer.json", place(setting="../../../etc"), StorageError, "a model of the setting '../../../etc'"),
        ("scorer.json", place(step="../2"), StorageError, "at step '../2'"),
        ("scorer.json", said(vocabulary=5), StorageError, "not iterable"),
        ("scorer.json", said(vocabulary=[["home"]]), StorageError, "no text"),
        ("scorer.json", within("session_options", gap_minutes=float("nan")), StorageError, "nan minutes"),
        ("scorer.json", said(zone="../../etc/passwd"), DataError, "time zone"),
        (CELL + "features.json", lambda _: [], StorageError, "format None"),
        (CELL + "features.json", without("features"), StorageError, "no 'features'"),
        (
            CELL + "features.json",
            said(features=[{"name": "../evil", "fitted": {}}]),
            UnknownNameError,
            "evil",
        ),
        (CELL + "features.json", fitted("channel", categories=["a"]), StorageError, "and not of"),
        (
            CELL + "features.json",
            fitted("page-sequence-score", states=list(range(10**5))),
            StorageError,
            "damaged",
        ),
        (
            CELL + "features.json",
            fitted("page-sequence-score", transitions=[[9, 9, 1, 1]]),
            StorageError,
            "bounds",
        ),
        (
            CELL + "features.json",
            fitted("page-sequence-score", transitions=[[0, 0, -5, 1]]),
            StorageError,
            "below 0",
        ),
        (CELL + "features.json", fitted("page-sequence-score", smoothing=0), StorageError, "not smoothed"),
        (
            CELL + "features.json",
            fitted("page-sequence-score", smoothing=float("nan")),
            StorageError,
            "smoothed",
        ),
        (CELL + "cell.json", platt(slope=float("nan")), StorageError, "calibration"),
        (CELL + "cell.json", platt(evil=1), StorageError, "evil"),
        (CELL + "cell.json", said(base_rate=0), StorageError, "base rate of 0"),
        (CELL + "cell.json", said(threshold=float("nan")), StorageError, "threshold of nan"),
        (CELL + "cell.json", said(typical={}), StorageError, "damaged: no"),
        (CELL + "model/model.json", said(constant="evil"), StorageError, "damaged"),
        (CELL + "model/model.json", without("scikit-learn"), StorageError, "no 'scikit-learn'"),
        (CELL + "model/model.json", said(model="../x"), UnknownNameError, "unknown model"),
    ],
)
def test_what_is_changed_is_refused(
    copy: Path, file: str, edit: Edit, error: type[DiptychError], message: str
) -> None:
    (copy / file).write_text(json.dumps(edit(read_json(copy / file))), encoding="utf-8")  # with NaN
    with pytest.raises(error, match=message):
        Scorer.open(copy).score(SESSION)


@pytest.mark.parametrize(
    "rows",
    [np.zeros((3, 2)), np.zeros(3), np.zeros((0, 25)), np.full((1, 25), "a"), np.array([[{}]], dtype=object)],
)
def test_a_background_of_something_else_is_refused(copy: Path, rows: np.ndarray) -> None:
    np.save(copy / CELL / "background.npy", rows, allow_pickle=True)
    with pytest.raises(StorageError, match=r"background\.npy is"):
        Scorer.open(copy).score(SESSION)


def test_an_untouched_copy_scores(copy: Path, scorer: Scorer) -> None:
    assert Scorer.open(copy).score(SESSION) == scorer.score(SESSION)


def test_long_words_are_shown_in_short(scorer: Scorer) -> None:
    long = "x" * 10**5
    answers = [
        scorer.score(
            {**SESSION, "device": long, "channel": long, "events": [{"t": 0, "page_type": long}] * 2}
        )
    ]
    assert all(len(str(answer.to_dict())) < 5000 for answer in answers)
    for session in ({long: 1}, {"events": [{"t": long}]}, {"events": [{"t": 0, "action": long}]},
                    {**SESSION, "history": {"devices": [1] * 10**5}}, {**SESSION, "history": {"orders": long}},
                    dict.fromkeys(map(str, range(10**4)))):  # fmt: skip
        with pytest.raises(DataError) as refused:
            scorer.score(session)
        assert len(refused.value.message) < 400
