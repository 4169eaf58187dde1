"""One reader that knows every way in which a file is wrong; each one is one error that names the file."""

from __future__ import annotations

import csv
import gzip
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core import reading
from diptych.core.errors import DataError, StorageError
from diptych.core.reading import (
    beginning_of,
    file_errors,
    map_array,
    open_text,
    read_array,
    read_arrays,
    read_json,
    read_jsonl,
    read_lines,
    read_log,
    read_text,
    read_toml,
)


def _open_and_read(path: Path) -> None:
    with open_text(path) as handle:
        handle.read()


READERS: tuple[Callable[[Path], object], ...] = (
    *(_open_and_read, read_json, read_text, read_toml, read_arrays, map_array, read_array),
    *(lambda path: list(read_jsonl(path)), lambda path: list(read_lines(path))),
)
MADE: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "pipe": lambda path: os.mkfifo(path),
    "in a file": lambda path: path.symlink_to(Path(__file__) / "below"),
}


def test_what_is_no_file_is_refused_in_one_short_line(tmp_path: Path) -> None:
    for made, make in MADE.items():
        path = tmp_path / made / "a.bin"
        path.parent.mkdir()
        make(path)
        message = r"a\.bin (does not exist|is a folder|cannot be read)"
        for read in READERS:
            assert refused(StorageError, message, read, path).fix
    for read in READERS:
        for given in ("n" * 5_000, "a\0b"):  # names that no system takes
            assert len(refused(StorageError, ".", read, tmp_path / given).message) < 600


def test_texts_json_and_toml(tmp_path: Path) -> None:
    for name, mark in (("a.json", b""), ("b.json", b"\xef\xbb\xbf"), ("c.json.gz", b"\xef\xbb\xbf")):
        path = tmp_path / name
        content = mark + json.dumps({"é": [1, "zwei"]}, ensure_ascii=False).encode()
        path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        assert read_json(path) == {"é": [1, "zwei"]}
        assert list(read_jsonl(path)) == [(1, {"é": [1, "zwei"]})]
        assert beginning_of(path, 200).endswith('{"é": [1, "zwei"]}')
        with open_text(path) as handle:
            assert json.load(handle) == {"é": [1, "zwei"]}
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = '\xc3\xa9'\r\n")
    assert read_text(path) == "a = 1\nb = 'é'\n"
    assert read_toml(path) == {"a": 1, "b": "é"}
    assert list(read_lines(path)) == [(1, "a = 1"), (2, "b = 'é'")]
    for content, wrong in (
        (b"a = '\xe9'", "is not UTF-8"),
        (b"a = ", "is not TOML"),
        (b"a = " + b"[" * 9_999, "is not TOML"),
    ):
        path.write_bytes(content)
        refused(StorageError, wrong, read_toml, path)


def test_content_of_another_form_is_an_error_of_one_line(tmp_path: Path) -> None:
    for content in (
        b"",
        b'[{"image": "a.jpg", "capt',
        b"[" * 100_000,  # deeper than the parser goes
        b"[" + b"9" * 5_000 + b"]",  # more digits than Python reads
        json.dumps(["a"]).encode("utf-16"),
        b'["\xe9"]',
    ):
        (tmp_path / "a.json").write_bytes(content)
        message = r"a\.json is not (JSON|UTF-8)"
        assert len(refused(DataError, message, read_json, tmp_path / "a.json", DataError).message) < 400
        (tmp_path / "a.jsonl").write_bytes(b"{}\n" + content)
        if content:
            with pytest.raises(DataError, match=r"a\.jsonl, line 2 is not (JSON|utf-8)"):
                list(read_jsonl(tmp_path / "a.jsonl", DataError))
    form: object = ["a list"]
    for read in (lambda: form["a"], lambda: form.get("a"), lambda: {}["key"], lambda: float(10**400)):  # type: ignore
        with pytest.raises(StorageError, match=r"a\.json is corrupt"), file_errors(tmp_path / "a.json"):
            read()
    with pytest.raises(DataError, match="first"), file_errors(tmp_path):
        raise DataError("first")


def test_packed_ones_that_are_cut_or_never_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}')[:-9])
    refused(DataError, r"a\.json\.gz is corrupt", read_json, path, DataError)
    monkeypatch.setattr(reading, "MIN_UNPACKED_BYTES", 10_000)
    path.write_bytes(gzip.compress(b'["' + b"a" * 100_000 + b'"]'))
    assert "unpack it" in refused(DataError, "unpacks to more than", read_json, path, DataError).fix
    refused(StorageError, "unpacks to more than", list, read_lines(path))
    path.write_bytes(gzip.compress(b'["' + b"a" * 9_000 + b'"]'))
    assert read_json(path) == ["a" * 9_000]


