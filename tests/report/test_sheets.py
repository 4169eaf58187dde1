"""Contact sheets, sheets of shortcuts and of terms, and the pictures and words on them."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from diptych.core.errors import DataError, ImageError, NumericalError, StorageError, UsageError
from diptych.report.content import Retrieved
from diptych.report.page import LIGHT, clean, wrap
from diptych.report.pictures import MAX_THUMBNAIL_BYTES, Thumbnail, Thumbnails, fit, read_picture
from diptych.report.sheets import (
    CELL,
    FRAME,
    GAP,
    MARGIN,
    Example,
    draw_contact_sheet,
    draw_shortcut_sheet,
    write_contact_sheet,
    write_shortcut_sheet,
)
from diptych.report.terms import (
    Match,
    MatchTerm,
    TermCard,
    WeightedTerm,
    draw_match_sheet,
    draw_terms_sheet,
    write_match_sheet,
    write_terms_sheet,
)


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def column(sheet: Image.Image, x: int) -> set[tuple[int, ...]]:
    return {sheet.getpixel((x, y)) for y in range(sheet.height)}


GREEN, RED, GREY = rgb(LIGHT["right"]), rgb(LIGHT["wrong"]), rgb(LIGHT["unknown"])


def test_frames_say_right_wrong_unknown(picture):
    items = [Retrieved(f"i{n}", 0.5, state, picture=picture()) for n, state in enumerate([True, False, None])]
    sheet, unreadable = draw_contact_sheet("a blue picture", items)
    assert unreadable == ()
    for place, colour in enumerate([GREEN, RED, GREY]):
        left = MARGIN + place * (CELL + GAP)
        middle = left + CELL // 2
        rows = [y for y in range(sheet.height) if sheet.getpixel((middle, y)) == colour]
        height = round((CELL - 2 * FRAME) * 30 / 40) + 2 * FRAME
        assert rows[:FRAME] == list(range(rows[0], rows[0] + FRAME))
        bottom = rows[0] + height - 1
        assert [sheet.getpixel((middle, y)) for y in (bottom - FRAME + 1, bottom)] == [colour, colour]
        # the frame is closed on both sides and the picture is inside it
        for x in (left, left + FRAME - 1, left + CELL - FRAME, left + CELL - 1):
            assert sheet.getpixel((x, rows[0] + height // 2)) == colour
        assert sheet.getpixel((left + CELL // 2, rows[0] + height // 2)) == rgb("#336699")
        assert column(sheet, left).isdisjoint({GREEN, RED, GREY} - {colour})


def test_unreadable_picture_is_a_placeholder_and_named(picture, broken):
    items = [Retrieved("good", 0.5, True, picture=picture()), Retrieved("bad", 0.4, False, picture=broken)]
    sheet, unreadable = draw_contact_sheet("q", items)
    assert unreadable == ("bad",)
    left = MARGIN + CELL + GAP
    cell = sheet.crop((left, 0, left + CELL, sheet.height))
    colours = {colour for _, colour in cell.getcolors(100_000)}
    assert {RED, rgb(LIGHT["soft"]), rgb(LIGHT["muted"])} <= colours


@pytest.mark.parametrize(
    ("name", "kind"), [("sheet.png", "PNG"), ("sheet.JPG", "JPEG"), ("sheet.jpeg", "JPEG")]
)
def test_written_by_the_ending(tmp_path, picture, name, kind):
    items = [Retrieved("i", 0.5, True, picture=picture())]
    assert write_contact_sheet(tmp_path / "new" / name, "q", items) == ()
    with Image.open(tmp_path / "new" / name) as written:
        assert written.format == kind
        assert written.size == draw_contact_sheet("q", items)[0].size
    assert [file.name for file in (tmp_path / "new").iterdir()] == [name]


def test_other_endings_are_refused_before_drawing(tmp_path, broken):
    with pytest.raises(UsageError, match=r"'\.gif'.*\.png"):
        write_contact_sheet(tmp_path / "sheet.gif", broken, [])


def test_too_tall_for_jpeg_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("diptych.report.sheets._JPEG_SIDE", 655)  # of 65,500, which take long to draw
    items = [Retrieved(str(n), 0.5, None, caption="c") for n in range(13)]
    with pytest.raises(UsageError, match=r"too large for JPEG.*\.png"):
        write_contact_sheet(tmp_path / "sheet.jpg", "q", items)
    assert list(tmp_path.iterdir()) == []


def test_failed_write_leaves_the_old_sheet(tmp_path, picture, monkeypatch):
    path = tmp_path / "sheet.png"
    path.write_bytes(b"old")

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("PIL.Image.Image.save", full_disk)
    with pytest.raises(StorageError, match="No space left"):
        write_contact_sheet(path, "q", [Retrieved("i", 0.5, picture=picture())])
    assert path.read_bytes() == b"old"


def test_font_that_is_not_one(tmp_path):
    with pytest.raises(StorageError, match="font"):
        draw_contact_sheet("q", [], font=tmp_path / "none.ttf")


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


def test_only_png_keeps_every_pixel(tmp_path: Path) -> None:
    example = Example("one", pixels(224), ["caption"])
    path = write_shortcut_sheet(tmp_path / "sheet.png", "title", [example])
    with Image.open(path) as written:
        assert len(holds(written.convert("RGB"), example.pixels)) == 1
    with pytest.raises(UsageError, match=r"'sheet\.jpg' ends in '\.jpg'"):
        write_shortcut_sheet(tmp_path / "sheet.jpg", "title", [example])
    with pytest.raises(UsageError, match="a sheet of no pictures"):
        draw_shortcut_sheet("title", [])


TERMS = [WeightedTerm("dog", 2.0), WeightedTerm("grass", 1.0), WeightedTerm("-ped", 0.5)]


def terms_sheet_rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def runs(sheet: Image.Image, colour: str) -> list[int]:
    """Lengths of horizontal runs of one colour, from top to bottom, one per bar."""
    mask = np.all(np.asarray(sheet) == terms_sheet_rgb(colour), axis=2)
    found, before = [], 0
    for row in mask:
        length = int(row.sum())
        if length and not before:
            found.append(length)
        before = length
    return found


def match(score: float = 3.5) -> Match:
    query = TermCard("c1", TERMS, "a dog on the grass")
    item = TermCard("i1", [], "a dog", Image.new("RGB", (40, 30), "#336699"))
    terms = [MatchTerm("dog", 2, 1, 2.0), MatchTerm("grass", 1, 1, 1.0), MatchTerm("the", 0.5, 1, 0.5)]
    return Match(query, item, terms, score)


def test_bars_are_as_long_as_weights() -> None:
    sheet, unreadable = draw_terms_sheet("title", [TermCard("i1", TERMS, picture=Image.new("RGB", (40, 30)))])
    long, middle, short = runs(sheet, LIGHT["blue"])
    assert middle == pytest.approx(long / 2, abs=1)
    assert short == pytest.approx(long / 4, abs=1)
    assert unreadable == ()


def test_own_terms_and_expansion_have_two_colours_and_a_legend() -> None:
    marked = [WeightedTerm("dog", 2.0, True), WeightedTerm("puppy", 1.0, False)]
    sheet, _ = draw_terms_sheet("title", [TermCard("c1", marked, "a dog")])
    own, expanded = runs(sheet, LIGHT["blue"]), runs(sheet, LIGHT["orange"])
    assert len(own) == len(expanded) == 2  # a bar, and its colour in the legend
    assert expanded[0] == pytest.approx(own[0] / 2, abs=1)
    plain, _ = draw_terms_sheet("title", [TermCard("c1", TERMS, "a dog")])
    assert len(runs(plain, LIGHT["blue"])) == 3
    assert runs(plain, LIGHT["orange"]) == []


def test_what_a_sheet_refuses(tmp_path: Path) -> None:
    card = TermCard("c", TERMS, "a dog")
    with pytest.raises(UsageError, match="0 cards in 2 columns"):
        draw_terms_sheet("title", [])
    with pytest.raises(UsageError, match="1 cards in 0 columns"):
        draw_terms_sheet("title", [card], columns=0)
    with pytest.raises(UsageError, match=r"'sheet\.jpg' ends in '\.jpg'"):
        write_terms_sheet(tmp_path / "sheet.jpg", "title", [card])
    with pytest.raises(StorageError, match="cannot be read"):
        draw_terms_sheet("title", [card], font=tmp_path / "none.ttf")
    with pytest.raises(NumericalError, match="the weight of 'dog' is nan"):
        WeightedTerm("dog", float("nan"))
    with pytest.raises(NumericalError, match="the weight of 'dog' is -1"):
        MatchTerm("dog", 1, -1, -1)


def test_sheets_are_written(tmp_path: Path) -> None:
    write_terms_sheet(tmp_path / "terms.png", "title", [TermCard("c", TERMS, "a dog")])
    write_match_sheet(tmp_path / "match.png", match())
    for name in ("terms.png", "match.png"):
        with Image.open(tmp_path / name) as written:
            assert written.format == "PNG"
            assert runs(written.convert("RGB"), LIGHT["blue"])
    with pytest.raises(UsageError, match=r"explanation 'match' ends in 'nothing'"):
        write_match_sheet(tmp_path / "match", match())


def test_a_match_has_a_bar_per_term_and_none_for_the_rest() -> None:
    whole, _ = draw_match_sheet(match())
    first, second, third = runs(whole, LIGHT["blue"])
    assert second == pytest.approx(first / 2, abs=1)
    assert third == pytest.approx(first / 4, abs=1)
    cut, _ = draw_match_sheet(match(), shown=1, title="Why?")
    assert len(runs(cut, LIGHT["blue"])) == 1
    with pytest.raises(UsageError, match="shows 0 terms"):
        draw_match_sheet(match(), shown=0)


def test_contributions_must_add_up() -> None:
    with pytest.raises(DataError, match=r"'c1' and 'i1': contributions add up to 3\.5, the score is 3"):
        match(3.0)


def encoded(thumbnail: Thumbnail) -> bytes:
    return base64.b64decode(thumbnail.split(",")[1])


def test_truncated_file_is_an_image_error_with_its_name():
    content = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(content, "JPEG")
    half = io.BytesIO(content.getvalue()[: len(content.getvalue()) // 2])
    with pytest.raises(ImageError, match="i42"):
        read_picture(lambda: Image.open(half), "i42")


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 100), st.booleans())
def test_fit_keeps_proportions_within_the_square(width, height, side, enlarge):
    fitted = fit(Image.new("RGB", (width, height)), side, enlarge=enlarge)
    assert max(fitted.size) <= side
    if max(width, height) <= side and not enlarge:
        assert fitted.size == (width, height)
    else:
        assert max(fitted.size) == side
        scale = side / max(width, height)
        assert abs(fitted.width - width * scale) <= 1
        assert abs(fitted.height - height * scale) <= 1


def test_thumbnail_is_bounded_in_bytes_even_for_noise():
    thumbnail = Thumbnail.of(Image.effect_noise((1200, 1200), 200).convert("RGB"), 1200)
    assert len(encoded(thumbnail)) <= MAX_THUMBNAIL_BYTES
    with Image.open(io.BytesIO(encoded(thumbnail))) as picture:
        assert picture.size == (thumbnail.width, thumbnail.height)


def test_unreadable_pictures_are_counted_once_each(picture, broken):
    thumbnails = Thumbnails(64)
    assert thumbnails.make(picture, "good") is not None
    assert thumbnails.note() == ""
    for name in ("a", "b", "a"):
        assert thumbnails.make(broken, name) is None
    assert thumbnails.note() == "2 pictures could not be read; a labelled placeholder stands in: a, b."
    for name in "cdefg":
        thumbnails.make(broken, name)
    assert thumbnails.note().endswith(": a, b, c, d, e and 2 more.")


@given(st.text(st.characters(exclude_categories=[])))
def test_clean_text_is_one_printable_line_of_utf8(text):
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode() == cleaned
    assert len(cleaned.splitlines()) <= 1
    assert clean(cleaned) == cleaned


@given(st.text("ab \n", max_size=80), st.integers(1, 12), st.integers(1, 6))
def test_wrapped_lines_fit_and_lose_nothing_unless_cut(text, width, max_lines):
    lines = wrap(text, width, len, max_lines)
    assert len(lines) <= max_lines
    assert all(len(line) <= max(width, 2) for line in lines)
    together = "".join(lines).replace(" ", "")
    whole = clean(text).replace(" ", "")
    if lines and lines[-1].endswith("…"):
        assert whole.startswith(together[:-1])
        assert len(whole) > len(together) - 1 or width < 2
    else:
        assert together == whole
