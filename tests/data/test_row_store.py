"""The contract of the row store: any order, any number of writers, killed anywhere: the same rows, none lost."""

from __future__ import annotations

import dataclasses
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crash import crash_everywhere
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refused
from scipy.sparse import coo_array, csc_array, csr_array

from diptych.core.errors import DataError, NumericalError, StorageError
from diptych.data.row_store import RowPlan, RowStore, keyed_rows, text_keys
from diptych.encoders.embeddings import Embeddings, SparseEmbeddings, canonical_rows

PLAN = RowPlan({"encoder": "e", "data": "d"}, count=10, shape=(3,), block=4)
ROWS = np.arange(30, dtype=np.float32).reshape(10, 3)
IDS = list("abcdefghij")


def as_embeddings(rows: np.ndarray) -> Embeddings:
    return Embeddings(IDS[: len(rows)], rows, "e", "d", "image", {"split": "test"})


def test_blocks_of_several_writers_in_any_order_become_an_artifact(tmp_path: Path) -> None:
    target = tmp_path / "e" / "images"
    as_embeddings(-ROWS).save(target)  # an older version stays until the new one is whole
    store = RowStore.begin(target, PLAN)
    with RowStore(target, PLAN) as one, RowStore(target, PLAN) as other:
        one.write(0, ROWS[:4])
        other.write(2, ROWS[8:])
        assert store.done() == 0
        other.record()
        assert (store.done(), store.missing().tolist()) == (2, [0, 1])
    assert RowStore.begin(target, PLAN).done() == 6
    with store:
        store.write(1, ROWS[4:8])
        for number, rows in ((0, ROWS[:3]), (2, ROWS[:4]), (0, ROWS[:4, :2])):
            refused(DataError, r"rows of shape .*, expected \(\d, 3\)", store.write, number, rows)
    assert np.array_equal(Embeddings.open(target).rows, -ROWS)
    found = store.finish(as_embeddings)
    assert np.array_equal(found.rows, ROWS)
    assert list(found.ids) == IDS
    assert [file.name for file in target.parent.iterdir()] == ["images"]
    files = {"embeddings.json", "ids.ends", "ids.utf8", "rows.npy"}
    assert {file.name for file in target.iterdir()} == files


def test_another_plan_begins_anew(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"of": {}},
        {"count": 9},
        {"shape": (4,)},
        {"block": 5},
        {"dtype": "float16"},
    ]
    for change in changes:
        with RowStore.begin(tmp_path / "images", PLAN) as store:
            store.write(0, ROWS[:4])
        assert RowStore.begin(tmp_path / "images", PLAN).done() == 4
        assert RowStore.begin(tmp_path / "images", dataclasses.replace(PLAN, **change)).done() == 0


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*images.unfinished: .* too large"):
            RowStore.begin(tmp_path / "images", PLAN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert RowStore.begin(tmp_path / "images", PLAN).done() == 0


def test_a_crash_at_any_call_loses_no_recorded_block(tmp_path: Path) -> None:
    def act(place: Path) -> None:
        with RowStore.begin(place / "images", PLAN) as store:
            for number in store.missing().tolist():
                store.write(number, ROWS[number * 4 : number * 4 + 4])
                store.record()
        store.finish(as_embeddings)

    def check(place: Path) -> None:
        if (place / "images" / "embeddings.json").exists():
            assert np.array_equal(Embeddings.open(place / "images").rows, ROWS)
            return
        store = RowStore.begin(place / "images", PLAN)
        rows = np.load(store.folder / "rows.npy")
        for number in set(range(store.plan.blocks)) - set(store.missing().tolist()):
            assert np.array_equal(rows[number * 4 : number * 4 + 4], ROWS[number * 4 : number * 4 + 4])
        act(place)
        assert np.array_equal(Embeddings.open(place / "images").rows, ROWS)
        assert [file.name for file in place.iterdir()] == ["images"]

    assert crash_everywhere(lambda place: None, act, check, tmp_path, every=7) > 10


class Making:
    """Rows (length of the text, its first letter), in batches of 3 from the end."""

    def __init__(self, texts: list[str], patience: int = 1000) -> None:
        self.texts, self.patience = texts, patience
        self.seen: list[str] = []

    def __call__(self, places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(places), 3):
            numbers = np.arange(len(places))[::-1][start : start + 3]
            texts = [self.texts[places[number]] for number in numbers]
            if len(self.seen) + len(texts) > self.patience:
                raise KeyboardInterrupt
            self.seen += texts
            yield numbers, np.array([[len(text), ord(text[0])] for text in texts], dtype=np.float32)


def computed_rows(texts: list[str], folder: Path, making: Making | None = None) -> np.ndarray:
    rows, _ = keyed_rows(folder, text_keys(texts), 2, making or Making(texts), doing="making", unit="texts")
    return rows


def expected(texts: list[str]) -> list[list[float]]:
    return [[len(text), ord(text[0])] for text in texts]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=20), min_size=1, max_size=4))
