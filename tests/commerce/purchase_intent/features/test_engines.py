"""DuckDB and Spark make the same table of features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from events import write_log
from intent_logs import random_events

from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.features import FeatureOptions, make_features
from diptych.commerce.purchase_intent.sessions import sessionise


def test_the_same_features_on_both_engines(tmp_path: Path, spark: Engine) -> None:
    tables = sessionise(write_log(tmp_path / "log", random_events(7)))
    options = FeatureOptions(types=2)
    mine = make_features(tables, folder=tmp_path / "duckdb", options=options)
    theirs = make_features(tables, folder=tmp_path / "spark", options=options, engine=spark)
    for name in ("features.json", "page_types.npy", "page_times.npy"):
        assert (mine.folder / name).read_bytes() == (theirs.folder / name).read_bytes()
    assert (mine.view.columns["orders"] > 0).any()
    for name, values in mine.view.columns.items():
        np.testing.assert_array_equal(values, theirs.view.columns[name])
    for name in ("session_ids", "persons", "labels", "start_us", "end_us", "pages_before_identified"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
