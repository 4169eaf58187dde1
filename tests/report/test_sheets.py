"""Contact sheets, and the pictures and words on them."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsed_page import broken, picture
from PIL import Image
from refusals import refused

from diptych.core.errors import ImageError, StorageError, UsageError
from diptych.report.document import Card, Gallery, Thumbnails
from diptych.report.pictures import MAX_THUMBNAIL_BYTES, Thumbnail, fit, read_picture
from diptych.report.sheets import FRAME, write_sheet
from diptych.report.style import LIGHT, clean, wrap


def drawn(path: Path, *cards: Card, **options: object) -> np.ndarray:
    """The pixels of a sheet with one gallery."""
    write_sheet(path, "", [Gallery("", cards)], **options)  # type: ignore[arg-type]
    with Image.open(path) as sheet:
        return np.asarray(sheet.convert("RGB"))


def places(sheet: np.ndarray, colour: str) -> np.ndarray:
    """(height, width) where the sheet has a colour."""
    found: np.ndarray = (sheet == list(bytes.fromhex(LIGHT.get(colour, colour)[1:]))).all(axis=2)
    return found


def test_frames_show_states_around_whole_pictures(tmp_path: Path) -> None:
    cards = [Card(state, picture("#123456"), state=state) for state in ("right", "wrong", "unknown", "")]
    sheet = drawn(tmp_path / "sheet.png", *cards)
    inside = places(sheet, "#123456").any(axis=0).nonzero()[0]
    lefts = inside[np.diff(inside, prepend=-9) > 1]
    assert len(lefts) == 4
    row = sheet.shape[0] // 2 - 20
    for left, state in zip(lefts[:3], ("right", "wrong", "unknown"), strict=True):
        assert places(sheet, state)[row, left - FRAME : left].all()
        assert not places(sheet, state)[row, left - FRAME - 1]
    assert places(sheet, "line")[row, lefts[3] - 1]


def test_an_unreadable_picture_is_a_placeholder_and_named(tmp_path: Path) -> None:
    cards = [Card("good", picture()), Card("bad", broken), Card("none", text="a product")]
    assert write_sheet(tmp_path / "sheet.png", "q", [Gallery("", cards)]) == ("bad",)
    with Image.open(tmp_path / "sheet.png") as sheet:
        soft = places(np.asarray(sheet.convert("RGB")), "soft").any(axis=0)
    assert (np.diff(soft.astype(int)) == 1).sum() >= 2  # two placeholders


def test_the_ending_is_the_format(tmp_path: Path) -> None:
    query = Card("me", picture(), label="Query")
    cards = [Gallery("", [Card("i", picture(), "a <i>")]), Gallery("", [Card("c", text="words")], query)]
    for name, kind in (("a.png", "PNG"), ("a.JPG", "JPEG"), ("a.jpeg", "JPEG")):
        write_sheet(tmp_path / kind / name, "title", cards)
        with Image.open(tmp_path / kind / name) as written:
            assert written.format == kind
    write_sheet(tmp_path / "found.html", "images for <b>", cards)
    page = (tmp_path / "found.html").read_text()
    for words in ("images for &lt;b&gt;", "a &lt;i&gt;", "data:image/jpeg"):
        assert words in page
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["a.JPG", "a.jpeg", "a.png", "found.html"]


def test_refused_before_drawing_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery, sheet = Gallery("", [Card("bad", broken)]), tmp_path / "sheet.png"
    for name, exact in (("sheet.gif", False), ("sheet.jpg", True), ("sheet.html", True)):
        message = rf"{name!r} ends in .*\.png"
        refused(UsageError, message, write_sheet, tmp_path / name, "", [gallery], exact=exact)
    refused(UsageError, "give at least 1", write_sheet, sheet, "", [])
    refused(UsageError, "give at least 1", write_sheet, sheet, "", [gallery], 0)
    refused(StorageError, "font", write_sheet, sheet, "title", [gallery], font=tmp_path / "none.ttf")
    monkeypatch.setattr("diptych.report.sheets._JPEG_SIDE", 655)  # of 65,500, which take long to draw
    tall = [Gallery("", [Card(str(n), text="c") for n in range(13)])]
    refused(UsageError, r"too large for JPEG.*\.png", write_sheet, tmp_path / "sheet.jpg", "", tall)
    assert list(tmp_path.iterdir()) == []
    sheet.write_bytes(b"old")

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("PIL.Image.Image.save", full_disk)
    refused(StorageError, "No space left", write_sheet, sheet, "", [Gallery("", [Card("i", picture())])])
    assert sheet.read_bytes() == b"old"


@pytest.mark.parametrize(("side", "factor"), [(224, 1), (64, 3)])
def test_exact_pictures_stand_pixel_for_pixel(tmp_path: Path, side: int, factor: int) -> None:
    random = np.random.default_rng(side)
    given = [random.integers(0, 256, (side, side, 3), dtype=np.uint8) for _ in range(5)]
    cards = [Card(f"image {n}", Image.fromarray(one), "A cat. 0 0 1 2") for n, one in enumerate(given)]
    sheet = drawn(tmp_path / "sheet.png", *cards, columns=4, side=200, exact=True)
    found = []
    for one in given:
        whole = one.repeat(factor, axis=0).repeat(factor, axis=1)
        height, width = whole.shape[:2]
        corners = zip(*np.nonzero((sheet == whole[0, 0]).all(axis=2)), strict=True)
        (corner,) = [
            (top, left)
            for top, left in corners
            if np.array_equal(sheet[top : top + height, left : left + width], whole)
        ]
        found.append(corner)
    assert len({top for top, _ in found[:4]}) == 1
    assert found[4][0] > found[0][0] + factor * side
    assert len(set(np.diff([left for _, left in found[:4]]).tolist())) == 1


def test_bars_are_as_long_as_their_shares(tmp_path: Path) -> None:
    bars = [("dog", 1.0, "2.00", True), ("grass", 0.5, "1.00", False), ("-ped", 0.25, "0.50", True)]
    bars += [("3 more", 0.0, "4.00", False)]
    sheet = drawn(tmp_path / "sheet.png", Card("i1", picture("#123456"), bars=bars), Card("i2", text="none"))
    own, expanded = places(sheet, "blue").sum(axis=1), places(sheet, "orange").sum(axis=1)
    lengths = [int(own.max()), int(expanded.max()), int(own[own > 0].min())]
    assert lengths[1] == pytest.approx(lengths[0] / 2, abs=1)
    assert lengths[2] == pytest.approx(lengths[0] / 4, abs=1)
    assert (np.diff((expanded > 0).astype(int)) == 1).sum() == 1  # none for a share of 0


def test_a_truncated_file_is_an_image_error_with_its_name() -> None:
    content = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(content, "JPEG")
    half = io.BytesIO(content.getvalue()[: len(content.getvalue()) // 2])
    refused(ImageError, "i42", read_picture, lambda: Image.open(half), "i42")


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 100), st.booleans())
def test_fit_keeps_proportions_within_the_square(width: int, height: int, side: int, enlarge: bool) -> None:
    fitted = fit(Image.new("RGB", (width, height)), side, enlarge=enlarge)
    scale = side / max(width, height) if enlarge or max(width, height) > side else 1
    assert max(fitted.size) == round(scale * max(width, height))
    assert abs(fitted.width - width * scale) <= 1
    assert abs(fitted.height - height * scale) <= 1


def test_thumbnails_are_bounded_and_unreadable_ones_counted() -> None:
    thumbnail = Thumbnail.of(Image.effect_noise((1200, 1200), 200).convert("RGB"), 1200)
    encoded = base64.b64decode(thumbnail.split(",")[1])
    assert len(encoded) <= MAX_THUMBNAIL_BYTES
    with Image.open(io.BytesIO(encoded)) as shown:
        assert shown.size == (thumbnail.width, thumbnail.height)
    thumbnails = Thumbnails()
    assert thumbnails.make(picture, "good", 64) is not None
    assert thumbnails.note() == ""
    for name in "aba":
        assert thumbnails.make(broken, name, 64) is None
    assert thumbnails.note() == "2 images could not be read; a labelled placeholder stands in: a, b."
    for name in "cdefg":
        thumbnails.make(broken, name, 64)
    assert thumbnails.note().endswith(": a, b, c, d, e and 2 more.")


@given(st.text(st.characters(exclude_categories=[])))
def test_clean_text_is_one_printable_line_of_utf8(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode() == cleaned
    assert len(cleaned.splitlines()) <= 1
    assert clean(cleaned) == cleaned


@given(st.text("ab \n", max_size=80), st.integers(1, 12), st.integers(1, 6))
def test_wrapped_lines_fit_and_lose_nothing_unless_cut(text: str, width: int, max_lines: int) -> None:
    lines = wrap(text, width, len, max_lines)
    assert len(lines) <= max_lines
    assert all(len(line) <= max(width, 2) for line in lines)
    together, whole = "".join(lines).replace(" ", ""), clean(text).replace(" ", "")
    if lines and lines[-1].endswith("…"):
        assert whole.startswith(together[:-1])
        assert len(whole) > len(together) - 1 or width < 2
    else:
        assert together == whole
