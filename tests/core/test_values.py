"""Draws, fingerprints, options, registries, progress and tables: values in, the same values out everywhere."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, model_validator
from refusals import refused
from rich.console import Console

from diptych.core.context import Task, report_to, track
from diptych.core.draws import Draws, draw_below, draw_uniform, keys_of
from diptych.core.errors import RecipeError, StorageError, UnknownNameError, UsageError
from diptych.core.fingerprint import (
    fingerprint,
    fingerprint_arrays,
    fingerprint_bytes,
    fingerprint_file,
)
from diptych.core.options import Options
from diptych.core.registry import Registry
from diptych.core.table import Cell, Table
from diptych.data.readers import READERS
from diptych.encoders.family import FAMILIES
from diptych.index import ENGINES
from diptych.metrics.measures import MEASURES
from diptych.objectives import OBJECTIVES

MASK = 2**64 - 1


def mixed(bits: int) -> int:
    """One step of SplitMix64 with Python's own integers."""
    bits = (bits + 0x9E3779B97F4A7C15) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def state_of(keys: Sequence[int]) -> int:
    state = 0
    for key in keys:
        state = mixed((state + key) & MASK)
    return state


def slow_uniform(*keys: int) -> float:
    return (state_of(keys) >> 11) / 2**53


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5), st.integers(1, 1000))
def test_it_is_splitmix(keys: list[int], limit: int) -> None:
    assert draw_uniform(*keys).tolist() == [slow_uniform(*keys)]
    assert draw_below(limit, *keys).tolist() == [(state_of(keys) >> 11) * limit >> 53]


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    rows, places = np.array([7, 0, 123_456]), np.arange(4)
    drawn = draw_uniform(3, 1, rows[:, None], places)
    assert drawn.shape == (3, 4)
    for row, values in zip(rows.tolist(), drawn.tolist(), strict=True):
        assert values == [slow_uniform(3, 1, row, place) for place in places.tolist()]


def test_a_names_number_is_its_own() -> None:
    """CRC-32, which other programs know too: a draw can be made again anywhere."""
    assert keys_of(["a.jpg", "ü.jpg", ""]).tolist() == [2603921942, zlib.crc32("ü.jpg".encode()), 0]
    assert keys_of(["b", "a.jpg"])[1] == keys_of(["a.jpg"])[0]
    assert keys_of([]).tolist() == []
    assert keys_of(["\ud800"]).tolist() == [zlib.crc32(b"\xed\xa0\x80")]  # half a character is a name, too


def slow_stream(*keys: int) -> Iterator[int]:
    """53 bits in turn: the keys make the state, which then steps."""
    state = state_of(keys)
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        yield mixed(state) >> 11


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4), st.integers(1, 1000))
def test_a_stream_is_splitmix_of_its_keys(keys: list[int], limit: int) -> None:
    draws, slow = Draws(*keys), slow_stream(*keys)
    assert [draws.uniform() for _ in range(3)] == [next(slow) / 2**53 for _ in range(3)]
    assert [draws.below(limit) for _ in range(3)] == [next(slow) * limit >> 53 for _ in range(3)]


def test_what_counts_in_a_fingerprint(tmp_path: Path) -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert len(fingerprint(None)) == 16
    base = fingerprint_arrays({"x": np.zeros((2, 3), np.float32)})
    assert base == fingerprint_arrays([("x", np.zeros((2, 3), np.float32))])
    assert base != fingerprint_arrays({"y": np.zeros((2, 3), np.float32)})
    assert base != fingerprint_arrays({"x": np.zeros((3, 2), np.float32)})
    assert base != fingerprint_arrays({"x": np.zeros((2, 3), np.int32)})
    assert fingerprint_arrays({"x": np.float64(1)}) != fingerprint_arrays({"x": np.float64(2)})
    content = b"same" * (1 << 19)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(content)
    assert fingerprint_file(tmp_path / "a") == fingerprint_file(tmp_path / "b") == fingerprint_bytes(content)
    (tmp_path / "b").write_bytes(b"other")
    assert fingerprint_file(tmp_path / "a") != fingerprint_file(tmp_path / "b")


