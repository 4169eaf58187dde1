"""Collections, in lists and in columns on disk, their captions and batches."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import refused

from diptych.core.errors import DataError, ImageError, StorageError, UnknownNameError, UsageError
from diptych.core.files import cache_root
from diptych.data import choose_captions
from diptych.data.batches import Batch, BatchPlan, PlanName
from diptych.data.collection import Collection, Shares
from diptych.data.columns import Column, write_strings
from diptych.data.loading import NO_PICTURE, picture_contents
from diptych.data.stored import Stored, StoredWriter, stored


class Numbers:
    """Pictures whose colour is their row."""

    def read(self, row: int) -> Image.Image:
        return Image.new("RGB", (1, 1), (row, 0, 0))

    def content(self, row: int) -> str:
        return str(row)


def collection(**changes: object) -> Collection:
    values: dict[str, object] = {
        "name": "three",
        "image_ids": ["a", "b", "c"],
        "captions": ["a0", "a1", "c0"],
        "caption_ids": ["1", "2", "3"],
        "caption_image": np.array([0, 0, 2]),
        "splits": ["train", "test", "train"],
        "source": Numbers(),
        "source_rows": np.array([10, 20, 30]),
        "records": [{"n": 0}, {"n": 1}, {"n": 2}],
    }
    return Collection(**{**values, **changes})  # type: ignore[arg-type]


def test_only_what_is_read_again_says_how() -> None:
    read = collection().with_read_as({"data": "x"})
    assert collection().read_as is None
    assert replace(read, captions=["b0", "a1", "c0"]).read_as is None
    assert read.first_captions().read_as is None
    whole = replace(read, splits=["all"] * 3, shares=Shares()).with_read_as(read.read_as)
    assert whole.divided().read_as == read.read_as  # the splits are a function of what is read


def test_which_caption_describes_which_image_in_every_part() -> None:
    three = collection()
    assert three.captions_of(0) == ["a0", "a1"]
    assert three.captions_of(1) == []
    assert three.captions_per_image.tolist() == [2, 0, 1]
    assert three.image(2).getpixel((0, 0)) == (30, 0, 0)
    assert three.split_sizes == {"train": 2, "test": 1}
    assert "3 images, 3 captions (0–2 captions per image); train 2, test 1" in three.describe()
    train = collection().split("train")
    assert train.image_ids == ["a", "c"]
    assert train.captions == ["a0", "a1", "c0"]
    assert train.caption_image.tolist() == [0, 0, 1]
    assert train.records == [{"n": 0}, {"n": 2}]
    assert [picture.getpixel((0, 0))[0] for picture in train.images()] == [10, 30]
    turned = collection().subset([2, 1, 0])
    assert turned.captions == ["c0", "a0", "a1"]
    assert turned.caption_image.tolist() == [0, 2, 2]
    assert turned.first_captions(1).captions == ["c0", "a0"]
    refused(UnknownNameError, r"unknown split of three 'val' .*known: test, train", collection().split, "val")
    three = collection(source_rows=np.array([10, -1, 30]))
    assert three.pictured.tolist() == [True, False, True]
    for read in (three.image, three.item):
        refused(ImageError, "b has no image", read, 1)
    assert picture_contents(three) == ["10", NO_PICTURE, "30"]
    assert "3 images (1 of them without an image), 3 captions" in three.describe()
    for changes, message in (
        ({"splits": ["train"]}, "3 splits expected, got 1"),
        ({"caption_image": np.array([0, 0, 3])}, r"must not decrease and lie in \[0, 3\)"),
        ({"caption_image": np.array([1, 0, 2])}, "must not decrease"),
        ({"image_ids": ["a", "b", "a"]}, "image id 'a' occurs twice"),
        ({"caption_ids": ["1", "1", "2"]}, "caption id '1' occurs twice"),
        ({"caption_records": []}, "3 caption records expected, got 0"),
    ):
        refused(DataError, message, collection, **changes)


def with_captions(counts: list[int]) -> Collection:
    images = [f"image{i}" for i in range(len(counts))]
    return collection(
        image_ids=images,
        captions=[f"{name} {k}" for name, n in zip(images, counts, strict=True) for k in range(n)],
        caption_ids=[f"{name}#{k}" for name, n in zip(images, counts, strict=True) for k in range(n)],
        caption_image=np.repeat(np.arange(len(counts)), counts),
        splits=["test", "train"] * (len(counts) // 2) + ["test"] * (len(counts) % 2),
        source_rows=np.arange(len(counts)),
        records=None,
    )


def test_random_captions_are_a_function_of_seed_and_image() -> None:
    whole = with_captions([5, 0, 1, 2, 7] * 40)
    one = whole.random_captions(seed=3)
    assert one.image_ids == whole.image_ids
    assert one.captions_per_image.tolist() == [1, 0, 1, 1, 1] * 40
    assert one.captions == whole.random_captions(1, seed=3).captions
    assert one.captions != whole.random_captions(1, seed=4).captions
    # The same draw in a part, and in another order.
    turned = whole.subset(np.arange(whole.n_images)[::-1]).random_captions(seed=3)
    assert sorted(turned.captions) == sorted(one.captions)
    assert one.split("test").captions == whole.split("test").random_captions(seed=3).captions


def test_words_and_the_captions_they_choose() -> None:
    whole = with_captions([5] * 40 + [3])
    assert choose_captions(whole, "all") is whole
    first = choose_captions(whole, "first")
    assert first.captions == whole.first_captions().captions
    assert first.notes == ("the first caption of each image",)
    four = choose_captions(whole, "first:4")
    assert four.captions_per_image.tolist() == [4] * 40 + [3]
    assert four.notes == ("the first 4 captions of each image",)
    for word, seed in (("random", 0), ("random:0", 0), ("random:7", 7)):
        found = choose_captions(whole, word)
        assert found.captions == whole.random_captions(seed=seed).captions
        assert found.notes == (f"1 caption of each image, drawn with seed {seed}",)
    assert choose_captions(whole, "random:7").captions != choose_captions(whole, "random").captions
    for word in ("", "one", "first:", "first:0", "random:x", "random:-1", "All", "all:2"):
        whole = with_captions([1])
        refused(UsageError, "all, first, first:K, random or random:SEED", choose_captions, whole, word)


class Squares(Column[int]):
    """Values that are computed, and count what was read of them."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.largest_read = 0

    def read(self, rows: range | np.ndarray) -> list[int]:
        self.largest_read = max(self.largest_read, len(rows))
        return [int(row) ** 2 for row in rows]


