"""Tables of features: of steps, and of whole sessions."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from feature_tables import small_features
from refusals import refused
from small_views import small_view
from uci_sessions import HEADER

from diptych.commerce.purchase_intent.features import FEATURES, FeatureTable, fit_features, open_features
from diptych.commerce.purchase_intent.features.make import make_whole_features
from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("features") / "small")


def test_no_row_of_the_anonymous_setting_sees_history(table: FeatureTable) -> None:
    for step in table.steps:
        rows = table.population("anonymous", step)
        history = [feature for feature in FEATURES if feature.group == "history"]
        matrix = fit_features(history, table.at(rows, step)).matrix(table.at(rows, step))
        assert not np.nan_to_num(matrix).any()
        for feature_set in table.sets:
            assert {one.group for one in table.features("anonymous", feature_set, step)} <= {"session"}


def test_fitting_sees_training_rows_alone() -> None:
    pages = [[(0, "home"), (9, "product")], [(0, "product"), (5, "product")], [(0, "home"), (7, "new")]]
    columns = {"device": ["pc", "tv", "watch"], "channel": ["paid", "direct", "radio"], "devices": [1, 1, 1]}
    known = {name: values[:2] for name, values in columns.items()}
    whole = small_view(pages, columns, labels=[True, False, True])
    alone = small_view(pages[:2], known, labels=[True, False])
    fitted, wanted = (fit_features(list(FEATURES), one) for one in (whole.take(np.array([0, 1])), alone))
    assert fitted.names == wanted.names
    np.testing.assert_array_equal(fitted.matrix(whole), wanted.matrix(whole))
    assert fit_features(list(FEATURES), whole) != fitted


def test_what_cannot_be_fitted_or_is_not_there(table: FeatureTable) -> None:
    view = table.at(table.population("anonymous", 0), 0)
    for call, error, match in (
        (lambda: fit_features([], replace(view, labels=None)), UsageError, "outcome is known"),
        (lambda: table.population("all", 0), UnknownNameError, "setting"),
        (lambda: table.at(np.arange(3), 11), UnknownNameError, "step '11'"),
        (lambda: table.features("anonymous", "all", 3), UnknownNameError, "feature set"),
    ):
        with pytest.raises(error, match=match):
            call()


def test_a_corrupt_file_is_refused(tmp_path: Path) -> None:
    folder = small_features(tmp_path / "f", n=30).folder
    rows = parquet.read_table(folder / "sessions.parquet")
    parquet.write_table(rows.drop_columns(["page_us_3"]), folder / "sessions.parquet")
    with pytest.raises(StorageError, match="recreate it: diptych intent features"):
        open_features(folder)
    (folder / "sessions.parquet").write_bytes(b"PAR1")
    with pytest.raises(StorageError, match="cannot be read"):
        open_features(folder)


ROW = "0,0,0,0,2,64.5,0,0.1,12.5,0,Feb,2,2,1,2,Returning_Visitor,FALSE,TRUE"

FIRST = dict(zip(HEADER.split(","), ROW.split(","), strict=True))


def write(file: Path, *changes: dict[str, Any], columns: list[str] | None = None) -> Path:
    """A row per change of the first one."""
    with open(file, "w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, columns or list(FIRST), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(FIRST | change for change in changes)
    return file


def test_columns_are_features_and_the_leaking_one_is_left_out(tmp_path: Path) -> None:
    second = {"Month": "Nov", "Revenue": "FALSE", "ExitRates": "", "Region": "10"}
    file = write(tmp_path / "s.csv", {}, second)
    table = make_whole_features(file, folder=tmp_path / "features")
    assert table.labels.tolist() == [True, False]
    assert (table.steps, table.settings, table.sets) == ((-1,), ("all",), ("all",))
    assert not table.about["has_times"]
    assert table.population("all", -1).tolist() == [0, 1]
    assert [one["column"] for one in table.about["left_out"]] == ["PageValues"]
    features = table.features("all", "all", -1)
    assert [one.name for one in features] == [name for name in FIRST if name not in ("PageValues", "Revenue")]
    view = table.at(np.array([0, 1]), -1)
    fitted = fit_features(features, view)
    values = dict(zip(fitted.names, fitted.matrix(view).T.tolist(), strict=True))
    assert values["ProductRelated_Duration"] == [64.5, 64.5]
    assert (values["Month=Feb"], values["Month=Nov"]) == ([1, 0], [0, 1])
    assert (values["Region=1"], values["Region=10"]) == ([1, 0], [0, 1])
    np.testing.assert_array_equal(values["ExitRates"], [0.1, np.nan])
    assert set(fitted.owners) == {one.name for one in features}

    # The leaking column on request, packed and in another order.
    file = write(tmp_path / "s.csv", {}, columns=[*reversed(FIRST), "more"])
    packed = tmp_path / "s.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + file.read_bytes()))
    kept = make_whole_features(packed, folder=tmp_path / "kept", keep_leaking=True)
    assert kept.view.columns["PageValues"].tolist() == [12.5]
    assert (kept.about["kept_leaking"], kept.about["left_out"]) == (["PageValues"], [])
    assert kept.fingerprint != make_whole_features(packed, folder=tmp_path / "without").fingerprint


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for change, message in (
        ({"Revenue": "maybe"}, "Row #3.*'maybe'"),
        ({"Revenue": ""}, "Revenue is missing"),
        ({"ExitRates": "high"}, "Row #3.*'high'"),
        ({"ExitRates": "inf"}, "ExitRates is infinite"),
    ):
        file = write(tmp_path / "s.csv", {}, change)
        refused(DataError, message, make_whole_features, file, folder=tmp_path / "features")
    for name, content in (
        ("a", b"session,time\n1,2\n"),
        ("b", b""),
        ("c.gz", b"no gzip"),
        ("d", b"\xff\xfe"),
    ):
        (tmp_path / name).write_bytes(content)
        message = "known: uci-shoppers" if name == "a" else ""
        refused(DataError, message, make_whole_features, tmp_path / name, folder=tmp_path / "features")
    assert not (tmp_path / "features").exists()
