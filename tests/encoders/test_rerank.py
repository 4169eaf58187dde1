from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_matching import FakeMatching
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection
from diptych.encoders.rerank import (
    PairInputs,
    pair_keys,
    rerank,
    rerank_prepared,
    reranked,
    stored_candidates,
)
from diptych.metrics import Reranked, top_k


@pytest.fixture(scope="module")
def collection(scenes_folder: Path) -> Collection:
    return read_collection(str(scenes_folder)).split("test")


@pytest.fixture(scope="module")
def encoded(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> EncodedCollection:
    return encode_collection(FakeMatching(), collection, tmp_path_factory.mktemp("embedded"), "test")


def scored_slowly(collection: Collection) -> np.ndarray:
    """The head's score of every pair, one pair at a time."""
    head = FakeMatching()
    images = [head.image_inputs([collection.item(row)]) for row in range(collection.n_images)]
    texts = [head.text_inputs([text]) for text in collection.captions]
    return np.array([[head.match(image, text)[0] for text in texts] for image in images])


def equal(one: Reranked, other: Reranked) -> bool:
    return all(
        np.array_equal(getattr(a, part), getattr(b, part))
        for a, b in ((one.i2t, other.i2t), (one.t2i, other.t2i))
        for part in ("items", "contrastive", "matching")
    )


Blocks = Callable[[int, int], None]


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Blocks:
    """Set how many images a block holds, and how many pairs the head scores together."""

    def change(images: int, pairs: int) -> None:
        monkeypatch.setattr("diptych.encoders.rerank._PICTURES", images)
        monkeypatch.setattr("diptych.encoders.rerank._PAIRS", pairs)

    return change


def test_the_best_of_both_directions_are_scored(
    collection: Collection, encoded: EncodedCollection, blocks: Blocks
) -> None:
    blocks(3, 5)
    found = rerank(FakeMatching(), collection, encoded, 4)
    scores = scored_slowly(collection)
    for name, table in (("i2t", scores), ("t2i", scores.T)):
        one = found.i2t if name == "i2t" else found.t2i
        sides = (encoded.images.rows, encoded.texts.rows)
        items, contrastive = top_k(*(sides if name == "i2t" else sides[::-1]), 4)
        np.testing.assert_array_equal(one.items, items)
        np.testing.assert_allclose(one.contrastive, contrastive, rtol=1e-6)
        np.testing.assert_allclose(one.matching, np.take_along_axis(table, items, axis=1), rtol=1e-5)
        assert one.matching.dtype == np.float32
    assert len(np.unique(scores)) > 100  # or the comparison above would say nothing
    assert found.about["encoder"] == FakeMatching().fingerprint
    assert (found.about["dataset"], found.about["split"], found.about["k"]) == (collection.name, "test", 4)
    assert not found.adds_contrastive


def test_everything_is_read_once_and_memory_is_a_block(
    collection: Collection, encoded: EncodedCollection, blocks: Blocks
) -> None:
    blocks(5, 64)
    encoder = FakeMatching()
    found = rerank(encoder, collection, encoded, 6)
    pairs = {(i, t) for i, row in enumerate(found.i2t.items.tolist()) for t in row}
    pairs |= {(i, t) for t, row in enumerate(found.t2i.items.tolist()) for i in row}
    assert encoder.asked == {"pictures": 16, "texts": 80, "pairs": len(pairs)}
    assert len(pairs) < found.i2t.items.size + found.t2i.items.size  # some are asked for both ways
    assert encoder.most_pictures == 5


def test_blocks_do_not_matter(collection: Collection, encoded: EncodedCollection, blocks: Blocks) -> None:
    whole = rerank(FakeMatching(), collection, encoded, 5)
    blocks(1, 1)
    assert equal(whole, rerank(FakeMatching(), collection, encoded, 5))
    blocks(16, 7)
    assert equal(whole.first(2), rerank(FakeMatching(), collection, encoded, 2))


def test_stored_and_found_again(collection: Collection, encoded: EncodedCollection, tmp_path: Path) -> None:
    folder = tmp_path / "reranked"
    encoder = FakeMatching()
    first = rerank(encoder, collection, encoded, 5, folder=folder)
    assert isinstance(first.i2t.matching, np.memmap)
    assert [path.name for path in tmp_path.iterdir()] == ["reranked"]  # nothing is left of the work
    pairs = encoder.asked["pairs"]
    assert equal(rerank(encoder, collection, encoded, 5, folder=folder), first)
    assert equal(rerank(encoder, collection, encoded, 3, folder=folder), first.first(3))
    assert encoder.asked["pairs"] == pairs
    deeper = rerank(encoder, collection, encoded, 7, folder=folder)
    assert deeper.k == 7
    assert encoder.asked["pairs"] > pairs
    stored = stored_candidates(folder, encoded, 7)
    assert stored is not None
    assert equal(stored, deeper)
    assert stored_candidates(folder, encoded, 8) is None
    assert stored_candidates(tmp_path / "nothing", encoded, 1) is None
    other = replace(encoded, about={**encoded.about, "data": "other"})
    assert stored_candidates(folder, other, 1) is None
    # All there is is enough, however many are asked for.
    whole = rerank(encoder, collection, encoded, 500, folder=folder)
    stored = stored_candidates(folder, encoded, 1000)
    assert stored is not None
    assert equal(stored, whole)


class Stops(FakeMatching):
    """Is killed after so many calls of the head."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return super().match(images, texts)


@pytest.mark.parametrize("calls", [0, 1, 30, 60])
def test_killed_in_the_middle_it_goes_on(
    calls: int, collection: Collection, encoded: EncodedCollection, tmp_path: Path, blocks: Blocks
) -> None:
    blocks(2, 3)
    first = FakeMatching()
    whole = rerank(first, collection, encoded, 5)
    with pytest.raises(KeyboardInterrupt):
        rerank(Stops(calls), collection, encoded, 5, folder=tmp_path / "r")
    assert not (tmp_path / "r").exists()
    work = tmp_path / ".r.work"
    done = json.loads((work / "done.json").read_text()) if (work / "done.json").exists() else 0
    again = FakeMatching()
    found = rerank(again, collection, encoded, 5, folder=tmp_path / "r")
    assert equal(found, whole)
    assert not work.exists()
    assert again.asked["pictures"] == 16 - 2 * done
    assert again.asked["texts"] == 0  # they were read before
    assert (again.asked["pairs"] < first.asked["pairs"]) == (done > 0) == (calls >= 30)


class Wrong(FakeMatching):
    """A head that gives what it should not."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        scores = super().match(images, texts)
        if self.what == "nan" and self.asked["pairs"] > 40:
            scores[-1] = np.nan
        if self.what == "raises":
            raise NumericalError("pair 3 is nan", "do something")
        return scores


def test_a_head_without_finite_scores_is_named(
    collection: Collection, encoded: EncodedCollection, blocks: Blocks
) -> None:
    blocks(8, 10)
    for what, message in (
        ("nan", r"images '.*' to '.*' with their captions: the matching score of pair"),
        ("raises", "with their captions: pair 3 is nan"),
    ):
        refused(NumericalError, message, rerank, Wrong(what), collection, encoded, 3)


def test_the_same_as_of_a_collection(
    collection: Collection, encoded: EncodedCollection, blocks: Blocks
) -> None:
    for k, batch, adds in ((1, 64, True), (5, 3, False), (500, 7, True)):
        blocks(8, batch)
        check_prepared(k, adds, collection, encoded)


def check_prepared(k: int, adds: bool, collection: Collection, encoded: EncodedCollection) -> None:
    head: Any = FakeMatching()
    head.adds_contrastive = adds
    images = head.image_inputs([collection.item(row) for row in range(collection.n_images)])
    texts = head.text_inputs(list(collection.captions))
    found = rerank_prepared(head, encoded.images.rows, encoded.texts.rows, images, texts, k=k)
    expected = rerank(head, collection, encoded, k)
    for direction, one, other in (("i2t", found.i2t, expected.i2t), ("t2i", found.t2i, expected.t2i)):
        np.testing.assert_array_equal(one.items, other.items)
        np.testing.assert_array_equal(one.contrastive, other.contrastive)
        np.testing.assert_allclose(one.matching, other.matching, rtol=1e-5)
        final = one.matching + one.contrastive if adds else one.matching
        np.testing.assert_array_equal(found.final(direction), final)  # type: ignore[arg-type]
    found.check()
    assert k < 500 or (found.matrix("i2t") > -100).all()


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_every_pair_once_and_every_candidate_knows_its_pair(n: int, m: int, k: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    i2t = np.stack([random.permutation(m)[:k] for _ in range(n)])
    t2i = np.stack([random.permutation(n)[:k] for _ in range(m)])
    chosen = {
        name: (items, np.zeros(items.shape, np.float32)) for name, items in (("i2t", i2t), ("t2i", t2i))
    }
    keys = pair_keys(chosen)
    expected = {(i, int(t)) for i in range(n) for t in i2t[i]} | {
        (int(i), t) for t in range(m) for i in t2i[t]
    }
    assert list(zip(*(part.tolist() for part in np.divmod(keys, m)), strict=True)) == sorted(expected)
    found = reranked(chosen, keys, keys.astype(np.float32), False, {})  # a pair's score says which pair it is
    np.testing.assert_array_equal(found.i2t.matching, np.arange(n)[:, None] * m + i2t)
    np.testing.assert_array_equal(found.t2i.matching, t2i * m + np.arange(m)[:, None])


def test_what_does_not_belong_together(
    collection: Collection, encoded: EncodedCollection, run_folder: Path, tmp_path: Path
) -> None:
    encoder = FakeMatching()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    few, single, turned = collection.subset([0, 1, 2]), collection.first_captions(1), np.arange(16)[::-1]
    for head, part, options, error, message in (
        (FakeMatching(seed=1), collection, {}, MismatchError, "the embeddings are of encoder"),
        (encoder, few, {}, MismatchError, "16 pictures were embedded, scenes has 3"),
        (encoder, single, {}, MismatchError, "80 captions were embedded, scenes has 16"),
        (encoder, collection.subset(turned), {}, MismatchError, "others from row 0 on"),
        (encoder, collection, {"folder": tmp_path / "mine"}, UsageError, "holds other things"),
    ):
        refused(error, message, rerank, head, part, encoded, 3, **options)
    refused(UsageError, "is 0, it must be at least 1", rerank, encoder, collection, encoded, 0)
    assert not encoder.asked  # refused before the work
    plain = DualEncoder.load(run_folder / "best")
    error = refused(
        UsageError, "'two_tower', which has no matching head", rerank, plain, collection, encoded, 3
    )
    assert "a family with a head: " in error.fix
    assert "blip" in error.fix


def test_prepared_inputs_that_do_not_belong_together() -> None:
    head, rows = FakeMatching(), np.eye(6, dtype=np.float32)
    images = head.image_inputs([np.full((2, 2, 3), shade, dtype=np.uint8) for shade in range(6)])
    texts = head.text_inputs(list("abcdef"))
    for sides, k, error, message in (
        ((rows[:5], rows, images, texts), 2, MismatchError, "5 rows of .*, and inputs of 6"),
        ((rows, rows[:5], images, texts), 2, MismatchError, "5 rows of .*, and inputs of 6"),
        ((rows, rows, {}, texts), 2, MismatchError, "6 rows of images, and inputs of nothing"),
        ((rows, rows, images, texts), 0, UsageError, "is 0, it must be at least 1"),
        ((rows[:0], rows, head.image_inputs([]), texts), 2, DataError, "."),
    ):
        refused(error, message, rerank_prepared, head, *sides, k=k)
