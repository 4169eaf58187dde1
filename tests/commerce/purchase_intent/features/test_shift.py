"""Features do not look into the future; and the test that says so sees it when they do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from events import write_log
from feature_tables import small_features
from intent_logs import random_events

from diptych.commerce.purchase_intent.features import FeatureOptions, FeatureTable, make_features
from diptych.commerce.purchase_intent.features.leak import _sample, shift_test
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.purchase_intent.sessions.tables import SessionOptions
from diptych.core.errors import MismatchError, UsageError
from diptych.data.logs import Log

ALL_STEPS = tuple(range(11))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    return write_log(tmp_path_factory.mktemp("shift") / "log", random_events(6, visitors=3, sessions=24))


@pytest.fixture(scope="module")
def table(log: Log, tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    options = FeatureOptions(also=("previous-device", "previous-device-rate", "history-days", "hour-cyclic"))
    return make_features(
        sessionise(log), folder=tmp_path_factory.mktemp("shift") / "features", options=options
    )


def test_nothing_changes_with_later_events(log: Log, table: FeatureTable) -> None:
    found = shift_test(log, features=table, sample=100, steps=ALL_STEPS)
    assert found.changed == []
    assert found.n_checked == sum(int(table.undecided(step).sum()) for step in ALL_STEPS)
    assert found.n_left_out == 0
    assert found.line() == f"{found.n_checked:,} sessions at a step, none changed"


def test_nothing_changes_where_sessions_are_of_visitors(log: Log) -> None:
    found = shift_test(log, session_options=SessionOptions(by="visitor"), sample=10, seed=1)
    assert found.changed == []
    assert found.n_checked > 20


def test_who_logs_in_later_is_known_too_early_as_published(log: Log) -> None:
    found = shift_test(log, options=FeatureOptions(compat="published"), sample=20, steps=(0, 5))
    assert {"(setting)"} < {one.column for one in found.changed}
    assert "changed with later events: (setting), " in found.line()


def test_a_stored_value_from_the_future_is_found(log: Log, table: FeatureTable) -> None:
    columns = dict(table.view.columns)
    columns["orders"] = columns["orders"] + table.labels  # this session's own purchase
    # As if the last page's time had slipped to the page before.
    times = table.view.page_times.copy()
    times[:, 3] = times[:, 4]
    leaking = replace(table, view=replace(table.view, columns=columns, page_times=times))
    found = shift_test(log, features=leaking, sample=100, steps=(3, 4))
    identified = set(table.session_ids[table.population("identified", 3)].tolist())
    buyers = set(table.session_ids[table.labels].tolist())
    of_orders = {one.session_id for one in found.changed if one.column == "orders" and one.step == 3}
    assert of_orders == identified & buyers
    moved = {one.session_id for one in found.changed if one.column == "dwell-mean" and one.step == 4}
    waited = table.view.page_times[:, 4] > table.view.page_times[:, 3]
    assert moved == set(table.session_ids[waited & table.undecided(4)].tolist())
    assert not [one for one in found.changed if one.column == "dwell-mean" and one.step == 3]


def test_the_sample_is_half_of_known_visitors_and_repeats(table: FeatureTable) -> None:
    one, two = (_sample(table, 6, seed=3) for _ in range(2))
    assert one.tolist() == two.tolist() == sorted(set(one.tolist()))
    assert np.isnan(table.pages_before_identified[one]).sum() == 3
    n_unknown = int(np.isnan(table.pages_before_identified).sum())
    most = _sample(table, len(table) - 1, seed=3)
    assert len(most) == len(table) - 1
    assert np.isnan(table.pages_before_identified[most]).sum() == n_unknown
    assert len(_sample(table, 1000, seed=3)) == len(table)


def test_a_table_of_another_log(log: Log, tmp_path: Path) -> None:
    with pytest.raises(MismatchError, match="was not made of the sessions"):
        shift_test(log, features=small_features(tmp_path / "a", n=20))
    whole = small_features(tmp_path / "b", n=20)
    whole.about["kind"] = "whole"
    with pytest.raises(UsageError, match="no steps"):
        shift_test(log, features=whole)


def test_a_log_with_no_session_to_look_at(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", [{"t": 0.0, "page_type": "home"}])
    found = shift_test(log)
    assert (found.n_checked, found.changed) == (0, [])


def test_visitors_with_too_many_events_are_counted(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    from diptych.commerce.purchase_intent.features import leak as shift

    monkeypatch.setattr(shift, "_MOST_EVENTS", 3)
    found = shift_test(log, sample=5, steps=(0,))
    assert (found.n_checked, found.n_left_out) == (0, 5)
    assert found.line().endswith("; 5 with too many events left out")