@given(st.integers(0, 40), st.data())
def test_parts_of_parts_are_those_of_a_list(size: int, data: st.DataObject) -> None:
    column: Column[int] = Squares(size)
    plain = [row**2 for row in range(size)]
    for _ in range(3):
        rows = data.draw(st.lists(st.integers(0, len(plain) - 1), max_size=12)) if plain else []
        if data.draw(st.booleans()) and plain:
            first = data.draw(st.integers(0, len(plain) - 1))
            rows = list(range(first, data.draw(st.integers(first, len(plain)))))
        column, plain = column.take(rows), [plain[row] for row in rows]
        assert list(column) == plain
        assert len(column) == len(plain)
        assert column[1:-1] == plain[1:-1]
        assert column[::-2] == plain[::-2]
        assert [column[-1 - at] for at in range(len(plain))] == plain[::-1]


class NoPictures:
    def read(self, row: int) -> None:
        raise AssertionError

    def content(self, row: int) -> str:
        return str(row)


IMAGES = [("a", "train", ["one", "two"], 7), ("b", "test", [], -8), ("ç", "train", ["three"], 9)]


def write(writer: StoredWriter) -> None:
    for name, split, captions, place in IMAGES:
        writer.add(name, split, captions, [place], [f"of {name}"])
    writer.notes.append("three were found")


def of(found: Stored) -> Collection:
    return found.collection("three", NoPictures(), found.texts("more"))  # type: ignore[arg-type]


def in_lists() -> Collection:
    return Collection(
        name="three",
        image_ids=["a", "b", "ç"],
        captions=["one", "two", "three"],
        caption_ids=["a#0", "a#1", "ç#0"],
        caption_image=np.array([0, 0, 2]),
        splits=["train", "test", "train"],
        source=NoPictures(),  # type: ignore[arg-type]
        source_rows=np.arange(3),
        records=["of a", "of b", "of ç"],  # type: ignore[list-item]
    )


def same(stored_columns: Collection, lists: Collection) -> None:
    for name in ("image_ids", "captions", "caption_ids", "splits", "records", "caption_image", "source_rows"):
        assert list(getattr(stored_columns, name)) == list(getattr(lists, name)), name
    assert stored_columns.text_fingerprint == lists.text_fingerprint
    assert stored_columns.split_sizes == lists.split_sizes


def test_a_collection_of_columns_is_the_same_as_one_of_lists() -> None:
    columns, lists = of(stored("same", write, 1, ["more"])), in_lists()
    same(columns, lists)
    same(columns.split("train"), lists.split("train"))
    same(columns.subset([2, 0]).first_captions(1), lists.subset([2, 0]).first_captions(1))
    same(columns.subset([]), lists.subset([]))
    assert columns.captions_of(0) == ["one", "two"]
    assert columns.notes == ("three were found",)
    assert columns.describe() == lists.describe()


def test_what_is_corrupt_is_written_again(caplog: pytest.LogCaptureFixture) -> None:
    files = ("captions.utf8", "captions.ends", "caption_ids.utf8", "image_ids.ends", "more.utf8")
    files += ("caption_image.i8", "places.i8", "splits.u1", "columns.json")
    for file, damage in itertools.product(files, ("cut", "gone", "longer")):
        caplog.clear()
        same(of(stored("corrupt", write, 1, ["more"])), in_lists())
        path = cache_root() / "collections" / "corrupt" / file
        content = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(content[:-1] if damage == "cut" else content + b"\0" * 8)
        same(of(stored("corrupt", write, 1, ["more"])), in_lists())
        # Without its header a folder is not there; a header that lacks its last line end is whole.
        assert file == "columns.json" or "is corrupt and recreated" in caplog.text


