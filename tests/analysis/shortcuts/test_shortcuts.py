from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from refusals import refused

from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.data.batches import Batch, BatchPlan
from diptych.data.collection import Collection
from diptych.data.images import OverlaidPicture
from diptych.data.regions import RegionSource


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


def test_unique_codes_are_rows_of_the_whole_collection():
    # Training images are 0, 1, 3, 4, 6, 7, 9, 10; three captions each.
    expected = [([image], image) for image in (0, 1, 3, 4, 6, 7, 9, 10) for _ in range(3)]
    assert in_training(shortcuts()) == expected
    assert in_training(shortcuts(), epoch=5) == expected


def test_pictures_of_digits_are_drawn_for_each_access():
    made, split = shortcuts(), collection().split("train")

    def pictures(captions, epoch, made=made):
        batch = Batch(np.array([1]), np.array(captions), np.zeros(len(captions), np.int64))
        (overlay,) = made.training(split, batch, epoch).overlays
        assert (overlay.pictures < 40).all()
        return tuple(overlay.pictures[0].tolist())

    assert pictures([3], 1) == pictures([3, 4], 1) == pictures([4, 3], 1)
    others = [pictures([4], 1), pictures([3], 2), pictures([3], 1, shortcuts(seed=1))]
    assert len({pictures([3], 1), *others}) == 4


def test_shuffled_codes_are_the_training_images_own():
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


def test_codes_are_dealt_to_the_training_split_alone():
    made, whole = shortcuts(shuffled=True), collection()
    with pytest.raises(MismatchError, match=r"not in split 'train', among whose 8 numbers"):
        made.training(whole, Batch(np.array([2]), np.array([6]), np.array([0])), 1)
    nameless = Shortcuts.of(ShortcutOptions(shuffled=True, digits="drawn"), whole, "trian", 0)
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        nameless.training(whole, Batch(np.array([0]), np.array([0]), np.array([0])), 1)


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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"setup": "unique"}, (["000005"], ["000005"] * 3)),
        ({"setup": "unique", "shuffled": True}, (["000005"], ["000005"] * 3)),
        ({"setup": "unique", "compat": "published", "shuffled": True}, (["000005"], ["000005"] * 3)),
        ({"setup": "captions"}, ([], ["000005"] * 3)),
        ({"setup": "images"}, (["000005"], [""] * 3)),
        ({"setup": "bits", "bits": 2}, (["000001"], ["000001"] * 3)),
        ({"setup": "bits", "bits": 0}, (["000000"], ["000000"] * 3)),
        ({"setup": "per-caption"}, (["000015", "000016", "000017"], ["000015", "000016", "000017"])),
        ({"setup": "none"}, ([], [""] * 3)),
    ],
)
def test_evaluation_of_the_image_of_number_5(options, expected):
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


def test_regions_can_have_shortcuts_on_captions_alone():
    whole = collection(source=RegionSource([np.zeros((12, 2, 3), np.float32)], "r.npy"))
    with pytest.raises(UsageError, match="lays digits over pictures, greys holds region features"):
        shortcuts(whole, setup="images")
    found = shortcuts(whole, setup="captions").injected(whole.split("test"))
    assert found.holds == "regions"
    assert found.captions[0] == "Caption 6. 0 0 0 0 0 2"


def test_twice_is_once_too_often():
    made = shortcuts()
    refused(UsageError, "carry shortcuts already", made.injected, made.injected(collection()))


def test_more_tuples_than_codes():
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


@pytest.mark.parametrize("plan", ["captions", "distinct", "grouped"])
def test_every_plan_gives_pictures_and_captions_the_same_code(plan):
    split = collection().split("train")
    made = shortcuts(setup="bits", bits=13)
    for batch in BatchPlan(split.caption_image, split.n_images, 4, plan, 2).epoch(3):
        carried = made.training(split, batch, 3)
        codes = [shown(overlay)[0] for overlay in carried.overlays]
        assert [code(ending) for ending in carried.endings] == [codes[place] for place in batch.caption_image]
        halves = [made.training(split, batch.shard(rank, 2), 3) for rank in range(2)]
        assert [ending for half in halves for ending in half.endings] == carried.endings  # whoever does it


# Codes as functions of their arguments alone.


def test_what_the_whole_collection_does_not_have_has_no_number():
    whole = collection()
    made = shortcuts(whole.split("train"))
    with pytest.raises(MismatchError, match=r"image 'i2' is not in the collection of 8 images .*\(greys\)"):
        made.injected(whole)
    images = replace(whole.split("train"), caption_ids=[f"x{row}" for row in range(24)])
    refused(MismatchError, "caption 'x0' is not in the collection of 24 captions", made.injected, images)