def test_items_in_any_order_are_computed_once(
    tmp_path_factory: pytest.TempPathFactory, sequences: list[list[str]]
) -> None:
    folder, seen = tmp_path_factory.mktemp("rows"), []
    for letters in sequences:
        texts = [letter * (1 + ord(letter) % 5) for letter in letters]
        making = Making(texts)
        rows = computed_rows(texts, folder, making)
        assert rows.tolist() == expected(texts)
        assert isinstance(rows, np.memmap)
        assert not rows.flags.writeable
        seen += making.seen
    assert len(seen) == len(set(seen)) == len({letter for letters in sequences for letter in letters})


def test_what_was_computed_before_a_kill_is_used_for_any_sequence(tmp_path: Path) -> None:
    texts = [letter * 2 for letter in "abcdefghijklmnopqrst"]
    with pytest.raises(KeyboardInterrupt):
        computed_rows(texts, tmp_path, Making(texts, patience=15))
    other = Making(texts[::-2])
    assert computed_rows(texts[::-2], tmp_path, other).tolist() == expected(texts[::-2])
    after = Making(texts)
    assert computed_rows(texts, tmp_path, after).tolist() == expected(texts)
    assert len(after.seen) + len(other.seen) == 20 - 15
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("how", ["flipped", "short", "empty"])
def test_corrupt_rows_are_computed_again(tmp_path: Path, how: str) -> None:
    for texts in (["a", "bb"], ["bb", "a"]):
        folder = tmp_path / texts[0]
        computed_rows(["a", "bb"], folder)
        (file,) = folder.rglob("pool.bin")  # two records of 24 bytes
        content = file.read_bytes()
        flipped = content[:20] + bytes([content[20] ^ 1]) + content[21:]
        file.write_bytes({"flipped": flipped, "short": content[:47], "empty": b""}[how])
        making = Making(texts)
        assert computed_rows(texts, folder, making).tolist() == expected(texts)
        assert len(making.seen) == (2 if how == "empty" else 1)


FEW = np.arange(12, dtype=np.float32).reshape(4, 3)
FIELDS: Any = {"encoder": "e", "data": "d", "kind": "image", "about": {"split": "test"}}


def test_many_ids_are_read_when_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Embeddings(["a", "é", "", "a b\nc"], FEW, **FIELDS).save(tmp_path / "e")
    few = Embeddings.open(folder)
    monkeypatch.setattr("diptych.encoders.embeddings._HELD_IDS", 3)
    many = Embeddings.open(folder)
    assert isinstance(few.ids, list)
    assert not isinstance(many.ids, list)
    assert list(few.ids) == list(many.ids) == ["a", "é", "", "a b\nc"]
    assert (len(many), many.ids[1], many.ids[2:]) == (4, "é", ["", "a b\nc"])


TERMS = ("dog", "cat", "tree", "##s")


def test_duplicates_are_summed_columns_sorted_and_zeros_dropped() -> None:
    rows = csr_array(
        (np.array([1.0, 2.0, 0.0, 3.0]), np.array([3, 1, 2, 3]), np.array([0, 4, 4])), shape=(2, 4)
    )
    found = canonical_rows(rows)
    assert found.indices.tolist() == [1, 3]
    assert found.data.tolist() == [2.0, 4.0]
    assert found.indptr.tolist() == [0, 2, 2]
    assert (found.data.dtype, found.indices.dtype, found.indptr.dtype) == (np.float32, np.int32, np.int32)
    assert rows.nnz == 4, "what was given is left as it was"


@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-4, 4, width=16)))
def test_any_matrix_keeps_its_numbers(dense: np.ndarray) -> None:
    for rows in (dense, coo_array(dense), csc_array(dense)):
        found = canonical_rows(rows)
        assert np.array_equal(found.toarray(), dense.astype(np.float32))
        assert found.has_canonical_format
        assert np.all(found.data != 0)


def test_places_outside_of_the_rows_are_found(tmp_path: Path) -> None:
    rows = canonical_rows(np.array([[1.0, 0, 0, 0], [0, 0, 2.0, 0]]))
    wrong = {"indptr": ([0, 900_000_000, 2], [1, 1, 2], [0, -5, 2]), "indices": ([0, 4], [-1, 2])}
    for file, damage in ((file, damage) for file, some in wrong.items() for damage in some):
        folder = SparseEmbeddings(["a", "b"], rows, TERMS, **FIELDS).save(tmp_path / "e")
        kind = np.load(folder / f"{file}.npy").dtype
        np.save(folder / f"{file}.npy", np.array(damage, dtype=kind))
        message = "row starts do not ascend|beyond its 4 terms"
        refused(StorageError, message, SparseEmbeddings.open, folder)


def test_rows_that_do_not_fit_are_refused() -> None:
    rows = FEW.copy()
    rows[2, 1] = np.inf
    message = r"image embedding 'c' \(row 2\) is not finite"
    refused(NumericalError, message, Embeddings(list("abcd"), rows, **FIELDS).check_finite)
    refused(DataError, r"3 ids for rows of shape \(4, 3\)", lambda: Embeddings(list("abc"), FEW, **FIELDS))
    for bad in (np.nan, np.inf):
        refused(NumericalError, "row 1", canonical_rows, np.array([[0.0, 1.0], [bad, 0.0]]))
    matrix = canonical_rows(np.ones((2, 4)))
    refused(DataError, "4 terms", lambda: SparseEmbeddings(["a"], matrix, TERMS, **FIELDS))