def test_what_is_there_is_read_from_a_cache_that_nobody_may_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared cache is written by one and read by others, who cannot lock it either."""
    stored("shared", write, 1, ["more"])

    def denied(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", denied)
    same(of(stored("shared", write, 1, ["more"])), in_lists())
    refused(StorageError, "DIPTYCH_CACHE", stored, "not there", write, 1, ["more"])


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=30), data=st.data()
)
def test_what_was_written_is_read(
    texts: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = write_strings(tmp_path_factory.mktemp("table") / "captions", iter(texts))
    assert list(table) == texts
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=9)) if texts else []
    assert list(table.take(rows)) == [texts[row] for row in rows]
    assert table[2:5] == texts[2:5]


def test_going_through_a_table_holds_a_block_of_it(tmp_path: Path) -> None:
    peaks = []
    for size in (20_000, 100_000):
        table = write_strings(tmp_path / f"t{size}", (f"the caption of picture {row}" for row in range(size)))
        tracemalloc.start()
        assert sum(map(len, table)) == sum(len(f"the caption of picture {row}") for row in range(size))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] < 3_000_000


def test_a_file_that_shrinks_while_in_use_is_an_error(tmp_path: Path) -> None:
    table = write_strings(tmp_path / "t", ["one", "two"])
    (tmp_path / "t.utf8").write_bytes(b"on\xffone")
    refused(StorageError, r"t\.utf8 is no text", list, table)
    (tmp_path / "t.utf8").write_bytes(b"one")
    assert table[0] == "one"
    with pytest.raises(StorageError, match="ends at byte 3, 6 expected"):
        table[1]
    (tmp_path / "t.utf8").unlink()
    with pytest.raises(StorageError, match="does not exist"):
        table[0]


counts = st.lists(st.integers(0, 5), min_size=3, max_size=30).filter(lambda c: sum(n > 0 for n in c) >= 3)


def caption_image(per_image: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(per_image)), per_image)


def check(batch: Batch, images_of: np.ndarray) -> None:
    assert len(set(batch.images.tolist())) == len(batch.images)
    assert np.array_equal(batch.images[batch.caption_image], images_of[batch.captions])
    assert np.all(np.diff(batch.caption_image) >= 0)


@settings(max_examples=60)
@given(counts, st.integers(2, 3), st.sampled_from(["captions", "distinct"]), st.integers(0, 3))
def test_every_caption_once_per_epoch(per_image: list[int], size: int, plan: PlanName, epoch: int) -> None:
    images = caption_image(per_image)
    batches = BatchPlan(images, len(per_image), size, plan, seed=1).epoch(epoch)
    seen = np.concatenate([batch.captions for batch in batches])
    assert sorted(seen.tolist()) == list(range(len(images)))
    for batch in batches:
        check(batch, images)
        assert len(batch.captions) <= size


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    images = caption_image([6, 1, 1])
    batches = BatchPlan(images, 3, 3, "distinct").epoch(0)
    assert sorted(np.concatenate([b.captions for b in batches]).tolist()) == list(range(8))
    assert any(len(batch.images) < len(batch.captions) for batch in batches)
    images = caption_image([5] * 40)
    plan = BatchPlan(images, 40, 16, seed=3)
    again = BatchPlan(images, 40, 16, seed=3)
    order = [batch.captions.tolist() for batch in plan.epoch(2)]
    assert order == [batch.captions.tolist() for batch in again.epoch(2)]
    assert order != [batch.captions.tolist() for batch in plan.epoch(1)]
    assert order != [batch.captions.tolist() for batch in BatchPlan(images, 40, 16, seed=4).epoch(2)]
    for size, message in ((1, "needs a negative"), (9, "larger than the 3 images")):
        refused(UsageError, message, BatchPlan, caption_image([2, 2, 2]), 3, size)


@settings(max_examples=40)
@given(counts, st.integers(1, 6))
def test_grouped_takes_k_captions_of_every_image(per_image: list[int], k: int) -> None:
    images = caption_image(per_image)
    batches = BatchPlan(images, len(per_image), 2, "grouped", captions_per_image=k).epoch(0)
    seen = np.concatenate([batch.images for batch in batches])
    assert sorted(seen.tolist()) == [i for i, n in enumerate(per_image) if n]
    for batch in batches:
        check(batch, images)
        taken = np.bincount(batch.caption_image, minlength=len(batch.images))
        assert taken.tolist() == [min(k, per_image[image]) for image in batch.images]


@given(st.integers(1, 5))
def test_shards_are_the_batch(world: int) -> None:
    images = caption_image([3] * 20)
    batch = BatchPlan(images, 20, 12, "captions").epoch(0)[0]
    shards = [batch.shard(rank, world) for rank in range(world)]
    assert np.concatenate([s.images for s in shards]).tolist() == batch.images.tolist()
    assert np.concatenate([s.captions for s in shards]).tolist() == batch.captions.tolist()
    for shard in shards:
        check(shard, images)
