"""A log is made once, found again, the same from the same seed, and never half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import every_byte
from raw_shop_logs import raw_rows

from diptych.commerce.scenes.shop_log import make as make_module
from diptych.commerce.scenes.shop_log import make_shop_log
from diptych.commerce.scenes.shop_log.chance import event_files


def by_visitor(rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Rows of each visitor's cookies, sorted: the second half of a cookie is visitor × 5 + device."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(int(row["cookie"][8:], 16) // 5, []).append(row)
    return {visitor: sorted(some, key=lambda row: repr(row)) for visitor, some in found.items()}


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, file_format: str) -> None:
    first, second, other = (
        make_shop_log(tmp_path / name, visitors=30, seed=seed, dirt=True, format=file_format)
        for name, seed in (("first", 3), ("second", 3), ("other", 4))
    )
    assert every_byte(first) == every_byte(second)
    assert list(first.glob(event_files(file_format)))
    rows = {"first": raw_rows(first), "other": raw_rows(other)}
    times = {name: {row["time"] for row in some if row["time"]} for name, some in rows.items()}
    assert len(times["first"] & times["other"]) <= 5, "hardly more than what stands for no time"


def test_a_larger_log_begins_with_the_visitors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_module, "_BLOCK", 16)
    few = by_visitor(raw_rows(make_shop_log(tmp_path / "few", visitors=23, seed=3)))
    monkeypatch.setattr(make_module, "_BLOCK", 10)
    many = by_visitor(raw_rows(make_shop_log(tmp_path / "many", visitors=47, seed=3)))
    assert len(few) == 23
    assert len(many) == 47
    assert {visitor: many[visitor] for visitor in few} == few


def test_blocks_change_nothing_but_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make_shop_log(tmp_path / "whole", visitors=50, seed=3, dirt=0.05, format="parquet")
    monkeypatch.setattr(make_module, "_BLOCK", 7)
    monkeypatch.setattr("diptych.commerce.scenes.shop_log.raw._ROWS", 100)
    parts = make_shop_log(tmp_path / "parts", visitors=50, seed=3, dirt=0.05, format="parquet")
    assert (parts / "truth.json").read_bytes() == (whole / "truth.json").read_bytes()
    assert len(list((parts / "events").iterdir())) > 3
    assert sorted(map(repr, raw_rows(parts))) == sorted(map(repr, raw_rows(whole)))
