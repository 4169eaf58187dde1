"""Disclosure control: no output of a description, and no study, holds a number that the control suppresses."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from events import write_log

import diptych
from diptych.commerce.purchase_intent.described import Description, describe
from diptych.commerce.purchase_intent.disclosure import DisclosureControl, disclosing
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.purchase_intent.statistics import ORDER, STATISTICS
from diptych.report.intent import description_page
from diptych.studies import STUDIES, Choices, compare
from diptych.studies.page import content_of, study_page
from diptych.studies.runner import run_study

RARE = "console of one"  # used by 3 of 203 sessions, one of which buys


def events() -> Iterator[dict[str, Any]]:
    for number in range(203):
        who = {"client_id": f"c{number}", "visitor_id": f"v{number % 100}", "t": number * 20_000}
        who |= {"device": RARE if number < 3 else "pc" if number % 2 else "tv", "channel": "paid"}
        who["channel"] = RARE if number < 3 else "paid" if number % 3 else "direct"
        yield {**who, "action": "query", "query": f"q{number % 7}"}
        yield {**who, "action": "page", "is_purchase": number % 8 == 0}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Description:
    log = write_log(tmp_path_factory.mktemp("log") / "shop", list(events()))
    return describe(sessionise(log))


def suppressed(row: dict[str, Any], shown: dict[str, Any]) -> list[str]:
    """Return the numbers of a row that the shown one lacks, as an output would write them exactly."""
    lost = [name for name, value in row.items() if shown.get(name) != value and isinstance(value, float)]
    return [f"{row[name]!r}" for name in lost if row[name] not in (0.0, 1.0)]


def outputs(found: Description, folder: Path) -> dict[str, str]:
    """Return the text of everything that leaves a description."""
    found.save(folder)
    texts = {file.name: file.read_text() for file in (folder / "tables").iterdir()}
    tables = [*found.tables(), *(chart.table() for name in found.statistics for chart in found.charts(name))]
    texts["tables"] = "\n".join(
        f"{cell.value!r} {cell.line}" for one in tables for row in one.rows for cell in row
    )
    texts["page"] = description_page(found).html()
    texts["totals"] = repr(found.totals())
    return texts


def test_nothing_suppressed_is_in_any_output(found: Description, tmp_path: Path) -> None:
    with disclosing(DisclosureControl(least=1)):
        everything = outputs(found, tmp_path / "all")
    for control in (DisclosureControl(), DisclosureControl(hide_rates=True)):
        with disclosing(control):
            disclosed = outputs(found, tmp_path / f"rates-{control.hide_rates}")
        check_disclosed(found, control, everything, disclosed)


def check_disclosed(
    found: Description, control: DisclosureControl, everything: dict[str, str], disclosed: dict[str, str]
) -> None:
    rare = [row for row in found.unprotected["devices"] if row["device"] == RARE]
    assert [row["sessions"] for row in rare] == [3]
    hidden = [repr(rare[0][name]) for name in ("purchase_share", "rate", "low", "high")]
    assert all(number in everything["devices.csv"] for number in hidden)
    public = set()
    for name in ORDER:
        with disclosing(control):
            shown = found.rows(name)
        public |= {repr(value) for row in shown for value in row.values()}
        keys = set(STATISTICS.get(name).columns.split()[:2])
        by_key = {tuple(str(row.get(one)) for one in keys): row for row in shown}
        for row in found.unprotected[name]:
            hidden += suppressed(row, by_key.get(tuple(str(row.get(one)) for one in keys), {}))
    for output, text in disclosed.items():
        numbers = set(re.findall(r"\d+\.\d{6,}(?:e-?\d+)?", text))
        assert not (numbers & set(hidden)) - public, output
    assert disclosed.keys() == everything.keys()


def test_a_part_cannot_be_had_by_subtraction(found: Description, tmp_path: Path) -> None:
    with disclosing(DisclosureControl()):
        found.save(tmp_path / "some")
    with (tmp_path / "some" / "tables" / "devices.csv").open() as file:
        rows = {row["device"]: row for row in csv.DictReader(file)}
    assert rows[RARE]["sessions"] == "< 5"
    hidden = [name for name, row in rows.items() if not row["purchase_share"]]
    assert hidden == [RARE, "tv"]  # and the next smallest


def test_a_study_keeps_only_what_may_be_shown(tmp_path: Path) -> None:
    name = "table-6.4"
    log = write_log(tmp_path / "shop", [{**one, "device": one["device"].replace(RARE, "tablet"),
                                         "channel": one["channel"].replace(RARE, "organic")}
                                        for one in events()]).folder  # fmt: skip
    study = STUDIES.get(f"intent.{name}")
    row = "tablet"
    with disclosing(DisclosureControl()):
        results = run_study(study, tmp_path / "study", Choices(data={"path": log}))
        assert results.values(row, "purchase") == []
        compared = compare(study, results)
        texts = [study_page(compared).html(), repr(content_of(compared))]
    kept = [file.read_text() for file in (tmp_path / "study").rglob("*.json")]
    share = 100 * 1 / 51  # of purchase sessions
    assert not any(f"{share:.6f}"[:8] in text for text in [*texts, *kept])
    with disclosing(DisclosureControl(least=1)):
        again = run_study(study, tmp_path / "study", Choices(data={"path": log}))
    assert again.of(row)


def test_code_reads_unprotected_counts_in_one_place_only() -> None:
    package = Path(diptych.__file__).parent
    texts = {file: file.read_text("utf-8") for file in package.rglob("*.py")}
    readers = [str(file.relative_to(package)) for file, text in texts.items() if ".unprotected" in text]
    assert readers == ["commerce/purchase_intent/described.py"]
