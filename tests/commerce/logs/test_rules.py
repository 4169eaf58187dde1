from __future__ import annotations

from pathlib import Path
from typing import Any

from imported import dropped_of, events_of, import_text
from refusals import refused

from diptych.commerce.logs import ColumnMapping, ingest, read_mapping
from diptych.core.artifact import encode
from diptych.core.errors import UsageError


def test_the_first_of_equal_events_stays_also_of_those_in_several_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.csv").write_text("time,client,visitor\n2019-10-02,x,\n2019-10-02,x,7\n2019-10-03,x,\n")
    (folder / "a.csv").write_text("time,client,visitor\n2019-10-02,x,\n2019-10-01,x,\n")
    log = ingest(folder, tmp_path / "log")
    told = [(event["event_id"], event["visitor_id"], event["local_day"]) for event in events_of(log)]
    assert told == [(0, None, 18171), (1, None, 18170), (3, "7", 18171), (4, None, 18172)]
    assert dropped_of(log) == {"duplicate": 1}


def test_an_address_tells_events_apart_and_is_not_kept(tmp_path: Path) -> None:
    content = "time,client,address\n2019-10-02,a,/1\n2019-10-02,a,/2\n2019-10-02,a,/1\n2019-10-02,a,\n"
    log = import_text(tmp_path, content)
    assert [event["event_id"] for event in events_of(log)] == [0, 1, 3]
    assert "address" not in events_of(log)[0]


MAPPING = """
time_format = "%d.%m.%Y %H:%M"
missing = ["0"]
[columns]
time = "ts"
client = "cookie"
visitor = "customer"
action = "event"
device = "screen"
page_type = "template"
purchase = "template"
[values.action]
page = ["screen_view"]
other = ["view"]
[values.device]
tablet = ["iPad"]
[values.page_type]
confirmation = ["order_done"]
[values.purchase]
yes = ["order_done"]
[constants]
channel = "Paid"
country = "nl"
"""


def test_a_file_says_which_column_holds_what_and_what_values_mean(tmp_path: Path) -> None:
    (tmp_path / "mapping.toml").write_text(MAPPING)
    content = "\n".join(
        [
            "ts|cookie|customer|event|screen|template",
            "01.10.2019 10:00|a|0|screen_view|iPad|home",
            "01.10.2019 10:01|a|7|VIEW|desktop|home",
            "01.10.2019 10:02|0|7|pageview|Watch|order_done",
            "01.10.2019 10:03|0|0|pageview||home",
            "01.10.2019 10:04|a||zoom||home",
        ]
    )
    mapping = read_mapping(tmp_path / "mapping.toml")
    log = import_text(tmp_path, content, mapping=mapping)
    columns = "client_id visitor_id action device page_type is_purchase channel country"
    assert [tuple(event[name] for name in columns.split()) for event in events_of(log)] == [
        ("a", None, "page", "tablet", "home", False, "paid", "NL"),
        ("a", "7", "other", "pc", None, False, "paid", "NL"),
        ("visitor:7", "7", "page", "watch", "confirmation", True, "paid", "NL"),
    ]
    assert dropped_of(log) == {"no client": 1, "unknown action": 1}
    assert any(note.startswith("1 events have a visitor and no client") for note in log.about["notes"])
    assert log.about["options"]["mapping"] == encode(mapping, {})


def test_names_and_values_of_strangers_are_never_sql(tmp_path: Path) -> None:
    bad = "x'); DROP TABLE events; --"
    column = '"cookie"\'; --'
    content = f'time,"{column.replace(chr(34), chr(34) * 2)}",event\n2019-10-01,"{bad}","{bad}"\n2019-10-01,b,other\n'
    mapping = ColumnMapping(
        columns={"time": "time", "client": column, "action": "event", "device": "event"},
        values={"action": {"page": (bad,)}, "device": {bad: (bad,)}},
        constants={"channel": bad},
        missing=(f"{bad}{bad}",),
    )
    found = events_of(import_text(tmp_path, content, mapping=mapping))
    assert [(event["client_id"], event["action"], event["device"], event["channel"]) for event in found] == [
        (bad, "page", bad.lower(), bad.lower()),
        ("b", "other", "other", bad.lower()),
    ]


def test_mappings_that_cannot_be() -> None:
    cases: Any = [
        ({"columns": {"tme": "x"}}, "columns: nothing is called 'tme'.*known: time, client"),
        ({"values": {"price": {}}}, "values: nothing is called 'price'"),
        ({"constants": {"time": "now"}}, "constants: nothing is called 'time'"),
        ({"values": {"action": {"zoom": ("z",)}}}, "action: nothing is called 'zoom'.*page, query, add"),
        ({"constants": {"action": "zoom"}}, "constants.action: nothing is called 'zoom'"),
        ({"values": {"purchase": {"no": ("0",)}}}, "values.purchase: .*known: yes"),
    ]
    for arguments, says in cases:
        refused(UsageError, says, ColumnMapping, **arguments)


def test_files_and_columns_that_are_no_mapping(tmp_path: Path) -> None:
    for content, says in (
        ("[columns", "is not TOML"),
        ("[column]\n", "unknown key 'column' .*columns, constants, missing, time_format, values"),
        ("[columns]\ntime = [1]", "columns.time: Input should be a valid string"),
    ):
        (tmp_path / "mapping.toml").write_text(content)
        refused(UsageError, says, read_mapping, tmp_path / "mapping.toml")
    for options, says in (
        ({"column": ["client=who"]}, "events.csv has columns when, who: client=who does not name the time"),
        ({"column": ["time=when", "client=cookie"]}, "time=when, client=cookie does not name"),
        ({"column": ["time"]}, "is not KEY=VALUE"),
        ({"time_format": "iso"}, "nothing does not name the time"),
        ({"mapping": ColumnMapping(), "format": "rees46"}, "'rees46' takes no columns"),
    ):
        refused(UsageError, says, import_text, tmp_path, "when,who\n1,2\n", **options)
