"""A leak audit finds planted leaks, and nothing where there is none."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from feature_tables import small_features
from uci_sessions import made_up_table

from diptych.commerce.purchase_intent.auditing import CHECKS, AuditOptions, Finding, LeakAudit, audit
from diptych.commerce.purchase_intent.features import FEATURES, Feature, FeatureTable
from diptych.commerce.purchase_intent.features.fitting import Plain
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.commerce.purchase_intent.features.whole import make_whole_features
from diptych.core.errors import UnknownNameError, UsageError

OPTIONS = AuditOptions(model="logistic-regression", steps=(1, 10), repeats=4, seed=1)


@dataclass(frozen=True, eq=False)
class WithFeature(FeatureTable):
    """A table with one feature more, from the first page on."""

    extra: Feature | None = None

    def features(self, setting: str, feature_set: str, step: int) -> list[Feature]:
        assert self.extra is not None
        return super().features(setting, feature_set, step) + [self.extra] * (step > 0)


def with_feature(table: FeatureTable, compute: Callable[[SessionsView], np.ndarray]) -> FeatureTable:
    extra = replace(FEATURES.get("pages"), name="suspect", how=Plain(compute))
    members = {name: getattr(table, name) for name in FeatureTable.__dataclass_fields__}
    return WithFeature(**members, extra=extra)


def labels_of(view: SessionsView) -> np.ndarray:
    assert view.labels is not None
    return view.labels.astype(float)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("features") / "shop", n=900, seed=2)


def of(found: LeakAudit, check: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.check == check]


def test_an_honest_table_raises_no_alarm(table: FeatureTable) -> None:
    found = audit(table, options=OPTIONS)
    assert found.alarms == []
    assert list(found.checks) == ["shift", "known-columns", "single-column", "permuted-labels", "drift"]
    assert of(found, "shift")[0].text == "not looked at: it needs the log that the features were made of"
    singles = of(found, "single-column")
    assert [one.where for one in singles] == [f"{s}, step {k}" for s in table.settings for k in table.steps]
    permuted = of(found, "permuted-labels")
    assert {one.where for one in permuted} >= {
        f"{setting}, step {step}{column}"
        for setting in table.settings
        for step in (1, 10)
        for column in ("", ", page-sequence-score", ", device-rate")
    }
    assert all(one.low is not None and one.low < 0.55 for one in permuted)
    assert not any("orders" in one.where for one in permuted)  # no label has a part in it


def test_a_feature_that_looks_up_the_label_is_found(table: FeatureTable) -> None:
    """Half of the time, so that no single column is above suspicion's limit."""

    def sometimes(view: SessionsView) -> np.ndarray:
        hidden = view.page_times[:, 0] % 2 == 0
        return np.where(hidden, labels_of(view), 0.5)

    options = replace(OPTIONS, repeats=7)
    found = audit(
        with_feature(table, sometimes), options=options, checks=["permuted-labels", "single-column"]
    )
    assert {one.check for one in found.alarms} == {"permuted-labels"}
    whole = [one for one in found.alarms if one.where.count(",") == 1]
    assert len(whole) == 4  # both settings, both steps
    for one in whole:
        assert one.value is not None
        assert one.low is not None
        assert one.limit == pytest.approx(0.55)
        assert one.value > one.low > one.limit
        assert one.high is not None
        assert one.high <= 1


def test_a_column_too_good_to_be_true_is_found(table: FeatureTable) -> None:
    noisy = with_feature(table, lambda view: -3 * labels_of(view) + np.sin(view.page_times[:, 0] / 1e6))
    found = audit(noisy, options=OPTIONS, checks=["single-column"])
    alarms = {one.where: one for one in found.alarms}
    assert set(alarms) == {f"{s}, step {k}, suspect" for s in table.settings for k in table.steps if k}
    assert all(one.value is not None and one.value > 0.95 for one in alarms.values())


def test_a_missing_value_can_give_it_away(table: FeatureTable) -> None:
    missing = with_feature(table, lambda view: np.where(labels_of(view) == 1, np.nan, 5.0))
    found = audit(missing, options=OPTIONS, checks=["single-column"])
    assert found.alarms[0].value == 1.0


