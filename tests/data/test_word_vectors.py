from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import StorageError
from diptych.data.word_vectors import read_word_vectors


def test_words_and_vectors(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(["dog", "café"]), vectors=np.array([[1, 2], [3, 4]]))
    rows, vectors = read_word_vectors(tmp_path / "v.npz", "the setting")
    assert rows == {"dog": 0, "café": 1}
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"numbers": np.zeros(3)}, "is not a file of word vectors"),
        ({"words": np.array(["a"]), "vectors": np.zeros(3)}, r"1 words, vectors of shape \(3,\)"),
        ({"words": np.array(["a"]), "vectors": np.zeros((2, 3))}, r"1 words, vectors of shape \(2, 3\)"),
        (
            {"words": np.array(["a"], dtype=object), "vectors": np.zeros((1, 3))},
            "is not a file of word vectors",
        ),
    ],
)
def test_other_files(tmp_path: Path, content: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "v.npz", **content)
    with pytest.raises(StorageError, match=message):
        read_word_vectors(tmp_path / "v.npz", "the setting")


def test_no_file_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"gone\.npz does not exist \(check the setting: "):
        read_word_vectors(tmp_path / "gone.npz", "the setting")
    (tmp_path / "text.npz").write_text("dog 1 2")
    with pytest.raises(StorageError, match="is not a file of word vectors"):
        read_word_vectors(tmp_path / "text.npz", "the setting")


def test_files_that_are_no_archives(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(["a"]), vectors=np.zeros((1, 3)))
    whole = (tmp_path / "v.npz").read_bytes()
    np.save(tmp_path / "array.npy", np.zeros(3))
    for content in (b"", b"dog 1 2\n", whole[:200], (tmp_path / "array.npy").read_bytes()):
        (tmp_path / "v.npz").write_bytes(content)
        with pytest.raises(StorageError, match="is not a file of word vectors"):
            read_word_vectors(tmp_path / "v.npz", "the setting")
