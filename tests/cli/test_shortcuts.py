"""``diptych shortcuts``: the sheet, what is said, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Command
from PIL import Image

from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts
from diptych.data.batches import Batch
from diptych.data.overlay import OverlaidPicture, pasted
from diptych.data.readers import read_collection
from diptych.encoders.preprocessing import Preprocessing


def test_unique_codes_of_a_dataset(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "mnist.npz",
        x_train=np.arange(20, dtype=np.uint8)[:, None, None].repeat(28, 1).repeat(28, 2),
        y_train=np.arange(20) % 10,
    )
    sheet = tmp_path / "sheet.png"
    done = diptych(
        "shortcuts", scenes_folder, "--setup", "unique", "--digits", tmp_path / "mnist.npz", "--split", "test",
        "-n", 2, "--out", sheet,
    )  # fmt: skip
    assert done.code == 0, done.err
    whole = read_collection(scenes_folder)
    test = whole.split("test")
    for row, code in ((0, "0 0 0 0 6 4"), (15, "0 0 0 0 7 9")):  # rows 64 and 79 of all 80
        assert f"{test.image_ids[row]}: {test.captions_of(row)[0]} {code}" in done.out
    assert "a unique number on every image and its captions, mnist.npz" in done.out
    assert f"drawn in {sheet}" in done.out
    assert (
        f"next: diptych train RECIPE --data {scenes_folder} --set shortcuts.setup=unique "
        f"--set shortcuts.digits={tmp_path / 'mnist.npz'}" in done.out
    )
    options = ShortcutOptions(digits=str(tmp_path / "mnist.npz"))
    item = Shortcuts.of(options, whole, "train", 0).injected(test).item(0)
    assert isinstance(item, OverlaidPicture)
    pixels = pasted(Preprocessing().central(item.picture), item.overlay)
    with Image.open(sheet) as written:
        shown = np.asarray(written.convert("RGB"))
    tops, lefts = np.nonzero((shown == pixels[0, 0]).all(axis=2))
    assert any(
        np.array_equal(shown[top : top + 224, left : left + 224], pixels)
        for top, left in zip(tops.tolist(), lefts.tolist(), strict=True)
    )


def test_an_epoch_shows_what_training_has(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    arguments = ("shortcuts", scenes_folder, "--setup", "bits", "--bits", 10, "--digits", "drawn")
    out = ("--out", tmp_path / "s.png")
    first, again, second, evaluation = (
        diptych(*arguments, *epoch, *out) for epoch in (("--epoch", 1), ("--epoch", 1), ("--epoch", 2), ())
    )
    assert first.code == 0, first.err
    assert first.out == again.out
    assert len({first.out, second.out, evaluation.out}) == 3
    assert "0 0 0 0 4 7" in evaluation.out  # the last of 48 training pictures
    train = read_collection(scenes_folder).split("train")
    part = train.subset([0, 15, 31, 47])
    batch = Batch(np.arange(4), np.arange(part.n_captions), part.caption_image)
    options = ShortcutOptions(setup="bits", bits=10, digits="drawn")
    made = Shortcuts.of(options, read_collection(scenes_folder), "train", 0)
    assert made.training(part, batch, 0).endings[0] in first.out  # epochs are counted from 0 there
    assert "--set shortcuts.setup=bits --set shortcuts.bits=10 --set shortcuts.digits=drawn" in first.out


def test_every_caption_is_shown_where_each_has_a_code(
    diptych: Command, scenes_folder: Path, tmp_path: Path
) -> None:
    arguments = ("shortcuts", scenes_folder, "--digits", "drawn", "-n", 1, "--out", tmp_path / "s.png")
    assert diptych(*arguments).code == 0
    with Image.open(tmp_path / "s.png") as one:
        height = one.size[1]
    assert diptych(*arguments, "--setup", "per-caption").code == 0
    with Image.open(tmp_path / "s.png") as five:
        assert five.size[1] > height


@pytest.mark.parametrize(
    ("arguments", "message", "fix"),
    [
        (("--setup", "bits"), "setup 'bits' needs bits, 0 to 13", "--help"),
        (("--setup", "bits", "--bits", "14"), "bits: Input should be less than or equal to 13", "--help"),
        (("--setup", "twice"), "setup: Input should be 'none', 'unique'", "--help"),
        (("--digits", "nothing.npz"), "'nothing.npz': there is no such file", "MNIST"),
        (("--size", "100"), "take 168 × 28 pixels, the picture has 100 × 100", "digit_size to at most 16"),
        (("--split", "trian"), "unknown split of scenes 'trian'", "did you mean 'train'"),
        (("--split", "test", "--shuffled", "--epoch", "1"), "not in split 'train'", "batches of that split"),
        (("--out", "sheet.jpg"), "'sheet.jpg' ends in '.jpg'", ".png"),
        (("--scenes",), "one source of pictures is needed", "--scenes"),
    ],
)
def test_what_cannot_be_shown(
    diptych: Command, scenes_folder: Path, arguments: tuple[str, ...], message: str, fix: str
) -> None:
    done = diptych("shortcuts", scenes_folder, *arguments)
    assert done.code in (1, 2)
    assert message in done.err
    assert fix in done.err.split("fix:")[1]


def test_nothing_to_show(diptych: Command) -> None:
    done = diptych("shortcuts")
    assert done.code == 2
    assert "one source of pictures is needed" in done.err
