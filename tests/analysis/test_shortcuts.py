"""Images of digits: drawn, bundled and from files, over images, and codes written as digits."""

from __future__ import annotations

import gzip
import struct
import sys
from dataclasses import replace

import numpy as np
from drawn_digits import drawn_anew
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError
from refusals import refused

from diptych.analysis.shortcuts.codes import (
    DIGIT_WORDS,
    N_CODES,
    DigitOverlay,
    ShortcutOptions,
    check_fit,
    code_text,
    digits_of,
    ending_of,
    with_ending,
)
from diptych.analysis.shortcuts.digits import DRAWN_OF_EACH, DigitImages, load_digits, read_digit_file
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.errors import (
    DataError,
    ImageError,
    MismatchError,
    MissingExtraError,
    UnknownNameError,
    UsageError,
)
from diptych.data.batches import Batch
from diptych.data.collection import Collection
from diptych.data.images import OverlaidPicture, pasted
from diptych.data.regions import RegionSource
from diptych.data.vocabulary import words

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (23, 28, 28)).astype(np.uint8)
LABELS = (np.arange(23) % 10).astype(np.uint8)
DRAWN = load_digits("drawn")


def test_what_is_no_set_of_digits():
    flat, range_10 = np.zeros((10, 2, 2), np.uint8), np.arange(10)
    for pictures, labels, message in (
        (flat, range_10 % 9, "a file holds no image of the digit 9"),
        (flat.astype(np.float32), range_10, r"as float32 of shape \(10, 2, 2\)"),
        (np.zeros((10, 4), np.uint8), range_10, r"as uint8 of shape \(10, 4\)"),
        (np.zeros((10, 2, 3), np.uint8), range_10, r"as uint8 of shape \(10, 2, 3\)"),
        (np.zeros((11, 2, 2), np.uint8), range_10, r"11 images and labels as int64 of shape \(10,\)"),
        (flat, np.arange(10.0), "labels as float64"),
        (flat, np.arange(1, 11), "image 9 has the label 10"),
        (flat, np.arange(-1, 9), "image 0 has the label -1"),
    ):
        refused(DataError, message, DigitImages.of_labelled, "a file", pictures, labels)
    refused(UsageError, "digits 'mnist': there is no such file", load_digits, "mnist")


def test_scikit_learns_digits(monkeypatch):
    from sklearn.datasets import load_digits as bundled

    found, given = load_digits("sklearn"), bundled()
    assert found.counts.sum() == 1797
    first_eight = given.images[given.target == 8][0]
    np.testing.assert_array_equal(found.classes[8][0], np.rint(first_eight * 255 / 16).astype(np.uint8))
    assert {pictures.max() for pictures in found.classes} == {255}
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    refused(MissingExtraError, r"needs sklearn.*pip install 'diptych\[targets\]'", load_digits, "sklearn")


