"""From a generated raw log to statistics: what was planted comes out."""

from __future__ import annotations

from pathlib import Path

from planted_logs import expected

from diptych.commerce.logs import Cleaning
from diptych.commerce.logs.ingest import ingest
from diptych.commerce.purchase_intent.described import Description, describe
from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.scenes.shop_log import DEVICES, EFFECTS, MOST_EVENTS, make_shop_log
from diptych.commerce.scenes.visits import COUNTRIES, Calendar, ShopWorld


def described(shop: Path, confidence: float = 0.95) -> Description:
    cleaning = Cleaning(countries=COUNTRIES, devices=tuple(DEVICES.values()), most_events=MOST_EVENTS)
    log = ingest(shop, shop.with_name("log"), cleaning=cleaning, buckets=2)
    return describe(sessionise(log), options=DescribeOptions(confidence=confidence))


def test_planted_parameters_lie_in_their_intervals(tmp_path: Path) -> None:
    # Without what makes sessions of one visitor alike, which intervals know nothing of.
    independent = {"repeat": 0.0}
    found = described(make_shop_log(tmp_path / "shop", visitors=1_500, effects=independent, seed=2), 0.9999)
    planted = expected(ShopWorld({**EFFECTS, **independent}, Calendar("Europe/Amsterdam", 28), 2))
    for name in ("channels", "devices"):
        for row in found.unprotected[name]:
            assert row["low"] <= planted[name][row[name.removesuffix("s")]]["rate"] <= row["high"]
    for name, column, key in (("week-days", "week_day", "week_days"), ("hours", "hour", "hours")):
        for row in found.unprotected[name]:
            share = planted[key]["purchase" if row["purchase"] else "other"][row[column]]
            assert row["low"] <= share <= row["high"]
    for row in found.unprotected["device-transitions"]:
        share = planted["device_transitions"][row["from_device"]][row["to_device"]]
        assert row["low"] <= share <= row["high"]
    for row in found.unprotected["queries"]:
        if row["device"] != "all" and row["sessions"] >= 50:
            queries = planted["queries_per_session"]["purchase" if row["purchase"] else "other"]
            assert row["low"] <= queries[row["device"]] <= row["high"]
