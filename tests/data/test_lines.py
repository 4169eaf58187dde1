from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from diptych.core.errors import DataError
from diptych.data.lines import numbered_lines


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz"])
def test_lines_plain_and_gzipped(tmp_path: Path, name: str) -> None:
    content = "\ufeffone\r\n\nthrée".encode()
    (tmp_path / name).write_bytes(gzip.compress(content, mtime=0) if name.endswith("gz") else content)
    assert list(numbered_lines(tmp_path / name)) == [(1, "one"), (2, ""), (3, "thrée")]


def test_a_bomb_of_one_endless_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(1 << 24), mtime=0))
    assert (tmp_path / "bomb.gz").stat().st_size < 1 << 15
    with pytest.raises(DataError, match=r"line 1 is longer than 4,194,304 bytes"):
        list(numbered_lines(tmp_path / "bomb.gz"))
    (tmp_path / "short").write_bytes(b"ab\nabc\nabcd\n")
    with pytest.raises(DataError, match="line 3 is longer than 4 bytes"):
        list(numbered_lines(tmp_path / "short", limit=4))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"fine\n\xff\xfe\n", "line 2 is not utf-8"),
        ("a.gz", b"not gzip", "is damaged after line 0"),
        ("a.gz", gzip.compress(b"one\ntwo\n" * 999, mtime=0)[:-20], "is damaged after line"),
        ("a.gz", gzip.compress(b"one\n", mtime=0)[:-6] + b"\0\0\0\0\0\0", "is damaged after line"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        list(numbered_lines(tmp_path / name))
    assert caught.value.fix


def test_other_encodings_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    assert list(numbered_lines(tmp_path / "a.txt", "latin-1")) == [(1, "café")]
    with pytest.raises(DataError, match="there is no encoding 'klingon'"):
        list(numbered_lines(tmp_path / "a.txt", "klingon"))
    with pytest.raises(DataError, match="does not exist"):
        list(numbered_lines(tmp_path / "b.txt"))
    with pytest.raises(DataError, match="cannot be read"):
        list(numbered_lines(tmp_path))