def test_what_is_too_large_or_endless_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with open(path, "wb") as handle:
        handle.truncate(1 << 40)
    refused(StorageError, r"has 1,099,511,627,776 bytes or more, 2,147,483,648 are allowed", read_text, path)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(1 << 24), mtime=0))
    for lines in (read_lines(path), read_log(path), read_lines(tmp_path / "bomb.gz")):
        refused(StorageError, "has a line of more than 4,194,304 bytes", list, lines)
    with open(tmp_path / "a.csv", "wb") as handle:
        handle.write(b"a,b\n1,2\n")
        handle.truncate(1 << 42)
    for read in (list, csv.reader):
        with (
            pytest.raises(StorageError, match="has a line of more than 4,194,304 bytes"),
            open_text(tmp_path / "a.csv") as text,
        ):
            list(read(text))
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"[1]") + bytes(100))
    assert read_json(path) == [1]
    os.truncate(path, 1 << 42)
    refused(StorageError, "more than 65,536 bytes of padding", list, read_lines(path))


def _header(text: str, data: bytes = b"") -> bytes:
    header = text.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


_LONG = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"
WRONG_ARRAYS = {
    "empty": b"",
    "text": b"no array",
    "magic alone": b"\x93NUMPY\x01\x00",
    "version 9": b"\x93NUMPY\x09\x00" + b"\0" * 64,
    "negative": _header(_LONG % "-1, 2", b"\0" * 8),
    "huge": _header(_LONG % f"{10**30},", b"\0" * 8),
    "larger than it is": _header(_LONG % f"{1 << 40},", b"\0" * 8),
    "smaller than it is": _header(_LONG % "1,", b"\0" * 8),
    "lone bracket": _header("{'descr': '<f4', 'fortran_order': False, 'shape': (1"),
    "token": _header("'''"),
    "syntax": _header("1 2"),
    "no dictionary": _header("[]"),
    "nested": _header("(" * 5_000),
    "digits": _header(_LONG % ("9" * 5_000)),
    "no width": _header("{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "odd type": _header("{'descr': '<z9', 'fortran_order': False, 'shape': (1,), }", b"\0" * 9),
    "objects": _header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\0" * 8),
}


def test_arrays_that_numpy_would_not_write(tmp_path: Path) -> None:
    path, packed = tmp_path / "a.npy", tmp_path / "a.npz"
    for content in WRONG_ARRAYS.values():
        path.write_bytes(content)
        for read in (map_array, read_array):
            refused(StorageError, r"a\.npy is corrupt", read, path)
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("a.npy", content)
        refused(StorageError, r"a\.npz is corrupt", read_arrays, packed)


def test_arrays_of_another_form_are_refused_with_both(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((2, 3), dtype=np.float32))
    for read in (map_array, read_array):
        assert read(path, np.float32, (None, 3)).shape == (2, 3)
        with pytest.raises(StorageError, match=r"float64 \('any', 3\) expected, got float32 \(2, 3\)"):
            read(path, np.float64, (None, 3))
        for shape in ((2,), (3, 3), (2, 3, 1)):
            refused(StorageError, r"any type .* expected", read, path, shape=shape)
    assert not map_array(path).flags.writeable
    np.save(path, np.zeros((0, 3)))
    assert map_array(path).shape == read_array(path).shape == (0, 3)


def test_archives_of_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.arange(5), b=np.array(["x", "yz"]), c=np.zeros(100_000))
    assert list(read_arrays(path, ("b", "a"))) == ["b", "a"]
    assert read_arrays(path)["b"].tolist() == ["x", "yz"]
    refused(StorageError, "'d' is missing", read_arrays, path, ("a", "d"))
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(StorageError):
            read_arrays(path)
    for place in range(30, len(whole), 11):  # a byte inside an array is found by its checksum
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert read_arrays(path)["a"].tolist() == [0, 1, 2, 3, 4]
        except StorageError:
            continue
    path.write_bytes(whole)
    monkeypatch.setattr(reading, "MIN_ARRAY_BYTES", 10_000)
    refused(StorageError, "unpacks to more than", read_arrays, path)
    assert read_arrays(path, ("a",))["a"].size == 5


def test_lines_of_bad_files(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\ntwo\n" * 999, mtime=0)
    for name, content, message in (
        ("a.txt", b"fine\n\xff\xfe\n", "line 2 is not utf-8"),
        ("a.gz", b"not gzip", "is corrupt"),
        ("a.gz", packed[:-20], "is corrupt"),
        ("a.gz", packed[:-6] + bytes(6), "is corrupt"),
    ):
        (tmp_path / name).write_bytes(content)
        assert refused(StorageError, message, list, read_lines(tmp_path / name)).fix
