"""The shift test as a check: silent where nothing looks ahead, an alarm where a stored value does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from events import write_log
from intent_logs import random_events

from diptych.commerce.purchase_intent.auditing import AuditOptions, audit
from diptych.commerce.purchase_intent.features import make_features
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.core.errors import MismatchError

OPTIONS = AuditOptions(seed=3)


def test_what_later_events_change(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", random_events(1, visitors=6, sessions=25))
    features = make_features(sessionise(log), folder=tmp_path / "features")
    honest = audit(features, log, options=OPTIONS, checks=["shift"])
    assert honest.alarms == []
    (only,) = honest.findings
    assert only.value == 0.0
    assert "none changed" in only.text
    assert honest.about["log"] == "log"

    # As if orders had been counted over the whole log.
    orders = features.view.columns["orders"]
    columns = {**features.view.columns, "orders": np.where(np.isnan(orders), orders, orders + 1)}
    looks_ahead = replace(features, view=replace(features.view, columns=columns))
    found = audit(looks_ahead, log, options=OPTIONS, checks=["shift"])
    assert found.findings[0].alarm
    assert found.findings[0].value is not None
    assert found.findings[0].value > 0
    columns_found = {one.where.rpartition(", ")[2] for one in found.alarms[1:]}
    assert "orders" in columns_found <= {"orders", "days-since-purchase:never"}
    assert all(one.where.startswith("identified, step") for one in found.alarms[1:])
    assert 1 < len(found.alarms) <= 6

    other = write_log(tmp_path / "other", random_events(2, visitors=6, sessions=25))
    with pytest.raises(MismatchError, match="was not made of"):
        audit(features, other, options=OPTIONS, checks=["shift"])
