"""JSON from strangers: whatever is in it, an error that names the file or what it says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from diptych.core.errors import DataError
from diptych.data import json_files
from diptych.data.json_files import load_json


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_a_file_holds(tmp_path: Path, mark: bytes, packed: bool) -> None:
    path = tmp_path / ("a.json.gz" if packed else "a.json")
    content = mark + json.dumps({"é": [1, "zwei"]}, ensure_ascii=False).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    assert load_json(path) == {"é": [1, "zwei"]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'[{"image": "a.jpg", "capt',
        b"[" * 100_000,  # deeper than the parser goes
        b"[" + b"9" * 5_000 + b"]",  # more digits than Python reads
        json.dumps(["a"]).encode("utf-16"),
        b'["\xe9"]',
    ],
)
def test_what_is_no_json_is_an_error_of_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json is not JSON") as caught:
        load_json(tmp_path / "a.json")
    assert len(caught.value.message) < 400


def test_a_file_that_is_gone_a_folder_or_cut(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load_json(tmp_path / "gone.json")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        load_json(tmp_path)
    packed = gzip.compress(b'{"a": 1}')
    (tmp_path / "cut.json.gz").write_bytes(packed[:-9])
    with pytest.raises(DataError, match="is not JSON"):
        load_json(tmp_path / "cut.json.gz")


def test_what_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "MAX_UNPACKED_BYTES", 10_000)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'["' + b"a" * 100_000 + b'"]'))
    with pytest.raises(DataError, match="unpacks to more than 10,000 bytes") as caught:
        load_json(path)
    assert "gunzip" in caught.value.fix
    path.write_bytes(gzip.compress(b'["' + b"a" * 9_000 + b'"]'))
    assert load_json(path) == ["a" * 9_000]


def test_keys_said_twice_are_refused_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": {"b": 1, "b": 2}, "c": 3}')
    assert load_json(path) == {"a": {"b": 2}, "c": 3}
    with pytest.raises(DataError, match="has the key 'b' twice"):
        load_json(path, unique_keys=True)
