from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import DataError, NumericalError, StorageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.encoders.embeddings import Embeddings

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
ABOUT = {"encoder": "e", "data": "d", "kind": "image", "about": {"split": "test"}}


def test_saved_and_opened_it_is_the_same_and_mapped(tmp_path: Path) -> None:
    Embeddings(list("abcd"), ROWS, **ABOUT).save(tmp_path / "e")  # type: ignore[arg-type]
    opened = Embeddings.open(tmp_path / "e")
    assert np.array_equal(opened.rows, ROWS)
    assert isinstance(opened.rows, np.memmap)
    assert (list(opened.ids), opened.encoder, opened.data, opened.kind) == (list("abcd"), "e", "d", "image")
    assert (len(opened), opened.width, opened.about) == (4, 3, {"split": "test"})


def test_streamed_in_blocks_it_is_the_same(tmp_path: Path) -> None:
    blocks = (ROWS[start : start + 3] for start in (0, 3))
    streamed = Embeddings.stream(tmp_path / "e", list("abcd"), 3, blocks, **ABOUT)  # type: ignore[arg-type]
    assert np.array_equal(streamed.rows, ROWS)


@pytest.mark.parametrize("count", [3, 5])
def test_a_wrong_number_of_rows_leaves_the_old_ones(tmp_path: Path, count: int) -> None:
    Embeddings(list("abcd"), ROWS, **ABOUT).save(tmp_path / "e")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"4 (rows expected|ids)"):
        Embeddings.stream(tmp_path / "e", list("abcd"), 3, [np.ones((count, 3))], **ABOUT)  # type: ignore[arg-type]
    assert np.array_equal(Embeddings.open(tmp_path / "e").rows, ROWS)


def test_a_row_that_is_not_finite_is_named() -> None:
    rows = ROWS.copy()
    rows[2, 1] = np.inf
    with pytest.raises(NumericalError, match=r"image embedding 'c' \(row 2\) is not finite"):
        Embeddings(list("abcd"), rows, **ABOUT).check_finite()  # type: ignore[arg-type]


def test_ids_and_rows_must_fit() -> None:
    with pytest.raises(DataError, match=r"3 ids for rows of shape \(4, 3\)"):
        Embeddings(list("abc"), ROWS, **ABOUT)  # type: ignore[arg-type]


def test_another_version_or_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"embeddings.json does not exist"):
        Embeddings.open(tmp_path)
    folder = Embeddings(list("abcd"), ROWS, **ABOUT).save(tmp_path / "e")  # type: ignore[arg-type]
    header = read_json(folder / "embeddings.json")
    write_json(folder / "embeddings.json", {**header, "format": 99})
    with pytest.raises(StorageError, match="format 99, this version reads 1 and 2"):
        Embeddings.open(folder)
    write_json(folder / "embeddings.json", header)
    (folder / "rows.npy").write_bytes(b"short")
    with pytest.raises(StorageError, match=r"rows\.npy cannot be opened"):
        Embeddings.open(folder)


def test_how_rows_are_compared_travels_with_them(tmp_path: Path) -> None:
    assert Embeddings(list("abcd"), ROWS, **ABOUT).similarity == "cosine"  # type: ignore[arg-type]
    Embeddings(list("abcd"), ROWS, **ABOUT, similarity="order").save(tmp_path / "e")  # type: ignore[arg-type]
    assert Embeddings.open(tmp_path / "e").similarity == "order"
    streamed = Embeddings.stream(tmp_path / "s", list("abcd"), 3, [ROWS], **ABOUT, similarity="order")  # type: ignore[arg-type]
    assert streamed.similarity == "order"


def test_folders_of_before_there_was_another_similarity(tmp_path: Path) -> None:
    folder = Embeddings(list("abcd"), ROWS, **ABOUT).save(tmp_path / "e")  # type: ignore[arg-type]
    header = read_json(folder / "embeddings.json")
    del header["similarity"]
    write_json(folder / "embeddings.json", header)
    assert Embeddings.open(folder).similarity == "cosine"


def test_folders_that_keep_their_ids_in_json(tmp_path: Path) -> None:
    folder = Embeddings(list("abcd"), ROWS, **ABOUT).save(tmp_path / "e")  # type: ignore[arg-type]
    header = read_json(folder / "embeddings.json")
    for name in ("ids.utf8", "ids.ends"):
        (folder / name).unlink()
    with pytest.raises(StorageError, match=r"ids.* cannot be read") as caught:
        Embeddings.open(folder)
    assert caught.value.fix == "embed again"
    write_json(folder / "embeddings.json", {**header, "format": 1})
    write_json(folder / "ids.json", list("wxyz"))
    opened = Embeddings.open(folder)
    assert list(opened.ids) == list("wxyz")
    assert np.array_equal(opened.rows, ROWS)


def test_many_ids_are_read_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Embeddings(["a", "é", "", "a b\nc"], ROWS, **ABOUT).save(tmp_path / "e")  # type: ignore[arg-type]
    few = Embeddings.open(folder)
    monkeypatch.setattr("diptych.encoders.embeddings._HELD_IDS", 3)
    many = Embeddings.open(folder)
    assert isinstance(few.ids, list)
    assert not isinstance(many.ids, list)
    assert list(few.ids) == list(many.ids) == ["a", "é", "", "a b\nc"]
    assert (len(many), many.ids[1], many.ids[2:]) == (4, "é", ["", "a b\nc"])