@settings(max_examples=30)
@given(
    st.lists(st.one_of(st.text(max_size=4), st.integers(), st.dictionaries(st.text(max_size=2), st.none())))
)
def test_lists_that_are_gone_through_count_like_lists(values: list[object]) -> None:
    many = values * 800
    assert fingerprint(iter(values), iter(many), iter([])) == fingerprint(values, many, [])
    assert fingerprint("text", iter(many), 3) == fingerprint("text", many, 3)


class Grid(Options):
    kind: Literal["grid"] = "grid"
    cells: int = Field(4, ge=1)


class Wave(Options):
    kind: Literal["wave"] = "wave"
    length: float = 1.0


class Everything(Options):
    pattern: Grid | Wave = Grid()
    stages: tuple[Grid, ...] = ()
    low: float = 0.0
    high: float = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> Everything:
        if self.low > self.high:
            raise ValueError(f"low {self.low} above high {self.high}")
        return self


def test_a_fault_is_one_line_of_the_readers_error_and_fix() -> None:
    given: Any
    for given, message, fix in (
        ({"lwo": 1}, "file: unknown key 'lwo'", "did you mean 'low'? known there: high, low, pattern"),
        ({"stages": [{"cell": 1}]}, "file: unknown key 'stages.0.cell'", "did you mean 'stages.0.cells'? k"),
        ({"stages": [{"cells": 0}]}, "file: stages.0.cells: Input should be greater than or", "got 0"),
        ({"low": 2}, "file: low 2.0 above high 1.0", ""),
        ({"low": "x", "high": "y"}, "file: low: .*; 1 more", "got 'x'"),
        ([1], "file: Input should be a valid dictionary or instance of Everything", "got [1]"),
    ):
        assert refused(UsageError, message, Everything.read, given, "file").fix.startswith(fix)
    args = ({"low": "x"}, "file", StorageError, "recreate it")
    assert refused(StorageError, "low", Everything.read, *args).fix == "recreate it"
    refused(RecipeError, "unknown key", Everything.read, {"x": 1}, "recipe", RecipeError)


def test_registries_describe_their_members_and_list_the_nearest_name() -> None:
    registry: Registry[Any] = Registry("thing", "diptych.core")
    for name in ("recall", "precision"):
        registry.add(SimpleNamespace(name=name))
    error = refused(UnknownNameError, "unknown thing 'recal'", registry.get, "recal")
    assert (error.fix, error.exit_code) == ("did you mean 'recall'? known: precision, recall", 2)
    for registry in (READERS, FAMILIES, OBJECTIVES, ENGINES, MEASURES):
        assert registry.names()
        for member in registry:
            assert len(member.description) > 10, member.name


def install(site: Path, name: str, group: str, module: str, entry: str = "mine") -> None:
    """Write what an installer writes of a distribution with one entry point."""
    folder = site / f"{name}-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(f"[{group}]\n{entry} = {module}\n")


def test_a_plug_in_that_fails_half_way_leaves_no_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry: Registry[Any] = Registry("thing", "diptych.core", "diptych.things")
    registry.add(SimpleNamespace(name="own"))
    things = SimpleNamespace(add=lambda name: registry.add(SimpleNamespace(name=name)))
    monkeypatch.setitem(sys.modules, "things", things)  # type: ignore[arg-type]
    monkeypatch.syspath_prepend(tmp_path)
    for name, last in (("sound", ""), ("halved", "raise ValueError('no')"), ("doubled", "things.add('own')")):
        install(tmp_path, f"of_{name}", "diptych.things", f"{name}_things")
        (tmp_path / f"{name}_things.py").write_text(f"import things\nthings.add('{name}')\n{last}\n")
    assert registry.names() == ["own", "sound"]
    assert [message.split(" is left out")[0] for message in sorted(caplog.messages)] == [
        "the plug-in of of_doubled",
        "the plug-in of of_halved",
    ]


