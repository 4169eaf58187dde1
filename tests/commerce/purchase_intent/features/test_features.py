"""Features and tables of them against hand-written values, an independent implementation and the printed table."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from feature_oracle import log_ratio
from feature_tables import small_features
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from small_views import small_view
from uci_sessions import HEADER

from diptych.commerce.purchase_intent.features import (
    FEATURES,
    FeatureTable,
    FittedFeatures,
    fit_features,
    open_features,
)
from diptych.commerce.purchase_intent.features.fitting import NOTHING, MarkovRatio, SessionsView, features_of
from diptych.commerce.purchase_intent.features.make import make_whole_features
from diptych.commerce.purchase_intent.options import FeatureOptions
from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError

NaN = np.nan


def fit(name: str, view: SessionsView) -> FittedFeatures:
    """One feature, of sessions that did not end in a purchase where the view does not say."""
    labels = np.zeros(len(view), bool) if view.labels is None else view.labels
    return fit_features([FEATURES.get(name)], replace(view, labels=labels))


def values(name: str, view: SessionsView) -> np.ndarray:
    return fit(name, view).matrix(view)


def test_starts() -> None:
    view = small_view([[]] * 3, {"start_hour": [0, 6, 23], "start_dow": [0, 6, NaN]})
    assert values("start-hour", view)[:, 0].tolist() == [0, 6, 23]
    days = values("week-day", view)
    assert days[:2].argmax(axis=1).tolist() == [0, 6]
    assert days[:2].sum(axis=1).tolist() == [1, 1]
    assert np.isnan(days[2]).all()
    angles = values("hour-cyclic", view)
    np.testing.assert_allclose(angles[:2], [[0, 1], [1, 0]], atol=1e-12)
    assert np.hypot(*(angles[2] - angles[0])) < 0.27  # an hour on the circle


pages = st.lists(
    st.tuples(st.integers(0, 1800), st.sampled_from(["home", "search", "product", "basket"])),
    min_size=12,
    max_size=12,
)


@settings(max_examples=25)
@given(st.lists(pages, min_size=2, max_size=4), st.data(), st.integers(1, 10))
def test_no_feature_depends_on_what_lies_behind_its_step(
    sessions: list[list[tuple[int, str]]], data: st.DataObject, step: int
) -> None:
    sessions = [
        [(sum(t for t, _ in one[: place + 1]), name) for place, (_, name) in enumerate(one)]
        for one in sessions
    ]
    ends = [data.draw(pages) for _ in sessions]
    others = [
        one[:step] + [(one[-1][0] + t, n) for t, n in end] for one, end in zip(sessions, ends, strict=True)
    ]
    labels = [number % 2 == 0 for number in range(len(sessions))]
    view, other = (small_view(one, labels=labels).until(step) for one in (sessions, others))
    features = list(FEATURES)
    np.testing.assert_array_equal(
        fit_features(features, view).matrix(view), fit_features(features, other).matrix(other)
    )


sequences = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), min_size=1, max_size=8)


@settings(max_examples=40)
@given(sequences, sequences, st.data())
def test_the_same_as_written_out(
    training: list[list[str]], asked: list[list[str]], data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.booleans(), min_size=len(training), max_size=len(training)))
    pages = [[(float(place), name) for place, name in enumerate(one)] for one in training]
    fitted = fit("page-sequence-score", small_view(pages, labels=labels))
    view = small_view([[(float(place), name) for place, name in enumerate(one)] for one in asked])
    wanted = [log_ratio(one, list(zip(training, labels, strict=True))) for one in asked]
    np.testing.assert_allclose(fitted.matrix(view)[:, 0], wanted, atol=1e-12)


def test_pages_behind_a_purchase_teach_nothing_and_no_sequence_scores_nothing() -> None:
    pages = [[(0, "home"), (1, "product"), (2, "confirm")], [(0, "home"), (1, "home"), (2, "home")]]
    for before, states in (([2, np.inf], ("home", "product")), (None, ("confirm", "home", "product"))):
        known = fit("page-sequence-score", small_view(pages, labels=[True, False], before_purchase=before))
        assert known.learned[0].states == states
    chains = MarkovRatio.fit(np.zeros((0, 3), dtype=object), np.zeros(0, dtype=bool))
    assert chains.encode(np.array([["home", "home", NOTHING]], dtype=object)).tolist() == [[0]]
    assert np.isnan(chains.encode(np.array([[NOTHING], [NOTHING]], dtype=object))).all()


PRINTED = """
    current page dwell time, mean; current page dwell time, σ; page sequence score; number of pages; channel type;
    start hour; week day; device type; device conversion rate; number of orders; days since last purchase;
    number of sessions; number of devices; device sequence score; switch probability
"""


def names_of(*cell: Any) -> list[str]:
    return [feature.name for feature in features_of(*cell)]


def test_the_rows_of_table_6_7_in_four_sets_and_what_is_asked_for_besides() -> None:
    rows = names_of("identified", "extended", 5)
    declared = [FEATURES.get(name) for name in rows]
    assert [one.label for one in declared] == [label.strip() for label in PRINTED.split(";")]
    assert [one.dynamic for one in declared] == [True] * 4 + [False] * 11
    assert [one.group for one in declared] == ["session"] * 9 + ["history"] * 6
    optional = {one.name for one in FEATURES if not one.default}
    assert optional == {"previous-device", "previous-device-rate", "hour-cyclic", "history-days"}
    assert optional == set(FEATURES.names()) - set(rows)
    assert names_of("anonymous", "baseline", 1) == rows[:4]
    assert names_of("anonymous", "extended", 10) == rows[:9]
    assert names_of("anonymous", "extended", 0) == rows[4:9]
    assert names_of("identified", "baseline", 1) == [*rows[:4], "orders", "days-since-purchase"]
    also = ("previous-device", "hour-cyclic")
    assert names_of("identified", "extended", 1, also) == [*rows, "hour-cyclic", "previous-device"]
    assert names_of("anonymous", "extended", 1, also) == [*rows[:9], "hour-cyclic"]
    assert names_of("identified", "baseline", 1, also) == names_of("identified", "baseline", 1)
    with pytest.raises(UnknownNameError, match="hour-cylic"):
        FeatureOptions(also=("hour-cylic",))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("features") / "small")


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
        message = "known: uci-shoppers" if name == "a" else "."
        refused(DataError, message, make_whole_features, tmp_path / name, folder=tmp_path / "features")
    assert not (tmp_path / "features").exists()