def test_drawn_digits_are_the_same_every_time_and_tell_each_other_apart():
    first = load_digits("drawn")
    # another Pillow may round a pixel otherwise
    apart = np.subtract(np.stack(first.classes), np.stack(drawn_anew()), dtype=np.int16)
    assert np.abs(apart).max() <= 8
    assert first.counts.tolist() == [DRAWN_OF_EACH] * 10
    pictures = np.concatenate(first.classes).astype(np.float64).reshape(10, DRAWN_OF_EACH, -1)
    assert len(np.unique(pictures.reshape(10 * DRAWN_OF_EACH, -1), axis=0)) == 10 * DRAWN_OF_EACH
    # Half of each class teaches a nearest mean to read the other half.
    means = pictures[:, ::2].mean(axis=1)
    rest = pictures[:, 1::2].reshape(-1, 784)
    nearest = ((rest[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == np.repeat(np.arange(10), DRAWN_OF_EACH // 2)).mean() > 0.8


def write_idx(folder, zipped=False, dots=False, change=lambda content: content):
    """MNIST's two training files; gives that of the images, whose bytes may be changed."""
    mark = "." if dots else "-"
    ending, pack = (".gz", gzip.compress) if zipped else ("", bytes)
    images = folder / f"train-images{mark}idx3-ubyte{ending}"
    images.write_bytes(change(pack(struct.pack(">IIII", 0x803, *PICTURES.shape) + PICTURES.tobytes())))
    labels = pack(struct.pack(">II", 0x801, len(LABELS)) + LABELS.tobytes())
    (folder / f"train-labels{mark}idx1-ubyte{ending}").write_bytes(labels)
    return images


def test_files_of_digits(tmp_path):
    """IDX files, archives with the array names in use, and what is neither or corrupt."""
    files, more = [], {"x_test": PICTURES[:3], "y_test": LABELS[:3]}
    for x, y in (("x_train", "y_train"), ("images", "labels"), ("train_images", "train_labels")):
        files += [tmp_path / f"{x}.npz", tmp_path / f"{x}-packed.npz"]
        np.savez(files[-2], **{x: PICTURES, y: LABELS.astype(np.int64)}, **more)
        np.savez_compressed(files[-1], **{x: PICTURES, y: LABELS})
    for zipped, dots in ((False, False), (True, False), (False, True), (True, True)):
        files.append(write_idx(tmp_path, zipped, dots))
    for path in files:
        found = load_digits(str(path))
        assert found.counts.tolist() == [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]
        for digit in range(10):
            np.testing.assert_array_equal(found.classes[digit], PICTURES[digit == LABELS])
    bomb = gzip.compress(struct.pack(">IIII", 0x803, 10**6, 28, 28) + bytes(10**6))
    for change, message in (
        (lambda content: content[:-5], "holds 18,027 bytes, its header says 18,032"),
        (lambda content: content + b"0", "holds more than 18,032 bytes"),
        (lambda content: b"\0\0\x0d\3" + content[4:], "it begins with 00 00 0d 03"),
        (lambda content: b"", "it begins with nothing"),
        (lambda content: bomb, "has 784,000,000 bytes, more than the 500,000,000"),
        (lambda content: gzip.compress(content)[:-40], "is corrupt"),
    ):
        path = write_idx(tmp_path, change=change)
        assert str(path) in str(refused(DataError, message, read_digit_file, path))
    path = write_idx(tmp_path)
    for file in tmp_path.glob("train-labels*"):
        file.unlink()
    refused(DataError, r"the labels of .* are missing: train-labels-idx1-ubyte or", read_digit_file, path)
    objects = np.array([None, {}], dtype=object)
    for arrays, message in (
        ({"a": PICTURES, "b": LABELS}, "holds the arrays a, b .*x_train or images"),
        ({"x_train": objects, "y_train": LABELS}, "holds Python objects, not numbers"),
    ):
        np.savez(tmp_path / "d.npz", **arrays)
        refused(DataError, message, read_digit_file, tmp_path / "d.npz")
    (tmp_path / "d.npz").write_bytes(b"PK is how it begins")
    refused(DataError, "is corrupt", read_digit_file, tmp_path / "d.npz")
    (tmp_path / "d.bin").write_bytes(struct.pack(">IIII", 0x803, 1, 1, 4) + b"1234")
    refused(DataError, "neither an .npz archive nor", read_digit_file, tmp_path / "d.bin")


@given(st.integers(0, N_CODES - 1))
def test_a_code_is_six_digits_wherever_it_is_written(code):
    text = code_text(code)
    assert len(text) == 6
    assert int(text) == code
    assert digits_of(code).tolist() == [int(letter) for letter in text]
    assert ending_of(code).split(" ") == list(text)
    assert set(text) <= set(DIGIT_WORDS)
    assert words(with_ending("A man's hat.", ending_of(code))) == ["a", "man's", "hat", ".", *text]


def overlay(*codes, size=28):
    digits = digits_of(np.array(codes))
    pictures = (np.arange(digits.size).reshape(digits.shape) * 7) % 40
    return DigitOverlay(digits, pictures, DRAWN.at_size(size))


def test_pixel_for_pixel_as_pillow_pastes():
    """Pillow's own paste of greys into RGB, side by side, the code's digits evenly spaced."""
    made = overlay(39_965)
    pictures = [DRAWN.classes[int(d)][n] for d, n in zip("039965", made.pictures[0], strict=True)]
    for width in (168, 200, 224, 299):
        pixels = np.random.default_rng(0).integers(0, 256, (180, width, 3)).astype(np.uint8)
        image = Image.fromarray(pixels.copy())
        for place, picture in enumerate(pictures):
            image.paste(Image.fromarray(picture), (place * (width // 6), 0))
        np.testing.assert_array_equal(pasted(pixels, made), np.asarray(image))
    assert made.key == overlay(39_965).key  # the key is what is shown
    other = DigitOverlay(made.digits, made.pictures[:, ::-1], made.drawn)
    keys = {made.key, other.key, overlay(1235).key, overlay(39_965, size=20).key, overlay(39_965, 39_965).key}
    assert len(keys) == 5


def test_a_picture_smaller_than_its_digits():
    for width, height, rows, size, message in (
        (167, 224, 1, 28, "1 row of 6 digits of 28 pixels take 168 × 28 pixels, the image has 167 × 224"),
        (224, 27, 1, 28, r"the image has 224 × 27 \(set shortcuts.digit_size to at most 27"),
        (224, 224, 9, 28, "9 rows of 6 digits of 28 pixels take 168 × 252 .* at most 24, or prepare larger"),
        (20, 20, 1, 5, r"the image has 20 × 20 \(prepare larger images"),
    ):
        refused(ImageError, message, check_fit, width, height, rows, size)
        refused(ImageError, message, overlay(*range(rows), size=size).patches, width, height)
    shortcuts().check_fit(60, 10)
    refused(ImageError, "the image has 59 × 60", shortcuts().check_fit, 59, 60)
    rows = "3 rows of 6 digits of 10 pixels take 60 × 30"
    refused(ImageError, rows, shortcuts(setup="per-caption").check_fit, 60, 29)
    shortcuts(setup="per-caption", carries="one").check_fit(60, 10)
    shortcuts(setup="captions").check_fit(1, 1)


def test_impossible_options():
    for values, message in (
        ({"setup": "bits"}, "setup 'bits' needs bits, 0 to 13"),
        ({"bits": 8}, "setup 'unique' needs no bits"),
        ({"setup": "bits", "bits": 14}, "less than or equal to 13"),
        ({"carries": "one"}, "carries = 'one' belongs to 'per-caption'"),
        ({"setup": "none", "shuffled": True}, "no unique numbers that could be shuffled"),
        ({"setup": "per-caption", "compat": "published"}, "never published"),
        ({"digit_size": 4}, "greater than or equal to 5"),
    ):
        refused(ValidationError, message, ShortcutOptions.model_validate, values)


class Greys:
    """Pictures of one grey: their source row."""

    def read(self, row):
        return Image.new("RGB", (60, 60), (row, row, row))

    def content(self, row):
        return f"{row:016x}"


def collection(n=12, k=3, source=None):
    """Every third image tests, the others train; pictures are stored in the opposite order."""
    return Collection(
        "greys",
        [f"i{row}" for row in range(n)],
        [f"Caption {row}." for row in range(n * k)],
        [f"c{row}" for row in range(n * k)],
        np.repeat(np.arange(n), k),
        ["test" if row % 3 == 2 else "train" for row in range(n)],
        source or Greys(),
        np.arange(n)[::-1].copy(),
    )


def shortcuts(whole=None, seed=0, **options):
    chosen = ShortcutOptions.model_validate({"digits": "drawn", "digit_size": 10, **options})
    return Shortcuts.of(chosen, whole or collection(), "train", seed)


def shown(overlay):
    """The codes that an overlay shows."""
    return [] if overlay is None else [int("".join(map(str, row))) for row in overlay.digits.tolist()]


def code(ending):
    assert len(ending) == 11
    return int(ending.replace(" ", ""))


def in_training(made, epoch=1):
    """Codes of picture and caption, access by access: every caption with its image alone."""
    split = made._whole.split("train")
    found = []
    for caption, image in enumerate(split.caption_image.tolist()):
        batch = Batch(np.array([image]), np.array([caption]), np.array([0]))
        carried = made.training(split, batch, epoch)
        found.append((shown(carried.overlays[0]), code(carried.endings[0])))
    return found


def test_unique_and_shuffled_codes_are_the_training_images_own():
    # Training images are 0, 1, 3, 4, 6, 7, 9, 10; three captions each.
    expected = [([image], image) for image in (0, 1, 3, 4, 6, 7, 9, 10) for _ in range(3)]
    assert in_training(shortcuts()) == in_training(shortcuts(), epoch=5) == expected
    made = shortcuts(shuffled=True)
    epochs = []
    for epoch in (1, 2, 3):
        found = in_training(made, epoch)
        assert all(carried == [end] for carried, end in found)
        codes = [end for _, end in found[::3]]
        assert [end for _, end in found] == np.repeat(codes, 3).tolist()
        assert sorted(codes) == [0, 1, 3, 4, 6, 7, 9, 10]
        epochs.append(tuple(codes))
    assert len(set(epochs)) == 3
    # Nothing that is tested has a code that was trained on.
    assert [carried for (carried,), _ in evaluated(made)] == ["000002", "000005", "000008", "000011"]


def test_bits_change_with_every_access_and_are_shared_by_picture_and_caption():
    made = shortcuts(setup="bits", bits=13)
    found = in_training(made)
    assert all(carried == [end] and 0 <= end < 8192 for carried, end in found)
    assert len({end for _, end in found}) > 20  # 24 accesses
    assert found == in_training(made)
    assert found != in_training(made, epoch=2)
    assert all(end == 0 for _, end in in_training(shortcuts(setup="bits", bits=0)))
    assert {end for _, end in in_training(shortcuts(setup="bits", bits=1))} == {0, 1}
    with_published = in_training(shortcuts(setup="bits", bits=13, compat="published"))
    assert with_published == found


def evaluated(made, split="test"):
    """Codes of each picture and of its captions, from the records and from what is shown."""
    original = made._whole.split(split)
    found = made.injected(original)
    assert (found.image_ids, found.caption_ids) == (original.image_ids, original.caption_ids)
    pairs = []
    for row in range(found.n_images):
        item = found.item(row)
        carried = shown(item.overlay) if isinstance(item, OverlaidPicture) else []
        picture = item.picture if isinstance(item, OverlaidPicture) else item
        assert np.array_equal(np.asarray(picture), np.asarray(original.item(row)))
        assert [f"{number:06d}" for number in carried] == list(found.records[row]["shortcuts"])
        ends = []
        for caption in range(*found.caption_start[row : row + 2]):
            end = found.caption_records[caption]["shortcut"]
            text = original.captions[caption]
            assert found.captions[caption] == (f"{text} {' '.join(end)}" if end else text)
            ends.append(end)
        pairs.append((list(found.records[row]["shortcuts"]), ends))
    return pairs


def test_evaluation_of_the_image_of_number_5():
    for options, expected in [
        ({"setup": "unique"}, (["000005"], ["000005"] * 3)),
        ({"setup": "unique", "shuffled": True}, (["000005"], ["000005"] * 3)),
        ({"setup": "unique", "compat": "published", "shuffled": True}, (["000005"], ["000005"] * 3)),
        ({"setup": "captions"}, ([], ["000005"] * 3)),
        ({"setup": "images"}, (["000005"], [""] * 3)),
        ({"setup": "bits", "bits": 2}, (["000001"], ["000001"] * 3)),
        ({"setup": "bits", "bits": 0}, (["000000"], ["000000"] * 3)),
        ({"setup": "per-caption"}, (["000015", "000016", "000017"], ["000015", "000016", "000017"])),
        ({"setup": "none"}, ([], [""] * 3)),
    ]:
        assert evaluated(shortcuts(**options))[1] == expected


def test_per_caption_codes_of_all_captions():
    found = in_training(shortcuts(setup="per-caption"))
    rows = [row for row in range(36) if row // 3 % 3 != 2]
    assert [end for _, end in found] == rows
    assert [carried for carried, _ in found] == [[3 * (row // 3) + i for i in range(3)] for row in rows]
    dealt = in_training(shortcuts(setup="per-caption", shuffled=True))
    assert sorted(end for _, end in dealt) == rows != [end for _, end in dealt]
    for image in (dealt[first : first + 3] for first in range(0, 24, 3)):
        assert all(carried == [end for _, end in image] for carried, _ in image)


def test_per_caption_codes_of_one_caption():
    positions = set()
    for seed in range(4):
        made = shortcuts(setup="per-caption", carries="one", seed=seed)
        found = in_training(made)
        assert found == in_training(made, epoch=9)
        for image in range(8):
            (carried,), (second,), (third,) = (found[3 * image + place][0] for place in range(3))
            own = [end for _, end in found[3 * image : 3 * image + 3]]
            assert carried == second == third
            positions.add(own.index(carried))
    assert positions == {0, 1, 2}
    for carried, ends in evaluated(made):
        assert len(carried) == 1
        assert carried[0] in ends
    assert evaluated(shortcuts(setup="per-caption", carries="one")) != evaluated(made)


def test_published_codes_collide_and_number_0_is_taken_for_none():
    made = shortcuts(compat="published", shuffled=True)
    found = in_training(made)
    assert all(carried == [end] for carried, end in found)
    codes = [end for _, end in found[3::3]]  # without image 0
    offset = codes[0] - 1
    assert codes == [(number + offset) % 8 for number in (1, 3, 4, 6, 7, 9, 10)]
    assert len(set(codes)) < len(codes)
    assert len({in_training(made, epoch)[3][1] for epoch in range(1, 12)}) > 3  # another shift in each epoch
    firsts = {end for epoch in range(1, 12) for _, end in in_training(made, epoch)[:3]}
    assert len(firsts) > 20
    assert max(firsts) < 256
    plain = in_training(shortcuts(compat="published"))
    assert [end for _, end in plain[3::3]] == [1, 3, 4, 6, 7, 9, 10]


def test_evaluation_is_a_function_of_seed_and_image():
    made = shortcuts()
    test = made.injected(collection().split("test"))
    part = made.injected(collection().split("test").subset([2, 0]))

    def key(found, row):
        return found.item(row).overlay.key

    assert [key(part, row) for row in (0, 1)] == [key(test, row) for row in (2, 0)]
    assert [key(test.subset([2, 0]), row) for row in (0, 1)] == [key(test, row) for row in (2, 0)]
    other = shortcuts(seed=1).injected(collection().split("test"))
    assert all(key(other, row) != key(test, row) for row in range(4))
    assert test.source.content(0) != other.source.content(0)
    assert len({test.source.content(row) for row in range(4)}) == 4


def test_what_cannot_carry_shortcuts():
    made, whole = shortcuts(), collection()
    batch = Batch(np.array([2]), np.array([6]), np.array([0]))
    dealt = shortcuts(shuffled=True)  # codes are dealt to the training split only
    refused(MismatchError, "not in split 'train', among whose 8 numbers", dealt.training, whole, batch, 1)
    nameless = Shortcuts.of(ShortcutOptions(shuffled=True, digits="drawn"), whole, "trian", 0)
    refused(UnknownNameError, "did you mean 'train'", nameless.training, whole, batch, 1)
    refused(UsageError, "carry shortcuts already", made.injected, made.injected(whole))
    of_part, part = shortcuts(whole.split("train")), whole.split("train")
    text = r"image 'i2' is not in the collection of 8 images .*\(greys\)"
    refused(MismatchError, text, of_part.injected, whole)
    renamed = replace(part, caption_ids=[f"x{row}" for row in range(24)])
    refused(MismatchError, "caption 'x0' is not in the collection of 24 captions", of_part.injected, renamed)
    regions = collection(source=RegionSource([np.zeros((12, 2, 3), np.float32)], "r.npy"))
    text = "lays digits over images, greys holds region features"
    refused(UsageError, text, shortcuts, regions, setup="images")
    found = shortcuts(regions, setup="captions").injected(regions.split("test"))
    assert (found.holds, found.captions[0]) == ("regions", "Caption 6. 0 0 0 0 0 2")

    class Many:
        name, holds, n_images, n_captions = "many", "pictures", 1_000_001, 1_000_002

        def divided(self):
            return self

    for setup, message in (
        ("unique", "1,000,001 images need a code each, and there are 1,000,000"),
        ("captions", "1,000,001 images"),
        ("per-caption", "1,000,002 captions"),
    ):
        refused(UsageError, message, Shortcuts.of, ShortcutOptions(setup=setup), Many(), "train", 0)
    Shortcuts.of(ShortcutOptions(setup="bits", bits=8), Many(), "train", 0)
