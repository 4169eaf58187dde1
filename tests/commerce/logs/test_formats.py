"""Every public format, in the words of its publishers."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from imported import dropped_of, events_of

from diptych.commerce.logs import LOG_FORMATS, Log, ingest
from diptych.core.errors import DataError, UsageError


def written(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / f"{name.replace('__', '-')}.csv").write_text(content)
    return folder


def us(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def told(log: Log, *columns: str) -> list[tuple[Any, ...]]:
    assert log.about["rows_read"] == log.n_events + sum(dropped_of(log).values())
    return [tuple(event[column] for column in columns) for event in events_of(log)]


def test_rees46(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "in",
        oct="event_time,event_type,product_id,category_id,category_code,brand,price,user_id,user_session\n"
        "2019-10-01 00:00:00 UTC,view,44600062,2103807459595387724,,shiseido,35.79,541312140,72d76fde\n"
        "2019-10-01 00:00:01 UTC,cart,3900821,1,appliances,aqua,33.20,554748717,9333dfbd\n"
        "2019-10-01 00:00:02 UTC,remove_from_cart,3900821,1,appliances,aqua,33.20,554748717,9333dfbd\n"
        "2019-10-01 00:00:03 UTC,purchase,3900821,1,appliances,aqua,33.20,554748717,\n"
        "2019-10-01 00:00:04 UTC,wish,3900821,1,appliances,aqua,33.20,554748717,\n",
    )
    log = ingest(folder / "oct.csv", tmp_path / "log")
    assert (log.about["importer"], log.about["purchases"], log.about["visitors"]) == ("rees46", 1, 2)
    columns = (
        *("client_id", "visitor_id", "given_session", "action", "page_type", "item_id"),
        *("price", "is_purchase"),
    )
    assert told(log, *columns) == [
        ("541312140", "541312140", "72d76fde", "page", "product", "44600062", 35.79, False),
        ("554748717", "554748717", "9333dfbd", "add", None, "3900821", 33.20, False),
        ("554748717", "554748717", "9333dfbd", "remove", None, "3900821", 33.20, False),
        ("554748717", "554748717", None, "purchase", None, "3900821", 33.20, True),
    ]
    assert events_of(log)[0]["t_us"] == us("2019-10-01")
    assert dropped_of(log) == {"unknown action": 1}
    assert log.about["rules"][3]["named"] == {"wish": 1}


def test_yoochoose_as_published_and_in_excerpts(tmp_path: Path) -> None:
    (tmp_path / "dat").mkdir()
    (tmp_path / "dat" / "yoochoose-clicks.dat").write_text(
        "1,2014-04-07T10:51:09.277Z,214536502,0\n1,2014-04-07T10:54:09.868Z,214536500,S\n"
    )
    (tmp_path / "dat" / "yoochoose-buys.dat").write_text(
        "1,2014-04-07T10:58:00.306Z,214536502,1046,1\n2,2014-04-07T11:00:00.000Z,7,0,1\n"
    )
    (tmp_path / "dat" / "dataset-README.txt").write_text("SUMMARY\n")
    log = ingest(tmp_path / "dat", tmp_path / "log")
    assert told(log, "event_id", "client_id", "action", "item_id", "price", "is_purchase") == [
        (0, "1", "purchase", "214536502", 1046.0, True),  # buys come before clicks by name
        (1, "2", "purchase", "7", None, True),
        (2, "1", "page", "214536502", None, False),
        (3, "1", "page", "214536500", None, False),
    ]
    assert events_of(log)[2]["t_us"] == us("2014-04-07T10:51:09.277")
    assert [one["file"] for one in log.about["sources"]] == ["yoochoose-buys.dat", "yoochoose-clicks.dat"]
    assert "left out, for it holds no events: dataset-README.txt" in log.about["notes"]
    (tmp_path / "excerpt.csv").write_text("session_id,timestamp,item_id\n1,1396860669.277,214536502\n")
    excerpt = ingest(tmp_path / "excerpt.csv", tmp_path / "excerpt")
    first = ("1", us("2014-04-07T08:51:09.277"), "product")
    assert told(excerpt, "client_id", "t_us", "page_type") == [first]


def test_diginetica(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "in",
        train__item__views="sessionId;userId;itemId;timeframe;eventdate\n1;NA;81766;526309;2016-05-09\n",
        train__purchases="sessionId;userId;timeframe;eventdate;ordernumber;itemId\n1;7;86400001;2016-05-09;99;81766\n",
        train__queries="queryId;sessionId;userId;timeframe;duration;eventdate;searchstring.tokens;categoryId;items;is.test\n"
        "1;1;NA;0;307;2016-05-09;16655,244087;0;7518,71;FALSE\n2;1;NA;5;3;2016-05-09;;30;1,2;TRUE\n",
        products="itemId;pricelog2;product.name.tokens\n1;10;4,5\n",
    )
    (folder / "train-clicks.csv").write_text("queryId;timeframe;itemId\n1;16;24857\n")
    log = ingest(folder, tmp_path / "log", zone="Europe/Amsterdam")
    assert (log.about["importer"], log.hours_known) == ("diginetica", False)
    assert any("hours of the day say nothing" in note for note in log.about["notes"])
    columns = ("client_id", "visitor_id", "action", "page_type", "query", "item_id", "t_us")
    assert told(log, *columns) == [
        ("1", None, "page", "product", None, "81766", us("2016-05-09T00:08:46.309")),
        ("1", "7", "purchase", None, None, "81766", us("2016-05-10T00:00:00.001")),
        ("1", None, "query", None, "16655,244087", None, us("2016-05-09")),
        ("1", None, "page", "category", None, None, us("2016-05-09T00:00:00.005")),
    ]
    for name in ("products.csv", "train-clicks.csv"):
        assert f"left out, for it holds no events: {name}" in log.about["notes"]


def test_sigir_tells_a_products_page_once(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "in",
        browsing_train="session_id_hash,event_type,product_action,product_sku_hash,server_timestamp_epoch_ms,hashed_url\n"
        "s,event_product,detail,sku,1550885210881,url\n"
        "s,pageview,,,1550885210881,url\n"
        "s,pageview,,,1550885210882,url\n"
        "s,event_product,add,sku,1550885210883,url2\n"
        "s,pageview,,,1550885210883,url3\n"
        "s,pageview,,,1550885210883,url2\n"
        "s,event_product,purchase,sku,1550885210884,url2\n",
        search_train="session_id_hash,query_vector,clicked_skus_hash,product_skus_hash,server_timestamp_epoch_ms\n"
        "s,\"[0.1, -0.2]\",,\"['a', 'b']\",1550885210890\n",
        sku_to_content="product_sku_hash,description_vector\nsku,\n",
    )
    log = ingest(folder, tmp_path / "log")
    assert dropped_of(log) == {"twin": 1}
    assert told(log, "event_id", "action", "page_type", "item_id", "query") == [
        (0, "page", "product", "sku", None),
        (2, "page", "page", None, None),
        (3, "add", None, "sku", None),
        (4, "page", "page", None, None),
        (5, "page", "page", None, None),
        (6, "purchase", None, "sku", None),
        (7, "query", None, None, hashlib.md5(b"[0.1, -0.2]").hexdigest()[:16]),
    ]
    assert events_of(log)[0]["t_us"] == 1_550_885_210_881_000


def test_a_generated_shop_log_is_the_truth_and_its_dirt_is_counted(tmp_path: Path) -> None:
    from diptych.commerce.logs import Cleaning
    from diptych.commerce.scenes.shop_log import DEVICES, MOST_EVENTS, make_shop_log
    from diptych.commerce.scenes.visits import COUNTRIES
    from diptych.core.reading import read_json

    shop = make_shop_log(tmp_path / "shop", visitors=60, dirt=True)
    truth = read_json(shop / "truth.json")
    cleaning = Cleaning(countries=COUNTRIES, devices=tuple(DEVICES.values()), most_events=MOST_EVENTS)
    log = ingest(shop, tmp_path / "log", cleaning=cleaning)
    assert (log.about["importer"], log.zone) == ("shop-log", read_json(shop / "dataset.json")["zone"])
    assert dropped_of(log) == {rule: rows for rule, rows in truth["dirt"].items() if rows}
    assert (log.n_events, log.about["rows_read"]) == (truth["events"], truth["rows"])
    assert log.about["purchases"] > 0


def test_formats_are_recognised_or_the_columns_are_said(tmp_path: Path) -> None:
    own, link, uci, out = (tmp_path / name for name in ("own.csv", "link.csv", "uci.csv", "log"))
    own.write_text("when,who\n1,2\n")
    link.symlink_to(own)
    uci.write_text(
        "Administrative,Informational,ProductRelated,PageValues,Month,Revenue\n0,0,1,0,Feb,FALSE\n"
    )
    (tmp_path / "empty").mkdir()
    for given, options, error, says in (
        (own, {}, UsageError, r"own.csv has columns when, who: no log format recognises it \(.*--column"),
        (own, {"format": "yoochoose"}, UsageError, "it is no file of yoochoose"),
        (own, {"format": "rees64"}, UsageError, "did you mean 'rees46'"),
        (tmp_path / "none.csv", {}, DataError, "does not exist"),
        ([own, link], {}, UsageError, r"own\.csv is given 2 times"),
        (tmp_path / "empty", {}, DataError, "has no file of events"),
        (uci, {}, UsageError, r"PageValues is computed from purchases.*diptych intent features"),
    ):
        with pytest.raises(error, match=says):
            ingest(given, out, **options)  # type: ignore[arg-type]
    assert sorted(one.name for one in LOG_FORMATS) == [
        *("columns", "diginetica", "rees46", "shop-log", "sigir", "yoochoose")
    ]


def test_a_log_without_a_zone_says_what_was_assumed(tmp_path: Path) -> None:
    cases: Any = [
        ("2019-10-01 10:00", {}, True, "1 events have times without a zone, read as UTC"),
        ("2019-10-01", {}, True, "1 events have times without a zone, read as UTC"),
        ("2019-10-01 10:00", {"times_in": "Asia/Tokyo"}, True, ""),
        ("2019-10-01T10:00:00Z", {}, False, "the shop's zone is not known"),
        ("2019-10-01 10:00:00+0200", {}, False, "the shop's zone is not known"),
        ("1569924000", {"zone": "Asia/Tokyo"}, True, ""),
    ]
    for time, options, known, says in cases:
        (tmp_path / "log.csv").write_text(f"time,client\n{time},a\n")
        log = ingest(tmp_path / "log.csv", tmp_path / "log", **options)
        assert log.hours_known == known
        notes = [note for note in log.about["notes"] if "zone" in note]
        assert notes[0].startswith(says) if says else not notes
