"""Rows under the content of their items: each computed once, in any order, and what a kill leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import StorageError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.encoders import keyed_rows as module
from diptych.encoders.keyed_rows import keyed_rows, text_keys


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


def made(texts: list[str], folder: Path, making: Making | None = None) -> np.ndarray:
    rows, _ = keyed_rows(
        folder, text_keys(texts), 2, making or Making(texts), block=6, doing="making rows", unit="texts"
    )
    return rows


def expected(texts: list[str]) -> list[list[float]]:
    return [[len(text), ord(text[0])] for text in texts]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=20), min_size=1, max_size=4))
def test_any_order_and_each_once(
    tmp_path_factory: pytest.TempPathFactory, sequences: list[list[str]]
) -> None:
    folder, seen = tmp_path_factory.mktemp("rows"), []
    for letters in sequences:
        texts = [letter * (1 + ord(letter) % 5) for letter in letters]
        making = Making(texts)
        assert made(texts, folder, making).tolist() == expected(texts)
        seen += making.seen
    assert len(seen) == len(set(seen)) == len({letter for letters in sequences for letter in letters})


def test_a_kill_costs_a_block(tmp_path: Path) -> None:
    texts = [letter * 2 for letter in "abcdefghijklmnopqrst"]
    with pytest.raises(KeyboardInterrupt):
        made(texts, tmp_path, Making(texts, patience=15))
    after = Making(texts)
    assert made(texts, tmp_path, after).tolist() == expected(texts)
    assert len(after.seen) == 20 - 12  # two blocks of six were whole
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_check_is_that_of_whole_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK", 4)
    rows = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
    assert module._content(rows) == fingerprint_arrays({"rows": rows}).encode()


def test_a_damaged_set_is_named(tmp_path: Path) -> None:
    made(["a", "bb"], tmp_path)
    (file,) = (tmp_path / "sets").iterdir()
    content = bytearray(file.read_bytes())
    content[130] ^= 1
    file.write_bytes(content)
    with pytest.raises(StorageError, match="is not what was written"):
        made(["a", "bb"], tmp_path)