def test_drift_is_said_and_no_alarm(table: FeatureTable) -> None:
    rising = with_feature(table, lambda view: view.page_times[:, 0].astype(float))
    found = audit(rising, options=OPTIONS, checks=["drift"])
    assert found.alarms == []
    last = of(found, "drift")[-1]
    assert last.value is not None
    assert last.value > 0.9
    assert "most by suspect (1.000 alone)" in last.text
    assert "can be told apart" in last.text
    still = audit(table, options=OPTIONS, checks=["drift"])
    assert all("look alike" in one.text for one in still.findings)


def test_drift_without_times(tmp_path: Path) -> None:
    """Parts and halves are both drawn by person, and not by the same draw."""
    whole = make_whole_features(made_up_table(tmp_path / "uci.csv", 600), folder=tmp_path / "features")
    found = audit(whole, options=replace(OPTIONS, steps=None), checks=["drift"])
    assert found.findings[0].value == pytest.approx(0.5, abs=0.1)


def test_known_columns(table: FeatureTable) -> None:
    about: dict[str, Any] = {**table.about, "kept_leaking": ["PageValues"]}
    found = audit(replace(table, about=about), options=OPTIONS, checks=["known-columns"])
    assert [(one.where, one.alarm) for one in found.findings] == [("PageValues", True)]
    about = {**table.about, "left_out": [{"column": "PageValues", "why": "it is the value"}]}
    found = audit(replace(table, about=about), options=OPTIONS, checks=["known-columns"])
    assert [(one.where, one.alarm, one.text) for one in found.findings] == [
        ("PageValues", False, "left out: it is the value")
    ]


def test_too_few_sessions_are_said(tmp_path: Path) -> None:
    found = audit(small_features(tmp_path / "few", n=60), options=OPTIONS)
    assert found.alarms == []
    for name in ("single-column", "permuted-labels", "drift"):
        assert all("too few" in one.text for one in of(found, name))
    empty = audit(small_features(tmp_path / "one", n=1), options=OPTIONS)
    assert of(empty, "drift")[0].text in ("no session to look at",) or "too few" in of(empty, "drift")[0].text


def test_it_is_read_back_and_the_same_every_time(table: FeatureTable, tmp_path: Path) -> None:
    checks = ["single-column", "drift"]
    found = audit(table, options=OPTIONS, checks=checks)
    found.save(tmp_path / "audit")
    assert LeakAudit.open(tmp_path / "audit") == found
    audit(table, options=OPTIONS, checks=checks).save(tmp_path / "again")
    for name in ("leak_audit.json", "findings.csv"):
        assert (tmp_path / "audit" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    with open(tmp_path / "audit" / "findings.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["where"] for row in rows] == [one.where for one in found.findings]
    assert "26 findings of 2 checks, 0 alarms" in found.line()


def test_fewer_sessions_may_be_looked_at(table: FeatureTable) -> None:
    found = audit(table, options=replace(OPTIONS, most=150), checks=["single-column"])
    whole = audit(table, options=OPTIONS, checks=["single-column"])
    assert [one.where for one in found.findings] == [one.where for one in whole.findings]
    assert found.findings[0] != whole.findings[0]


def test_what_is_refused(table: FeatureTable) -> None:
    with pytest.raises(UnknownNameError, match="unknown check 'drfit'"):
        audit(table, checks=["drfit"])
    with pytest.raises(UnknownNameError, match="unknown step '11'"):
        audit(table, options=AuditOptions(steps=(11,)))
    with pytest.raises(UnknownNameError, match="unknown feature set"):
        audit(table, options=AuditOptions(feature_set="all"))
    with pytest.raises(UsageError, match="no interval"):
        AuditOptions(repeats=1)
    with pytest.raises(UsageError, match="above 0.5"):
        AuditOptions(highest=0.4)
    assert CHECKS.names() == sorted(["shift", "known-columns", "single-column", "permuted-labels", "drift"])
