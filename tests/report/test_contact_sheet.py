from __future__ import annotations

import pytest
from PIL import Image, ImageChops

from diptych.core.errors import ImageError, StorageError, UsageError
from diptych.report import Retrieved, draw_contact_sheet, write_contact_sheet
from diptych.report.page import LIGHT
from diptych.report.sheets import CELL, FRAME, GAP, MARGIN, Sheet


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


def test_grid_wraps_after_columns_and_last_row_is_not_stretched(picture):
    items = [Retrieved(f"i{n}", 0.5, True, picture=picture(size=(30, 30))) for n in range(4)]
    one_row, _ = draw_contact_sheet("q", items, columns=4)
    two_rows, _ = draw_contact_sheet("q", items, columns=3)
    assert one_row.width == 4 * CELL + 3 * GAP + 2 * MARGIN
    assert two_rows.width == 3 * CELL + 2 * GAP + 2 * MARGIN
    assert two_rows.height > one_row.height + CELL
    bottom = two_rows.crop((0, one_row.height, *two_rows.size))
    assert GREEN in column(bottom, MARGIN)
    assert column(bottom, MARGIN + CELL + GAP) == {rgb(LIGHT["paper"])}


def test_unreadable_picture_is_a_placeholder_and_named(picture, broken):
    items = [Retrieved("good", 0.5, True, picture=picture()), Retrieved("bad", 0.4, False, picture=broken)]
    sheet, unreadable = draw_contact_sheet("q", items)
    assert unreadable == ("bad",)
    left = MARGIN + CELL + GAP
    cell = sheet.crop((left, 0, left + CELL, sheet.height))
    colours = {colour for _, colour in cell.getcolors(100_000)}
    assert {RED, rgb(LIGHT["soft"]), rgb(LIGHT["muted"])} <= colours


def test_file_that_is_missing_is_a_placeholder_too(tmp_path, picture):
    items = [Retrieved("gone", 0.5, True, picture=lambda: Image.open(tmp_path / "gone.png"))]
    assert draw_contact_sheet("q", items)[1] == ("gone",)


def test_query_picture_stands_beside_captions(picture):
    items = [Retrieved("c0", 0.5, True, caption="right"), Retrieved("c1", 0.4, False, caption="wrong")]
    sheet, unreadable = draw_contact_sheet(lambda: picture("#123456", (50, 50)), items)
    assert unreadable == ()
    assert rgb("#123456") in column(sheet, MARGIN + 10)
    assert {GREEN, RED} <= column(sheet, MARGIN + CELL + GAP)
    assert {GREEN, RED}.isdisjoint(column(sheet, MARGIN + 10))


def test_query_that_cannot_be_read_is_an_error(broken):
    with pytest.raises(ImageError, match="0 bytes"):
        draw_contact_sheet(broken, [])


@pytest.mark.parametrize("pictures", [True, False])
def test_long_caption_takes_at_most_three_lines(picture, pictures):
    def height(caption: str) -> int:
        shown = picture() if pictures else None
        return draw_contact_sheet("q", [Retrieved("i", 0.5, True, caption, shown)])[0].height

    three_lines = height("word " * 60)
    assert height("word") < three_lines
    assert height("word " * 20_000) == three_lines
    assert height("x" * 100_000) == three_lines
    assert height("犬が走る🐕 " * 1000) == three_lines


def test_long_query_takes_at_most_four_lines(picture):
    items = [Retrieved("i", 0.5, True, picture=picture())]
    assert draw_contact_sheet("w " * 50_000, items)[0].size == draw_contact_sheet("w " * 5_000, items)[0].size


@pytest.mark.parametrize(
    "caption", ["", "\x00\x1b[31m", "a\ud83db", "\u202eabc", "e\u0301" * 50, "Ελληνικά عربي"]
)
def test_any_unicode_can_be_drawn(caption, picture):
    sheet, _ = draw_contact_sheet(caption, [Retrieved(caption, 0.5, None, caption, picture())])
    listed, _ = draw_contact_sheet(caption, [Retrieved(caption, 0.5, None, caption)])
    assert GREY in column(sheet, MARGIN)
    assert GREY in column(listed, MARGIN)


def test_letters_beyond_latin_have_glyphs():
    font = Sheet(100, None).letters(20)
    missing = font.getmask("\U0010fffd").getbbox(), bytes(font.getmask("\U0010fffd"))
    for letter in "ÄΩжעع→✓✗":
        assert (font.getmask(letter).getbbox(), bytes(font.getmask(letter))) != missing, letter


def test_nothing_retrieved_is_still_a_sheet():
    sheet, unreadable = draw_contact_sheet("a query", [])
    assert unreadable == ()
    assert ImageChops.invert(sheet).getbbox() is not None


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


def test_too_tall_for_jpeg_is_refused(tmp_path):
    items = [Retrieved(str(n), 0.5, None, caption="c") for n in range(1300)]
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


def test_columns_below_one_are_refused():
    with pytest.raises(UsageError, match="0 columns"):
        draw_contact_sheet("q", [], columns=0)


def test_font_that_is_not_one(tmp_path):
    with pytest.raises(StorageError, match="font"):
        draw_contact_sheet("q", [], font=tmp_path / "none.ttf")