class Recorder:
    def __init__(self) -> None:
        self.events: list[str] = []

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        self.events.append(f"start {description} {done}/{total} {unit}")
        recorder = self

        class Bar:
            def advance(self, steps: int = 1, note: str = "") -> None:
                recorder.events.append(f"+{steps}{note}")

        return Bar()

    def finish(self, task: Task) -> None:
        self.events.append("finish")


def test_tracked_items_advance_the_bar_that_is_installed() -> None:
    recorder = Recorder()
    with report_to(recorder):
        assert list(track(["a", "b"], "letters", unit="letters")) == ["a", "b"]
    assert recorder.events == ["start letters 0/2 letters", "+1", "+1", "finish"]


ODD = '<b>&"1 | 2"</b>'
WHY = Cell("why", words=True)

TABLES = [
    Table.of("Words", "a line below", ("name", "value"), [("dogs", "1.5"), (ODD, "−2")]),
    Table("None", ("a", "b", "c", "d"), []),
    Table(
        "Numbers",
        ("row", "left", "right", "words"),
        [
            [Cell("one"), Cell("12.3", "11 to 13", 0.5, value=12.34), Cell("7", strong=True), WHY],
            [Cell("two"), Cell("–"), Cell("0.0", value=0.0), Cell(ODD, words=True)],
        ],
        groups=(("", 1), ("both", 2), ("", 1)),
        after="how & why",
    ),
]


def terminal(table: Table) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def page(table: Table) -> str:
    assert "<b>" not in table.html()
    return unescape(re.sub(r"<[^>]*>", " ", table.html()))


RENDERERS = {
    "terminal": terminal,
    "html": page,
    "csv": lambda table: "\n".join("\t".join(row) for row in csv.reader(io.StringIO(table.csv()))),
    "json": lambda table: json.dumps(json.loads(table.json()), ensure_ascii=False).replace('\\"', '"'),
    "markdown": lambda table: table.markdown().replace("\\|", "|"),
}


def test_every_renderer_has_every_cell_and_numbers_stay_numbers() -> None:
    for renderer, table in itertools.product(RENDERERS, TABLES):
        text = RENDERERS[renderer](table)
        for column in table.columns:
            assert column in text
        for cell in (cell for row in table.rows for cell in row):
            raw = cell.value is not None and renderer in ("csv", "json")
            assert (str(cell.value) if raw else cell.text) in text
            assert cell.note in text or raw
        if renderer not in ("terminal", "csv"):
            assert table.caption in text
            assert table.after in text
    rows = list(csv.reader(io.StringIO(TABLES[2].csv())))
    assert rows[1][1] == "12.34"
    assert json.loads(TABLES[2].json())["rows"][0][1] == 12.34
    acting = Table.of("x", "", ("a",), [("=1+1",), ("@x",), ("-1.5",), ("+3 %",), ("-x",)])
    rows = list(csv.reader(io.StringIO(acting.csv())))
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'@x", "-1.5", "+3 %", "'-x"]
    assert Cell.number(1234.567, 1, 1200.0, 1300.04) == Cell("1,234.6", "1,200.0–1,300.0", value=1234.567)
    assert Cell.number(-0.0001, 2, -1.0, 0.0, sign="+").line == "+0.00 (-1.00 to +0.00)"
    assert Cell.number(None, 2, 0.0, 1.0) == Cell("–")
    frame = TABLES[2].to_pandas()
    assert list(frame.columns) == ["row", "both left", "both right", "words"]
    assert frame["both left"].tolist() == pytest.approx([12.34, math.nan], nan_ok=True)
    assert frame["both left"].dtype == float
