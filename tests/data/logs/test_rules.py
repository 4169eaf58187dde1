"""What is dropped, by which rule, and that nothing is dropped uncounted."""

from __future__ import annotations

from pathlib import Path

import pytest
from imported import dropped_of, events_of, import_text

from diptych.core.errors import UsageError
from diptych.data.logs import Cleaning

HEADER = "time,client,visitor,device,country,action,agent\n"
DIRTY = HEADER + "\n".join(
    [
        "2019-10-02,a,,pc,NL,page,Mozilla/5.0 (X11; Linux) Firefox/69.0",
        "2019-10-02,a,,pc,NL,page,Mozilla/5.0 (Linux; Android 9; CUBOT NOVA) Chrome/77",
        "2019-10-02,b,,pc,be,page,",
        "2019-10-02,c,,tablet,,page,",
        "2019-10-02,d,,tv,DE,page,",
        "2019-10-02,e,,,NL,page,",
        "2019-10-02,f,,pc,NL,page,Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        "2019-10-02,f,,pc,NL,page,python-requests/2.22.0",
        "2019-10-01,g,,pc,NL,page,",
        "2019-10-02,h,,pc,NL,jump,",
        "2019-10-02,h,,pc,NL,jump,",
        "2019-10-02,h,,pc,NL,,",
        "2019-10-02,,,tv,XX,jump,bot",
        "soon,,,tv,XX,jump,bot",
        "soon",
    ]
)


def test_a_row_is_counted_under_the_first_rule_that_drops_it(tmp_path: Path) -> None:
    cleaning = Cleaning("2019-10-02", countries=("nl", "BE"), devices=("PC", "tv", "unknown"))
    log = import_text(tmp_path, DIRTY, cleaning=cleaning)
    assert [event["client_id"] for event in events_of(log)] == ["a", "b", "e"]
    assert dropped_of(log) == {
        "unreadable row": 1,
        "unreadable time": 1,
        "no client": 1,
        "unknown action": 3,
        "outside": 1,
        "country": 2,
        "agent": 2,
        "duplicate": 1,
    }
    named = {rule["rule"]: rule.get("named") for rule in log.about["rules"]}
    order = (
        "unreadable row,unreadable time,no client,unknown action,outside,country,device,agent,twin,duplicate"
    )
    assert ",".join(named) == f"{order},too many events"
    assert named["unreadable time"] == {"soon": 1}
    assert named["unknown action"] == {"jump": 2, "(missing)": 1}
    assert named["country"] == {"(missing)": 1, "DE": 1}
    assert log.about["rows_read"] == 15
    assert "agent" not in events_of(log)[0]


def test_rules_can_be_asked_for_less(tmp_path: Path) -> None:
    cleaning = Cleaning(countries=("NL",), keep_missing_country=True, bots=True, duplicates=True)
    log = import_text(tmp_path, DIRTY, cleaning=cleaning)
    assert [event["client_id"] for event in events_of(log)] == ["a", "a", "c", "e", "f", "f", "g"]
    assert {"device", "agent", "duplicate", "outside"}.isdisjoint(rule["rule"] for rule in log.about["rules"])


def test_a_client_with_too_many_events_goes_whole_and_is_named_and_duplicates_do_not_count(
    tmp_path: Path,
) -> None:
    lines = [
        f"2019-10-02T00:00:{second:02d}Z,{client}"
        for client, n in (("bot", 21), ("keen", 20))
        for second in range(n)
    ]
    content = "\n".join(["time,client", *lines, *lines[-5:]])
    log = import_text(tmp_path, content, cleaning=Cleaning(most_events=20))
    assert dropped_of(log) == {"duplicate": 5, "too many events": 21}
    assert log.about["rules"][-1]["named"] == {"bot": 21}
    assert {event["client_id"] for event in events_of(log)} == {"keen"}
    unlimited = import_text(tmp_path, content, cleaning=Cleaning(most_events=None))
    assert unlimited.n_events == 41


def test_the_first_of_equal_events_stays_also_of_those_in_several_files_and_missing_values_are_equal(
    tmp_path: Path,
) -> None:
    from diptych.data.logs import ingest

    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.csv").write_text("time,client,visitor\n2019-10-02,x,\n2019-10-02,x,7\n2019-10-03,x,\n")
    (folder / "a.csv").write_text("time,client,visitor\n2019-10-02,x,\n2019-10-01,x,\n")
    log = ingest(folder, tmp_path / "log")
    assert [(event["event_id"], event["visitor_id"], event["local_day"]) for event in events_of(log)] == [
        (0, None, 18171),
        (1, None, 18170),
        (3, "7", 18171),
        (4, None, 18172),
    ]
    assert dropped_of(log) == {"duplicate": 1}
    assert log.about["sources"][0]["file"] == "a.csv"


def test_an_address_tells_events_apart_and_is_not_kept(tmp_path: Path) -> None:
    content = "time,client,address\n2019-10-02,a,/1\n2019-10-02,a,/2\n2019-10-02,a,/1\n2019-10-02,a,\n"
    log = import_text(tmp_path, content)
    assert [event["event_id"] for event in events_of(log)] == [0, 1, 3]
    assert "address" not in events_of(log)[0]


def test_numbers_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="most events of a client are 0"):
        Cleaning(most_events=0)


@pytest.mark.parametrize("country", ["NLD", "Holland", "N", "N1", "ÄÖ"])
def test_countries_are_two_letters(country: str) -> None:
    with pytest.raises(UsageError, match=f"no country '{country}'"):
        Cleaning(countries=("be", country))
