"""A leak audit finds planted leaks and raises no alarm without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from feature_tables import small_features

from diptych.commerce.logs import Log
from diptych.commerce.purchase_intent.auditing import Finding, LeakAudit, audit, column_aucs, shift_test
from diptych.commerce.purchase_intent.features import (
    FEATURES,
    Feature,
    FeatureOptions,
    FeatureTable,
    make_features,
)
from diptych.commerce.purchase_intent.features.fitting import SessionsView
from diptych.commerce.purchase_intent.options import AuditOptions
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.core.errors import MismatchError

OPTIONS = AuditOptions(model="logistic-regression", steps=(1, 10), repeats=4, seed=1)


@dataclass(frozen=True, eq=False)
class WithFeature(FeatureTable):
    """A table with one feature more, from the first page on."""

    extra: Feature | None = None

    def features(self, setting: str, feature_set: str, step: int) -> list[Feature]:
        assert self.extra is not None
        return super().features(setting, feature_set, step) + [self.extra] * (step > 0)


def with_feature(table: FeatureTable, compute: Callable[[SessionsView], np.ndarray]) -> FeatureTable:
    extra = replace(FEATURES.get("pages"), name="suspect", values=compute)
    members = {
        name: getattr(table, name) for name, one in FeatureTable.__dataclass_fields__.items() if one.init
    }
    return WithFeature(**members, extra=extra)


def labels_of(view: SessionsView) -> np.ndarray:
    return np.asarray(view.labels, dtype=float)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("features") / "shop", n=900, seed=2)


def of(found: LeakAudit, check: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.check == check]


def test_an_honest_table_raises_no_alarm(table: FeatureTable) -> None:
    found = audit(table, options=OPTIONS)
    assert found.alarms == []
    assert list(found.checks) == ["shift", "known-columns", "duplicates", "single-column", "permuted-labels"]
    assert of(found, "shift")[0].text == "not looked at: it needs the log that the features were made of"
    singles = of(found, "single-column")
    assert [one.where for one in singles] == [f"{s}, step {k}" for s in table.settings for k in table.steps]
    permuted = of(found, "permuted-labels")
    places = [f"{setting}, step {step}" for setting in table.settings for step in (1, 10)]
    assert [one.where for one in permuted] == places
    assert all(one.low < 0.55 for one in permuted)
    left_out = [{"column": "PageValues", "why": "it is the value"}]
    for about, alarm in (({"kept_leaking": ["PageValues"]}, True), ({"left_out": left_out}, False)):
        (known,) = audit(replace(table, about=table.about | about), checks=["known-columns"]).findings
        assert (known.where, known.alarm) == ("PageValues", alarm)
    assert known.text == "left out: it is the value"


def test_a_feature_that_looks_up_the_label_is_found(table: FeatureTable) -> None:
    """Half of the time, so that no single column is above suspicion's limit."""

    def sometimes(view: SessionsView) -> np.ndarray:
        return np.where(view.page_times[:, 0] % 2 == 0, labels_of(view), 0.5)

    checks, options = ["permuted-labels", "single-column"], OPTIONS.model_copy(update={"repeats": 7})
    found = audit(with_feature(table, sometimes), options=options, checks=checks)
    assert {one.check for one in found.alarms} == {"permuted-labels"}
    assert len(found.alarms) == 4  # both settings, both steps
    for one in found.alarms:
        assert 0.55 < one.low < one.value < one.high <= 1


def test_a_column_too_good_to_be_true_is_found(table: FeatureTable) -> None:
    noisy = with_feature(table, lambda view: -3 * labels_of(view) + np.sin(view.page_times[:, 0] / 1e6))
    found = audit(noisy, options=OPTIONS, checks=["single-column"])
    alarms = {one.where: one for one in found.alarms}
    assert set(alarms) == {f"{s}, step {k}, suspect" for s in table.settings for k in table.steps if k}
    assert all(one.value is not None and one.value > 0.95 for one in alarms.values())


