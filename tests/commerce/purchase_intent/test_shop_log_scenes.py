"""From a generated raw log to statistics: what was planted comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from statistics_oracle import check_rows

from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.purchase_intent.statistics import ORDER, DescribeOptions, Description, describe
from diptych.core.reading import read_json
from diptych.data.logs import Cleaning
from diptych.data.logs.ingest import ingest
from diptych.data.scenes.shop_log import DEFAULT, make_shop_log
from diptych.data.scenes.shop_log.chance import COUNTRIES, DEVICES, MOST_EVENTS


def described(folder: Path, confidence: float = 0.95, **world: Any) -> tuple[Description, Mapping[str, Any]]:
    shop = make_shop_log(folder / "shop", **world)
    cleaning = Cleaning(countries=COUNTRIES, devices=tuple(DEVICES.values()), most_events=MOST_EVENTS)
    log = ingest(shop, folder / "log", cleaning=cleaning, buckets=2)
    options = DescribeOptions(confidence=confidence)
    return describe(sessionise(log), options=options), read_json(shop / "truth.json")


def test_every_statistic_is_the_truth(tmp_path: Path) -> None:
    found, truth = described(tmp_path, visitors=250, dirt=True, seed=5)
    assert sorted(truth["statistics"]) == sorted(ORDER)
    for name, rows in truth["statistics"].items():
        check_rows(found.rows(name), rows)


def test_planted_parameters_lie_in_their_intervals(tmp_path: Path) -> None:
    # Without what makes sessions of one visitor alike, which intervals know nothing of.
    effects = replace(DEFAULT, repeat=0.0)
    found, truth = described(tmp_path, 0.9999, visitors=1_500, effects=effects, seed=2)
    planted = truth["expected"]
    for name in ("channels", "devices"):
        for row in found.rows(name):
            assert row["low"] <= planted[name][row[name.removesuffix("s")]]["rate"] <= row["high"]
    for name, column, expected in (("week-days", "week_day", "week_days"), ("hours", "hour", "hours")):
        for row in found.rows(name):
            share = planted[expected]["purchase" if row["purchase"] else "other"][row[column]]
            assert row["low"] <= share <= row["high"]
    for row in found.rows("device-transitions"):
        share = planted["device_transitions"][row["from_device"]][row["to_device"]]
        assert row["low"] <= share <= row["high"]
    for row in found.rows("queries"):
        if row["device"] != "all" and row["sessions"] >= 50:
            expected = planted["queries_per_session"]["purchase" if row["purchase"] else "other"]
            assert row["low"] <= expected[row["device"]] <= row["high"]
