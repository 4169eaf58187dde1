"""Tables of whole sessions: UCI's shoppers."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.commerce.purchase_intent.features import fit_features
from diptych.commerce.purchase_intent.features.whole import (
    UCI_SHOPPERS,
    make_whole_features,
    recognise_session_table,
)
from diptych.core.errors import DataError, UnknownNameError

SHARED = Path(__file__).parents[5] / "shared" / "data" / "session_logs" / "uci_online_shoppers_intention.csv"

FIRST = {
    "Administrative": "0",
    "Administrative_Duration": "0",
    "Informational": "0",
    "Informational_Duration": "0",
    "ProductRelated": "2",
    "ProductRelated_Duration": "64.5",
    "BounceRates": "0",
    "ExitRates": "0.1",
    "PageValues": "12.5",
    "SpecialDay": "0",
    "Month": "Feb",
    "OperatingSystems": "2",
    "Browser": "2",
    "Region": "1",
    "TrafficType": "2",
    "VisitorType": "Returning_Visitor",
    "Weekend": "FALSE",
    "Revenue": "TRUE",
}


def write(file: Path, *changes: dict[str, Any], columns: list[str] | None = None) -> Path:
    """A row per change of the first one."""
    with open(file, "w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, columns or list(FIRST), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(FIRST | change for change in changes)
    return file


def test_columns_are_features_and_the_leaking_one_is_left_out(tmp_path: Path) -> None:
    file = write(
        tmp_path / "s.csv", {}, {"Month": "Nov", "Revenue": "FALSE", "ExitRates": "", "Region": "10"}
    )
    table = make_whole_features(file, folder=tmp_path / "features")
    assert table.labels.tolist() == [True, False]
    assert (table.steps, table.settings, table.sets) == ((-1,), ("all",), ("all",))
    assert not table.has_times
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


def test_the_leaking_column_on_request(tmp_path: Path) -> None:
    file = write(tmp_path / "s.csv", {}, {})
    kept = make_whole_features(file, folder=tmp_path / "kept", keep_leaking=True)
    assert kept.view.columns["PageValues"].tolist() == [12.5, 12.5]
    assert kept.about["kept_leaking"] == ["PageValues"]
    assert kept.about["left_out"] == []
    assert kept.fingerprint != make_whole_features(file, folder=tmp_path / "without").fingerprint


def test_everybody_is_somebody_else(tmp_path: Path) -> None:
    table = make_whole_features(write(tmp_path / "s.csv", *[{}] * 5), folder=tmp_path / "features")
    assert len(set(table.persons.tolist())) == 5


def test_packed_with_another_order_of_columns_and_a_mark_at_the_beginning(tmp_path: Path) -> None:
    file = write(tmp_path / "s.csv", {}, columns=[*reversed(FIRST), "more"])
    packed = tmp_path / "s.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + file.read_bytes()))
    assert recognise_session_table(packed) is UCI_SHOPPERS
    table = make_whole_features(packed, folder=tmp_path / "features")
    assert table.view.columns["ProductRelated"].tolist() == [2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Revenue": "maybe"}, "row 2 .*'maybe'"),
        ({"ExitRates": "high"}, "row 2, ExitRates is 'high', not a number"),
        ({"ExitRates": "inf"}, "row 2, ExitRates is 'inf'"),
    ],
)
def test_a_wrong_value_is_named_with_its_row(tmp_path: Path, change: dict[str, str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        make_whole_features(write(tmp_path / "s.csv", {}, change), folder=tmp_path / "features")
    assert not (tmp_path / "features").exists()


def test_rows_of_another_length(tmp_path: Path) -> None:
    file = write(tmp_path / "s.csv", {})
    for end in ("1,2,3\n", "," * 30 + "\n"):
        broken = tmp_path / "broken.csv"
        broken.write_text(file.read_text() + end)
        with pytest.raises(DataError, match="row 2 .* not as many values"):
            make_whole_features(broken, folder=tmp_path / "features")


def test_other_files(tmp_path: Path) -> None:
    for name, content in (
        ("a.csv", b"session,time\n1,2\n"),
        ("b.csv", b""),
        ("c.csv.gz", b"no gzip"),
        ("d", b"\xff\xfe"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError):
            recognise_session_table(tmp_path / name)
    with pytest.raises(DataError, match="known: uci-shoppers"):
        recognise_session_table(tmp_path / "a.csv")


def test_a_step_or_setting_that_whole_sessions_do_not_have(tmp_path: Path) -> None:
    table = make_whole_features(write(tmp_path / "s.csv", {}), folder=tmp_path / "features")
    with pytest.raises(UnknownNameError):
        table.population("anonymous", -1)
    with pytest.raises(UnknownNameError):
        table.at(np.arange(1), 0)


@pytest.mark.skipif(not SHARED.is_file(), reason="the real sessions are not there")
def test_the_real_table(tmp_path: Path) -> None:
    table = make_whole_features(SHARED, folder=tmp_path / "features")
    assert (len(table), int(table.labels.sum())) == (9248, 1431)
    view = table.at(table.population("all", -1), -1)
    fitted = fit_features(table.features("all", "all", -1), view)
    assert not np.isnan(fitted.matrix(view)).any()
    assert len(fitted.names) == 72
