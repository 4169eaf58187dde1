"""``diptych scenes --shop-log``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command


def test_a_log_is_made_and_told_of(diptych: Command, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    done = diptych(
        "scenes", "--shop-log", "--visitors", 60, "--dirt", 0.1, "--days", 7, "--seed", 2, "-o", folder
    )
    assert done.code == 0, done.err
    truth = json.loads((folder / "truth.json").read_text())
    header = json.loads((folder / "dataset.json").read_text())
    assert (header["visitors"], header["days"], header["seed"], header["dirt"]) == (60, 7, 2, 0.1)
    assert f"a log of {truth['events']:,} events" in done.out
    for rule, rows in truth["dirt"].items():
        assert rule in done.out
        assert f"{rows:,}" in done.out
    assert f"next: diptych intent ingest {folder} --out log" in done.out
    assert (folder / "events.csv.gz").is_file()


def test_a_clean_log_in_parquet_is_in_the_cache(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path))
    done = diptych("scenes", "--shop-log", "--visitors", 10, "--format", "parquet")
    assert done.code == 0, done.err
    assert "rows that are none" not in done.out
    assert len(list(tmp_path.glob("shop-log/*/events/part-*.parquet"))) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--shop-log", "--train", 3), "--train is of pictures"),
        (("--shop-log", "-k", 3), "--captions is of pictures"),
        (("--shop-log", "--objects", 1), "--objects is of pictures"),
        (("--visitors", 3), "--visitors is of a log"),
        (("--format", "csv"), "--format is of a log"),
        (("--dirt", 0.1), "give --shop-log or --products too"),
        (("--shop-log", "--format", "json"), "known: csv, parquet"),
        (("--shop-log", "--visitors", 0), "0 visitors"),
    ],
)
def test_options_of_the_other_kind_are_refused(
    diptych: Command, tmp_path: Path, given: tuple[object, ...], said: str
) -> None:
    done = diptych("scenes", *given, "--out", tmp_path / "o")
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "o").exists()
