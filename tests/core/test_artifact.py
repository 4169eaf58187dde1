"""The contract of every artifact: what is saved is opened, whole or not at all, and nothing else is."""

from __future__ import annotations

import json
import math
import os
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
from diptych.core.errors import StorageError
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


def test_what_is_saved_is_opened(tmp_path: Path) -> None:
    for name in LAYOUTS:
        found = Thing.open(thing().save(tmp_path / name))
        assert same(thing(), found)
        assert isinstance(found.pairs[1].right, Inner)
        assert isinstance(found.ends, tuple)
        assert math.isnan(found.inner.share)  # type: ignore[union-attr, arg-type]
        assert isinstance(found.rows, np.memmap) == (name == "folder")
        assert same(thing(1), Thing.open(thing(1).save(tmp_path / name)))
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


def test_other_versions_kinds_and_origins_are_refused(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Newer(Artifact, kind="note", version=2):
        text: str

    for name in (*LAYOUTS, "file.json"):
        path = tmp_path / name
        refused(StorageError, "does not exist|cannot be read|holds no note", Note.open, path)
        Note("x").save(path, of="one")
        assert Note.open(path, of="one") == Note("x")
        refused(StorageError, r"other inputs \(one, expected two\)", Note.open, path, of="two")
        refused(StorageError, "holds note, expected thing|holds no thing", Thing.open, path)
        refused(StorageError, "format 1, this version reads 2", Newer.open, path)


def test_content_of_another_form_is_corrupt(tmp_path: Path) -> None:
    path = thing().save(tmp_path / "t")
    whole = json.loads((path / "thing.json").read_text())
    np.save(tmp_path / "rows.npy", np.zeros((5, 3), np.float32))
    for change, message in (
        ({"title": 3}, "is no str"),
        ({"mode": "c"}, "is no"),
        ({"ends": [1.0]}, "is no"),
        ({"inner": {"name": "x", "odd": 1}}, "is no"),
        ({"unknown": 1}, "has no unknown"),
        ({"pairs": {"a": 1}}, "is no"),
        ({"by_number": {"x": 1.0}}, "invalid literal"),
        ({"rows": {"@array": "gone"}}, "gone.npy does not exist"),
        ({"rows": {"@array": "../rows"}}, "does not exist"),  # a name of an array is no path
        ({"rows": [1, 2]}, "is no"),
    ):
        header = {**whole, "content": {**whole["content"], **change}}
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


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    for number, file in enumerate(("rows.npy", "arrays.npz", "thing.json")):
        path = thing().save(tmp_path / f"t{number}")
        (path / file).rename(tmp_path / file)
        (path / file).symlink_to(tmp_path / file)
        refused(StorageError, "is a link out of the folder", Thing.open, path)


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

    assert crash_everywhere(begin, act, check, tmp_path, 5 if name.endswith("npz") else 1) >= 5


def test_files_and_their_folder_are_flushed_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[tuple[str, str]] = []
    names: dict[int, str] = {}
    plain_open, plain_fsync = os.open, os.fsync

    def opened(path: Any, *args: Any, **options: Any) -> int:
        handle = plain_open(path, *args, **options)
        names[handle] = str(path)
        return handle

    def synchronised(handle: int) -> None:
        log.append(("fsync", names[handle]))
        plain_fsync(handle)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", synchronised)
    for call in ("rename", "replace"):
        plain = getattr(os, call)
        monkeypatch.setattr(os, call, lambda a, b, plain=plain: log.append(("rename", str(b))) or plain(a, b))
    thing().save(tmp_path / "t")
    last = max(place for place, entry in enumerate(log) if entry == ("rename", str(tmp_path / "t")))
    flushed = {Path(path).name for call, path in log[:last] if call == "fsync"}
    assert {"rows.npy", "arrays.npz", "thing.json"} <= flushed
    assert ("fsync", str(tmp_path)) in log[last:]
