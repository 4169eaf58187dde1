"""The contract of every artifact: what is saved is opened, whole or not at all, and nothing else is."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from crash import crash_everywhere
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.artifact import Artifact, decode, encode
from diptych.core.errors import StorageError, UsageError
from diptych.core.fingerprint import fingerprint


@dataclass(frozen=True)
class Inner:
    name: str
    share: float | None = None
    parts: tuple[int, ...] = ()


class Pair(NamedTuple):
    left: int
    right: Inner


@dataclass(frozen=True, eq=False)
class Thing(Artifact, kind="thing", version=3, recreate="make thing", mapped=("rows",)):
    title: str
    rows: np.ndarray
    values: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    inner: Inner | None = None
    pairs: Sequence[Pair] = ()
    mode: Literal["a", "b"] = "a"
    ends: tuple[float, float] = (0.0, 1.0)
    about: dict[str, Any] = field(default_factory=dict)
    by_number: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Note(Artifact, kind="note"):
    text: str
    number: float = 0.0


def thing(seed: int = 0) -> Thing:
    chance = np.random.default_rng(seed)
    return Thing(
        f"title {seed}",
        chance.normal(size=(5, 3)).astype(np.float32),
        {"t2i": {"R@1": chance.normal(size=4)}, "i2t": {}},
        Inner("in", math.nan, (1, 2)),
        [Pair(1, Inner("x")), Pair(2, Inner("y", 0.5))],
        "b",
        (math.inf, -1.0),
        {"seed": seed, "none": None, "nested": {"list": [1, 2.5, "x"]}, "nan": math.nan},
        {3: 0.25},
    )


def same(a: Thing, b: Thing) -> bool:
    first, second = {}, {}
    return encode(a, first) == encode(b, second) and all(
        name in second
        and value.dtype == second[name].dtype
        and np.array_equal(value, second[name], equal_nan=True)
        for name, value in first.items()
    )


LAYOUTS = ["folder", "file.npz"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_saved_is_opened(name: str, tmp_path: Path) -> None:
    made = thing()
    found = Thing.open(made.save(tmp_path / name))
    assert same(made, found)
    assert isinstance(found.pairs[1].right, Inner)
    assert isinstance(found.ends, tuple)
    assert math.isnan(found.inner.share)  # type: ignore[union-attr, arg-type]
    assert isinstance(found.rows, np.memmap) == (name == "folder")
    other = thing(1).save(tmp_path / name)
    assert same(thing(1), Thing.open(other))


def test_a_json_file_has_no_arrays(tmp_path: Path) -> None:
    assert Note.open(Note("ü", math.inf).save(tmp_path / "n.json")) == Note("ü", math.inf)
    refused(TypeError, r"thing has arrays \(rows", thing().save, tmp_path / "n.json")


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(plain)
def test_anything_plain_goes_through_json(value: Any) -> None:
    arrays: dict[str, np.ndarray] = {}
    assert decode(Any, json.loads(json.dumps(encode(value, arrays))), arrays) == value


@pytest.mark.parametrize("name", [*LAYOUTS, "file.json"])
def test_other_versions_kinds_and_origins_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    refused(StorageError, "does not exist|cannot be read|holds no note", Note.open, path)
    Note("x").save(path, of="one")
    assert Note.open(path, of="one") == Note("x")
    refused(StorageError, r"other inputs \(one, expected two\)", Note.open, path, of="two")
    refused(StorageError, "holds note, expected thing|holds no thing", Thing.open, path)

    @dataclass(frozen=True)
    class Newer(Artifact, kind="note", version=2):
        text: str

    refused(StorageError, "format 1, this version reads 2", Newer.open, path)


def test_other_things_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_text("precious")
    refused(UsageError, "holds other things", thing().save, tmp_path)
    assert (tmp_path / "photo.jpg").read_text() == "precious"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"title": 3}, "is no str"),
        ({"mode": "c"}, "is no"),
        ({"ends": [1.0]}, "is no"),
        ({"inner": {"name": "x", "odd": 1}}, "is no"),
        ({"unknown": 1}, "has no unknown"),
        ({"pairs": {"a": 1}}, "is no"),
        ({"by_number": {"x": 1.0}}, "invalid literal"),
        ({"rows": {"@array": "gone"}}, "gone.npy does not exist"),
        ({"rows": [1, 2]}, "is no"),
    ],
)
def test_content_of_another_form_is_corrupt(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = thing().save(tmp_path / "t")
    header = json.loads((path / "thing.json").read_text())
    header["content"] |= change
    (path / "thing.json").write_text(json.dumps(header))
    refused(StorageError, "does not have its fingerprint", Thing.open, path)
    header["fingerprint"] = fingerprint(header["content"])
    (path / "thing.json").write_text(json.dumps(header))
    refused(StorageError, message, Thing.open, path)


@pytest.mark.parametrize("name", [*LAYOUTS, "file.json"])
def test_no_cut_or_changed_file_is_a_traceback(name: str, tmp_path: Path) -> None:
    saved = (Note("text") if name.endswith("json") else thing()).save(tmp_path / name)
    opened = type(Note("x")) if name.endswith("json") else Thing
    for file in [saved] if saved.is_file() else sorted(saved.iterdir()):
        content, tried = file.read_bytes(), 0
        for cut in range(0, len(content), max(1, len(content) // 40)):
            for wrong in (content[:cut], content[:cut] + bytes([content[cut] ^ 0x55]) + content[cut + 1 :]):
                file.write_bytes(wrong)
                tried += 1
                try:
                    found = opened.open(saved)
                except StorageError:
                    continue
                # Only the numbers of a memory-mapped array may differ: they are not read when it is opened.
                assert file.suffix == ".npy" or found == Note("text") or same(found, thing())  # type: ignore[arg-type]
        file.write_bytes(content)
        assert tried > 20


@pytest.mark.parametrize("file", ["rows.npy", "arrays.npz", "thing.json"])
def test_a_link_out_of_the_folder_is_refused(file: str, tmp_path: Path) -> None:
    path = thing().save(tmp_path / "t")
    (path / file).rename(tmp_path / file)
    (path / file).symlink_to(tmp_path / file)
    refused(StorageError, "is a link out of the folder", Thing.open, path)


def test_a_name_of_an_array_is_no_path(tmp_path: Path) -> None:
    path = thing().save(tmp_path / "t")
    header = json.loads((path / "thing.json").read_text())
    header["content"]["rows"] = {"@array": "../rows"}
    header["fingerprint"] = fingerprint(header["content"])
    (path / "thing.json").write_text(json.dumps(header))
    np.save(tmp_path / "rows.npy", np.zeros((5, 3), np.float32))
    refused(StorageError, "does not exist", Thing.open, path)


@pytest.mark.parametrize("name", [*LAYOUTS, "file.json"])
def test_a_crash_at_any_call_leaves_the_old_or_the_new(name: str, tmp_path: Path) -> None:
    make = Note if name.endswith("json") else (lambda text: thing(int(text)))

    def begin(place: Path) -> None:
        make("1").save(place / name)

    def act(place: Path) -> None:
        make("2").save(place / name)

    def check(place: Path) -> None:
        found = type(make("1")).open(place / name)
        if isinstance(found, Note):
            assert found.text in "12"
        else:
            assert same(found, thing(1)) or same(found, thing(2))
        make("2").save(place / name)
        left = [path.name for path in place.iterdir() if path.name != name]
        assert not [one for one in left if not one.endswith(".tmp")], left

    assert crash_everywhere(begin, act, check, tmp_path) >= 5
    shutil.rmtree(tmp_path)


def test_files_and_their_folder_are_flushed_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    log: list[tuple[str, str]] = []
    names: dict[int, str] = {}
    plain_open, plain_fsync = os.open, os.fsync

    def opened(path: Any, *args: Any, **options: Any) -> int:
        handle = plain_open(path, *args, **options)
        names[handle] = str(path)
        return handle

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(
        os, "fsync", lambda handle: (log.append(("fsync", names[handle])), plain_fsync(handle))[1]
    )
    for call in ("rename", "replace"):
        plain_call = getattr(os, call)
        monkeypatch.setattr(
            os, call, lambda a, b, _call=plain_call: (log.append(("rename", str(b))), _call(a, b))[1]
        )
    thing().save(tmp_path / "t")
    last = max(place for place, entry in enumerate(log) if entry == ("rename", str(tmp_path / "t")))
    flushed = {Path(path).name for call, path in log[:last] if call == "fsync"}
    assert {"rows.npy", "arrays.npz", "thing.json"} <= flushed
    assert ("fsync", str(tmp_path)) in log[last:]
