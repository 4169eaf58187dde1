"""Studies of a shop's catalogue from the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from commands import Command

from diptych.studies import cti_rows


def test_a_quick_study_of_generated_products(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    small = replace(
        cti_rows.TRAINED["quick"],
        products={"n_products": 100, "levels": (2, 3), "size": 32, "seed": 3},
        measure={"train.epochs": 1, "train.hidden": 16, "train.width": 8, "features.text": "lsa:8"},
    )
    monkeypatch.setitem(cti_rows.TRAINED, "quick", small)
    rows = "bm25-most-specific,clip-i-most-specific,clip-ita-most-specific"
    done = diptych("study", "run", "cti.table-7.1", "--quick", "--rows", rows)
    assert done.code == 0, done.err
    assert "Not a reproduction: on product-scenes: 100 products" in done.out
    assert "45.85" in done.out  # printed beside ours
    assert "protocol: dataset product-scenes" in done.out
    assert "next: diptych study verdict studies/cti.table-7.1" in done.out
    page = Path("studies/cti.table-7.1/report.html").read_text()
    assert f"diptych study run cti.table-7.1 --rows {rows} --quick" in page
    assert "Intervals, chance, and products that ask for their category" in page

    beside = diptych("study", "run", "cti.table-7.2", "--quick", "--rows", "most-specific")
    assert beside.code == 0, beside.err
    assert "models in" not in beside.out  # nothing was made again

    again = diptych("study", "verdict", "studies/cti.table-7.1")
    assert again.code == 0
    assert "pictures, share" in again.out


def test_a_wrong_option_is_a_usage_error(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = diptych("study", "run", "cti.table-7.1", "--quick", "--set", "train.epoch=3")
    assert done.code == 2
    assert "unknown key of train 'epoch'" in done.err


def test_show_says_what_is_printed(diptych: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = diptych("study", "show", "cti.table-7.3")
    assert done.code == 0
    assert "xmarket-us test: 38,921 products" in done.out
    assert "is above both parts" in done.out
    assert "diptych study run cti.table-7.3 --quick" in done.out