def test_single_columns_either_way_and_by_what_is_missing() -> None:
    nan = np.nan
    labels = np.array([True, True, False, False])
    columns = [[1, 2, 3, 1.5], [9, 8, 7, 6], [nan, nan, 5, 4], [0, 0, 0, 0], [nan, nan, nan, nan]]
    aucs = column_aucs(np.array(columns).T, labels)
    assert aucs.tolist() == [0.75, 1.0, 1.0, 0.5, 0.5]


def test_copies_of_earlier_sessions_are_found(table: FeatureTable) -> None:
    (honest, _) = audit(table, options=OPTIONS, checks=["duplicates"]).findings
    assert (honest.where, honest.value, honest.alarm) == ("anonymous, step 10", 0.0, False)
    rows = np.arange(len(table))
    copied = np.where(
        (rows % 2 == 1) & (rows > 600), rows - 600, rows
    )  # of the first third, among the last one
    doubled = replace(
        table, view=table.view.take(copied), pages_before_identified=table.pages_before_identified[copied]
    )
    found = audit(doubled, options=OPTIONS, checks=["duplicates"])
    assert [one.where for one in found.alarms] == ["anonymous, step 10", "identified, step 10"]
    assert all(0.2 < one.value < 0.6 for one in found.alarms)


ALL_STEPS = tuple(range(11))


@pytest.fixture(scope="module")
def table_shift(shop_log: Log, tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    options = FeatureOptions(also=("previous-device", "previous-device-rate", "history-days", "hour-cyclic"))
    return make_features(
        sessionise(shop_log), folder=tmp_path_factory.mktemp("shift") / "features", options=options
    )


def test_nothing_changes_with_later_events(shop_log: Log, table_shift: FeatureTable) -> None:
    n, changed = shift_test(shop_log, table_shift, sample=100, steps=ALL_STEPS)
    assert (n, changed) == (sum(int(table_shift.undecided(step).sum()) for step in ALL_STEPS), [])
    (only,) = audit(table_shift, shop_log, options=AuditOptions(steps=(5,)), checks=["shift"]).findings
    assert (only.alarm, only.value) == (False, 0.0)
    # As if orders had been counted over the whole log.
    columns = table_shift.view.columns | {"orders": table_shift.view.columns["orders"] + 1}
    looks_ahead = replace(table_shift, view=replace(table_shift.view, columns=columns))
    found = audit(looks_ahead, shop_log, options=AuditOptions(steps=(5,)), checks=["shift"])
    assert 1 < len(found.alarms) <= 6
    assert any(one.where.endswith(", orders") for one in found.alarms[1:])


def test_who_logs_in_later_is_known_too_early_as_published(shop_log: Log, tmp_path: Path) -> None:
    options = FeatureOptions(compat="published")
    published = make_features(sessionise(shop_log), folder=tmp_path / "published", options=options)
    _, changed = shift_test(shop_log, published, sample=20, steps=(0, 5))
    assert {"(setting)"} < {one["column"] for one in changed}


def test_a_stored_value_from_the_future_is_found(
    shop_log: Log, table_shift: FeatureTable, table: FeatureTable
) -> None:
    columns = dict(table_shift.view.columns)
    columns["orders"] = columns["orders"] + table_shift.labels  # this session's own purchase
    # As if the last page's time had slipped to the page before.
    times = table_shift.view.page_times.copy()
    times[:, 3] = times[:, 4]
    leaking = replace(table_shift, view=replace(table_shift.view, columns=columns, page_times=times))
    _, changed = shift_test(shop_log, leaking, sample=100, steps=(3, 4))
    found = {
        (column, step): {one["session"] for one in changed if (one["column"], one["step"]) == (column, step)}
        for column in ("orders", "page_us_4")
        for step in (3, 4)
    }
    identified = set(table_shift.session_ids[table_shift.population("identified", 3)].tolist())
    buyers = set(table_shift.session_ids[table_shift.labels].tolist())
    assert found["orders", 3] == identified & buyers
    waited = table_shift.view.page_times[:, 4] > table_shift.view.page_times[:, 3]
    assert found["page_us_4", 4] == set(table_shift.session_ids[waited & table_shift.undecided(4)].tolist())
    assert found["page_us_4", 3] == set()

    with pytest.raises(MismatchError, match="was not made of the sessions"):
        shift_test(shop_log, table, steps=(0,))
