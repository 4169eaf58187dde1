from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.core.errors import UsageError
from diptych.report.sheets import Example, draw_shortcut_sheet, write_shortcut_sheet


def pixels(side: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)


def holds(sheet: Image.Image, wanted: np.ndarray) -> list[tuple[int, int]]:
    """Left and top of every place where the sheet shows exactly these pixels."""
    whole = np.asarray(sheet)
    height, width = wanted.shape[:2]
    tops, lefts = np.nonzero((whole == wanted[0, 0]).all(axis=2))
    return [
        (left, top)
        for top, left in zip(tops.tolist(), lefts.tolist(), strict=True)
        if np.array_equal(whole[top : top + height, left : left + width], wanted)
    ]


def test_pictures_stand_in_rows_pixel_for_pixel() -> None:
    examples = [Example(f"picture {seed}", pixels(224, seed), ["A cat. 0 0 1 2 3 4"]) for seed in range(5)]
    sheet = draw_shortcut_sheet("unique", examples)
    places = [holds(sheet, example.pixels) for example in examples]
    assert [len(place) for place in places] == [1] * 5
    corners = [place[0] for place in places]
    assert len({top for _, top in corners[:4]}) == 1
    assert corners[4][1] > corners[0][1] + 224
    assert np.diff([left for left, _ in corners[:4]]).tolist() == [244] * 3


def test_small_pictures_are_enlarged_in_squares() -> None:
    small = pixels(64)
    sheet = draw_shortcut_sheet("unique", [Example("small", small, [])])
    assert len(holds(sheet, small.repeat(3, axis=0).repeat(3, axis=1))) == 1


def test_captions_and_title_are_written() -> None:
    def ink(title: str, captions: list[str]) -> int:
        sheet = draw_shortcut_sheet(title, [Example("n", np.full((224, 224, 3), 255, np.uint8), captions)])
        return int((np.asarray(sheet).min(axis=2) < 128).sum())

    assert ink("unique", ["A cat. 0 0 1 2 3 4"]) > ink("unique", ["A cat."]) > ink("unique", [])
    assert ink("a longer title", []) > ink("unique", [])


def test_only_png_keeps_every_pixel(tmp_path: Path) -> None:
    example = Example("one", pixels(224), ["caption"])
    path = write_shortcut_sheet(tmp_path / "sheet.png", "title", [example])
    with Image.open(path) as written:
        assert len(holds(written.convert("RGB"), example.pixels)) == 1
    with pytest.raises(UsageError, match=r"'sheet\.jpg' ends in '\.jpg'"):
        write_shortcut_sheet(tmp_path / "sheet.jpg", "title", [example])
    with pytest.raises(UsageError, match="a sheet of no pictures"):
        draw_shortcut_sheet("title", [])
